#!lua flags=allow-oom
-- enlist.lua: a queue enters its name into the list of all queues, once per process that opens it. Allowed when memory is full, as
-- declare.lua is: a worker that starts then is the one to make room.
-- KEYS queues HASH
-- ARGV name, partitions
-- Returns 'LISTED' or 'KNOWN'
if redis.call('HGET', queues, name) == partitions then return 'KNOWN' end
redis.call('HSET', queues, name, partitions)
return 'LISTED'
