#!lua flags=allow-oom
-- lose.lua: bytes that were committed are gone (frames vanished, a stored part has other bytes). What held them becomes missing
-- again, and the client is asked for it. The upload goes on.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, source, part, start, lookMs
-- Returns {word, lost bytes}; word is 'OK', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE', '0' } end
if not is_open(upload) and upload.status ~= 'COMPLETING' then return { 'ENDED', '0' } end
local lost = 0
local gone = {}
if source ~= '' then
  for _, member in ipairs(redis.call('ZRANGE', held, 0, -1)) do
    local offset, length, from = member:match('^(%d+) (%d+) (%S+) ')
    if from == source then
      let_go(member)
      redis.call('HINCRBY', fill, text((part_at(upload, tonumber(offset)))), '-' .. length)
      drop_reference(upload, source)
      lost = lost + tonumber(length)
      gone[#gone + 1] = { tonumber(offset), tonumber(offset) + tonumber(length) }
    end
  end
end
local record = part ~= '' and redis.call('HGET', parts, part)
if record then
  local length = tonumber(record:match('^%d+'))
  redis.call('HDEL', parts, part)
  upload.stored_bytes = text(tonumber(upload.stored_bytes) - length)
  lost = lost + length
  gone[#gone + 1] = { tonumber(start), tonumber(start) + length }
end
if lost > 0 then
  -- Whoever sends a lost chunk again must not be told of a conflict.
  local records = redis.call('HGETALL', chunks)
  for i = 1, #records, 2 do
    local length, offset = records[i + 1]:match('^(%d+) %x+ (%d+)$')
    for _, range in ipairs(gone) do
      if offset and tonumber(offset) < range[2] and tonumber(offset) + tonumber(length) > range[1] then
        redis.call('HSET', chunks, records[i], 'lost ' .. length .. ' ' .. offset)
        break
      end
    end
  end
  upload.received_bytes = text(tonumber(upload.received_bytes) - lost)
  redis.call('HSET', state, 'status', 'UPLOADING', 'received_bytes', upload.received_bytes, 'stored_bytes', upload.stored_bytes,
    'low_part', '0', 'low_start', '0', 'sha256_seen', '', 'lease_until', '0')
  tell(upload, 'UPLOADING', upload.received_bytes, upload.stored_bytes)
end
local now = now_ms()
keep_alive(upload, now)
look_at(now + tonumber(lookMs))
return { 'OK', text(lost) }
