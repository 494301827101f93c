#!lua flags=allow-oom
-- stored.lua: a buffered part has been written to the store. Its extents must be the ones that were read; their frames can go.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, part, start, length, etag, crc64, key, extents, lookMs
-- Returns {word, '1' if every byte is stored, {freed attempt and its frames, …}}; word is 'OK', 'DONE' (somebody else
--   stored it), 'STALE' (other extents now), 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
local function all() return (upload.expected_size ~= '' and upload.stored_bytes == upload.expected_size) and '1' or '' end
local record = table.concat({ length, crc64, etag, key }, ' ')
local known = redis.call('HGET', parts, part)
if known == record then return { 'OK', all(), undropped() } end
if known then return { 'DONE', all() } end
if not is_open(upload) then return { 'ENDED' } end
local stop = tonumber(start) + tonumber(length)
local members = redis.call('ZRANGE', held, start, '(' .. text(stop), 'BYSCORE')
if table.concat(members, '\n') ~= extents then return { 'STALE' } end
local freed = {}
for _, member in ipairs(members) do
  let_go(member)
  drop_reference(upload, member:match('^%d+ %d+ (%S+) '), freed)
end
redis.call('HDEL', fill, part)
redis.call('HSET', parts, part, record)
upload.stored_bytes = text(tonumber(upload.stored_bytes) + tonumber(length))
redis.call('HINCRBY', state, 'uploaded_chunks', #members)
redis.call('HSET', state, 'stored_bytes', upload.stored_bytes)
shrink(upload)
local now = now_ms()
keep_alive(upload, now)
tell(upload, upload.status, upload.received_bytes, upload.stored_bytes)
look_by(now + tonumber(lookMs))
return { 'OK', all(), freed }
