#!lua
-- extend.lua: an attempt is still under way.
-- KEYS attempts HASH
-- ARGV attempt, attemptMs
-- Returns 'OK', or 'GONE'
local paid = redis.call('HGET', attempts, attempt)
if not paid then return 'GONE' end
local time = redis.call('TIME')
local deadline = string.format('%.0f', time[1] * 1000 + attemptMs)
redis.call('HSET', attempts, attempt, (paid:gsub('^(%d+) %d+ ', '%1 ' .. deadline .. ' ')))
return 'OK'
