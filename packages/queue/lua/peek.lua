#!lua flags=allow-oom
-- peek.lua: looks at the foreign messages that wait in the inbox, without taking them; addEach.lua takes them, provided that
-- nobody else did in the meantime, which `taken` tells.
-- KEYS cfg HASH, inbox LIST
-- ARGV count
-- Returns {taken so far, message, …}
local answer = redis.call('LRANGE', inbox, 0, tonumber(count) - 1)
table.insert(answer, 1, redis.call('HGET', cfg, 'inboxTaken') or '0')
return answer
