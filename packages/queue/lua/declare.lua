#!lua flags=allow-oom
-- declare.lua: a queue introduces itself to one of its partitions. The first one writes the layout down; a later one
-- that thinks otherwise is refused, because it would look for jobs where they are not. Allowed when memory is full: a worker
-- that starts then is the one to make room.
-- KEYS cfg HASH
-- ARGV partitions, layout
-- Returns {'OK', now ms} or {'MISMATCH', stored partitions, stored layout}
local stored = redis.call('HMGET', cfg, 'partitions', 'layout')
if not stored[1] then
  redis.call('HSET', cfg, 'partitions', partitions, 'layout', layout)
elseif stored[1] ~= partitions or stored[2] ~= layout then
  return { 'MISMATCH', stored[1], stored[2] }
end
local time = redis.call('TIME')
return { 'OK', time[1] * 1000 + math.floor(time[2] / 1000) }
