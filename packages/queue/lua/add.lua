#!lua
-- add.lua: accepts plain jobs (a priority and a payload, nothing else) in two variadic commands, whatever their number.
-- A call is repeated after a lost reply: `lane` and `seq` of its producer tell a repetition from a new call.
-- KEYS jobs HASH, producer HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST
-- ARGV lane, seq, rememberMs, entries, lists
-- entries: msgpack {id, packed, id, packed, …}; lists: msgpack {priority, {id, …}, priority, {id, …}, …}
-- Returns {'OK' | 'REPEAT' | 'ABANDONED', now ms}
local waits = { [0] = wait0, wait1, wait2, wait3, wait4, wait5 }
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HGET', producer, lane)
if last then
  if last == 'A' .. seq then return { 'ABANDONED', now } end
  last = last:match('%d+') -- also of an abandoned call: those before it on its lane have been answered
  if tonumber(last) and tonumber(last) >= tonumber(seq) then return { 'REPEAT', now } end
end
local fields, queues = cmsgpack.unpack(entries), cmsgpack.unpack(lists)
redis.call('HSET', jobs, unpack(fields))
for i = 1, #queues, 2 do
  redis.call('RPUSH', waits[queues[i]], unpack(queues[i + 1]))
end
redis.call('HSET', producer, lane, seq)
redis.call('PEXPIRE', producer, rememberMs)
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return { 'OK', now }
