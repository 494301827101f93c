#!lua flags=allow-oom
-- tended.lua: somebody has looked at an open upload. What dead processes had paid for comes back; an upload that is quiet and has
-- nothing in the chunks Redis gives its place there to others. The next look is postponed unless something happened meanwhile.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, updatedAt, isQuiet, nextAt
-- Returns {word, {attempt and its frames, which nobody has dropped, …}}; word is 'OK' or 'CHANGED'
local upload = read_state()
if not upload or not is_open(upload) or upload.updated_at ~= updatedAt then return { 'CHANGED' } end
redis.call('HDEL', state, 'pressed')
free_overdue(upload, now_ms())
if isQuiet == '1' and tonumber(upload.charged) == 0 then reserve(upload, 0) else shrink(upload) end
redis.call('ZADD', attention, 'XX', nextAt, id)
return { 'OK', undropped() }
