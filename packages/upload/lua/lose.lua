#!lua flags=allow-oom
-- lose.lua: bytes that were committed are gone: the frames of `source` vanished, the store has other bytes as `part`, or has
-- forgotten the multipart upload `multipartId` with all its parts. What held them becomes missing again, and the client is asked
-- for it. The upload goes on.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, source, part, etag, multipartId, fence, lookMs
-- Returns {word, lost bytes, {freed attempt and its frames, …}}; word is 'OK', 'COMPLETING', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE', '0' } end
if not is_open(upload) and upload.status ~= 'COMPLETING' then return { 'ENDED', '0' } end
-- Parts that are being made into an object look lost to everybody else. Whoever does that finds out if they really are.
if upload.status == 'COMPLETING' and source == '' and upload.fence ~= fence then return { 'COMPLETING', '0' } end
local gone, freed = {}, {}

if source ~= '' then
  for _, member in ipairs(redis.call('ZRANGE', held, 0, -1)) do
    local offset, length, from = member:match('^(%d+) (%d+) (%S+) ')
    if from == source then
      let_go(member)
      redis.call('HINCRBY', fill, text((part_at(upload, tonumber(offset)))), '-' .. length)
      drop_reference(upload, source, freed)
      gone[#gone + 1] = { tonumber(offset), tonumber(offset) + tonumber(length) }
    end
  end
end

-- A chunk that waits for its predecessors is as if it had not come.
local waiting = source ~= '' and redis.call('HGETALL', window) or {}
local dropped = false
for i = 1, #waiting, 2 do
  if waiting[i + 1]:match('^%d+ (%S+) ') == source then
    redis.call('HDEL', window, waiting[i])
    redis.call('HDEL', chunks, waiting[i])
    if upload.last_chunk == waiting[i] then redis.call('HSET', state, 'is_last_received', 'false', 'last_chunk', '') end
    free(upload, source, freed)
    dropped = true
  end
end

local function lose_part(index, record)
  redis.call('HDEL', parts, index)
  local start = part_numbered(upload, tonumber(index))
  gone[#gone + 1] = { start, start + tonumber(record:match('^%d+')) }
end

local record = part ~= '' and redis.call('HGET', parts, part)
-- Another record of the part is of bytes that came since.
if record and record:match('^%d+ %x+ (%S+)') == etag then lose_part(part, record) end
if multipartId ~= '' and upload.s3_upload_id == multipartId then
  redis.call('HSET', state, 's3_upload_id', '')
  local all = redis.call('HGETALL', parts)
  for i = 1, #all, 2 do
    -- What has a key is an object of its own.
    if all[i + 1]:match('^%d+ %x+ %S+ ?$') then lose_part(all[i], all[i + 1]) end
  end
end

local lost = 0
for _, range in ipairs(gone) do lost = lost + range[2] - range[1] end
if lost > 0 or dropped then
  forget_chunks(upload, gone)
  recount(upload)
  redis.call('HSET', state, 'status', 'UPLOADING', 'lease_until', '0')
  tell(upload, 'UPLOADING', upload.received_bytes, upload.stored_bytes)
  shrink(upload)
end
local now = now_ms()
keep_alive(upload, now)
look_by(now + tonumber(lookMs))
return { 'OK', text(lost), freed }
