#!lua flags=allow-oom
-- tally.lua: adds a worker's latency histogram of the last second to the minute's figures.
-- KEYS stats HASH
-- ARGV counts
-- counts: msgpack {field, by, field, by, …}
-- Returns 'OK'
local time = redis.call('TIME')
local key = stats .. string.format('%.0f', math.floor(time[1] / 60))
local list = cmsgpack.unpack(counts)
for i = 1, #list, 2 do redis.call('HINCRBY', key, list[i], list[i + 1]) end
redis.call('PEXPIRE', key, 25 * 3600 * 1000)
return 'OK'
