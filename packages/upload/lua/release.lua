#!lua flags=allow-oom
-- release.lua: an attempt came to nothing; what it paid is given back.
-- KEYS state HASH, attempts HASH, budget HASH
-- KEYS chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, progress STREAM, attention ZSET
-- ARGV id, attempt
-- Returns 'OK', or 'GONE'
local upload = read_state()
if not upload then return 'GONE' end
if redis.call('HEXISTS', attempts, attempt .. ':refs') == 1 then return 'OK' end
free(upload, attempt)
shrink(upload)
return 'OK'
