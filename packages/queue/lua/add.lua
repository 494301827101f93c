#!lua
-- add.lua: accepts plain jobs (a priority and a payload, nothing else) in two variadic commands, whatever their number.
-- A call is repeated after a lost reply: `lane` and `seq` of its producer tell a repetition from a new call.
-- KEYS jobs HASH, producer HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST
-- ARGV lane, seq, rememberMs, entries, priority
-- entries: msgpack {id, packed, id, packed, …}; priority: that of all of them, or '' when they differ
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
local fields, lists = cmsgpack.unpack(entries), {}
if priority ~= '' then
  local ids = {}
  for i = 1, #fields, 2 do ids[(i + 1) / 2] = fields[i] end
  lists[tonumber(priority)] = ids
else
  for i = 1, #fields, 2 do
    local level = fields[i + 1]:byte(3) % 16
    lists[level] = lists[level] or {}
    table.insert(lists[level], fields[i])
  end
end
redis.call('HSET', jobs, unpack(fields))
for level = 0, 5 do
  if lists[level] then redis.call('RPUSH', waits[level], unpack(lists[level])) end
end
redis.call('HSET', producer, lane, seq)
redis.call('PEXPIRE', producer, rememberMs)
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return { 'OK', now }
