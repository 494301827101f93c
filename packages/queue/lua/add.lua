#!lua
-- add.lua: accepts plain jobs (a priority and a payload, nothing else) in two variadic commands, whatever their number. Most of
-- them come in bales (bale.lua).
-- A call is repeated after a lost reply: `lane` and `seq` of its producer tell a repetition from a new call.
-- KEYS cfg HASH, jobs HASH, producer HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST
-- ARGV lane, seq, rememberMs, entries, priority, baled
-- entries: msgpack {id or bale, packed, …}; priority: that of all of them, or '' when they differ; baled: jobs beyond entries
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
local fields, lists, beyond = cmsgpack.unpack(entries), {}, {}
if priority ~= '' then
  local names = {}
  for i = 1, #fields, 2 do names[(i + 1) / 2] = fields[i] end
  lists[tonumber(priority)] = names
  beyond[tonumber(priority)] = tonumber(baled)
else
  for i = 1, #fields, 2 do
    local name, packed = fields[i], fields[i + 1]
    local level = packed:byte(3) % 16
    lists[level] = lists[level] or {}
    table.insert(lists[level], name)
    if is_bale(name) then beyond[level] = (beyond[level] or 0) + packed:byte(2) - 1 end
  end
end
redis.call('HSET', jobs, unpack(fields))
for level = 0, 5 do
  if lists[level] then redis.call('RPUSH', waits[level], unpack(lists[level])) end
  if (beyond[level] or 0) > 0 then redis.call('HINCRBY', cfg, 'baled' .. level, beyond[level]) end
end
redis.call('HSET', producer, lane, seq)
redis.call('PEXPIRE', producer, rememberMs)
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return { 'OK', now }
