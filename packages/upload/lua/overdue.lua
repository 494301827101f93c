#!lua
-- overdue.lua: uploads that somebody should look at now. Each is handed out once per pause.
-- KEYS attention ZSET
-- ARGV limit, pauseMs
-- Returns ids
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGE', attention, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, upload in ipairs(due) do redis.call('ZADD', attention, now + pauseMs, upload) end
return due
