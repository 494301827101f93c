#!lua flags=allow-oom
-- unnote.lua: a small file is recorded, or nothing is left of it: nobody has to look at its note.
-- KEYS state HASH, attention ZSET
-- ARGV id
-- Returns 'OK'
redis.call('ZREM', attention, id)
redis.call('DEL', state)
return 'OK'
