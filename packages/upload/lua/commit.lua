#!lua
-- commit.lua: a chunk counts from here on. Its bytes are already where they belong: in frames (then they are held until their part
-- is written) or in the store (then whole parts are recorded). The same bytes again are a success, others a conflict.
--
-- `pieces` is a JSON list: ["f", offset, length, attempt, frame bytes] or ["p", part, offset, length, etag, crc64, key].
-- A numbered chunk without a fixed chunk size has offset '': it takes its place when all before it have theirs, and waits in
-- `window` until then.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, name, number, offset, length, crc64, pieces, last, sha256, maxChunks, maxParts, lookMs
-- Returns {word, received bytes, stored bytes, '1' if every byte is stored, ready part, …}; word is 'OK', 'DUPLICATE', 'CONFLICT',
--   'OVERLAP', 'BEYOND', 'LAST', 'WINDOW', 'TOO_MANY', 'UNPAID', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
local list = cjson.decode(pieces)
local function answer(word, ready)
  local all = upload.expected_size ~= '' and upload.stored_bytes == upload.expected_size
  return { word, upload.received_bytes, upload.stored_bytes, all and '1' or '', unpack(ready or {}) }
end

-- "length crc64 offset", or "lost length offset" when its bytes were there and are gone.
local record = redis.call('HGET', chunks, name)
local lostLength, lostOffset = (record or ''):match('^lost (%d+) (%d+)$')
if lostLength then
  if lostLength ~= length then return answer('CONFLICT') end
  offset = lostOffset
elseif record then
  if record:match('^%d+ %x+') == length .. ' ' .. crc64 then return answer('DUPLICATE') end
  -- A part that was written twice at once has other bytes now, or the first ones: nobody knows. It is asked for again.
  if is_open(upload) then
    for _, piece in ipairs(list) do
      if piece[1] == 'p' and redis.call('HDEL', parts, text(piece[2])) == 1 then
        redis.call('HDEL', chunks, name)
        upload.stored_bytes = text(tonumber(upload.stored_bytes) - piece[4])
        upload.received_bytes = text(tonumber(upload.received_bytes) - piece[4])
        redis.call('HSET', state, 'stored_bytes', upload.stored_bytes, 'received_bytes', upload.received_bytes)
      end
    end
  end
  return answer('CONFLICT')
end
if not is_open(upload) then return answer('ENDED') end
if redis.call('HLEN', chunks) >= tonumber(maxChunks) then return answer('TOO_MANY') end

local bytes = tonumber(length)
local waits = false
if offset == '' then
  if tonumber(number) < tonumber(upload.next_chunk) then return answer('CONFLICT') end
  waits = number ~= upload.next_chunk
  if not waits then offset = upload.next_offset end
end

local total = tonumber(upload.expected_size)
if not waits then
  local stop = tonumber(offset) + bytes
  if total and stop > total then return answer('BEYOND') end
  if last == '1' then
    if total and stop ~= total then return answer('LAST') end
    if tonumber(upload.reach) > stop then return answer('LAST') end
  end
  if overlaps(upload, tonumber(offset), bytes) then return answer('OVERLAP') end
  local index = part_at(upload, math.max(0, stop - 1))
  if index >= tonumber(maxParts) then return answer('TOO_MANY') end
elseif last == '1' and upload.last_chunk ~= '' and upload.last_chunk ~= number then
  return answer('LAST')
elseif upload.last_chunk ~= '' and tonumber(number) > tonumber(upload.last_chunk) then
  return answer('BEYOND')
end
for _, piece in ipairs(list) do
  if piece[1] == 'f' and piece[3] > 0 and redis.call('HEXISTS', attempts, piece[4]) == 0 then return answer('UNPAID') end
end

local now = now_ms()
local ready = {}
redis.call('HSET', chunks, name, length .. ' ' .. crc64 .. ' ' .. (waits and '' or offset))
upload.received_bytes = text(tonumber(upload.received_bytes) + bytes)
if last == '1' then
  redis.call('HSET', state, 'is_last_received', 'true', 'last_chunk', number)
  if not waits then
    upload.expected_size = text(tonumber(offset) + bytes)
    redis.call('HSET', state, 'expected_size', upload.expected_size)
  end
end

-- From now on the attempt has no deadline: these are the only copies.
local function settle(attempt)
  local paid = redis.call('HGET', attempts, attempt)
  if paid then redis.call('HSET', attempts, attempt, (paid:gsub('^(%d+) %d+ ', '%1 0 '))) end
end

for _, piece in ipairs(list) do
  if piece[1] == 'p' then
    redis.call('HSET', parts, text(piece[2]), table.concat({ text(piece[4]), piece[6], piece[5], piece[7] }, ' '))
    upload.stored_bytes = text(tonumber(upload.stored_bytes) + piece[4])
  elseif waits then
    settle(piece[4])
    redis.call('HSET', window, number, table.concat({ length, piece[4], piece[5], last }, ' '))
  elseif piece[3] > 0 then
    settle(piece[4])
    local at = piece[2] == '' and tonumber(offset) or piece[2]
    hold(upload, at, piece[3], piece[4], text(piece[5]), 0, name, ready)
  end
end

-- The successors that waited for this one take their places.
if number ~= '' and number == upload.next_chunk and upload.chunk_size == '' and not lostLength then
  local nextChunk, nextOffset = tonumber(number) + 1, tonumber(offset) + bytes
  local waiting = redis.call('HGET', window, text(nextChunk))
  while waiting do
    local size, attempt, frameBytes, isLast = waiting:match('^(%d+) (%S+) (%d+) ?(.*)$')
    redis.call('HDEL', window, text(nextChunk))
    if isLast == '1' then
      upload.expected_size = text(nextOffset + tonumber(size))
      redis.call('HSET', state, 'expected_size', upload.expected_size)
    end
    local kept = redis.call('HGET', chunks, text(nextChunk))
    redis.call('HSET', chunks, text(nextChunk), kept .. text(nextOffset))
    hold(upload, nextOffset, tonumber(size), attempt, frameBytes, 0, text(nextChunk), ready)
    nextOffset, nextChunk = nextOffset + tonumber(size), nextChunk + 1
    waiting = redis.call('HGET', window, text(nextChunk))
  end
  redis.call('HSET', state, 'next_chunk', text(nextChunk), 'next_offset', text(nextOffset))
  offset, bytes = nextOffset, 0
end

-- Once the end is known, the last part may be full although it is short.
if upload.expected_size ~= '' and tonumber(upload.expected_size) > 0 then
  local lastByte = tonumber(upload.expected_size) - 1
  local index, _, cut = part_cut(upload, lastByte)
  local isListed = false
  for _, part in ipairs(ready) do isListed = isListed or part == text(index) end
  if not isListed and is_full(upload, index, cut) then ready[#ready + 1] = text(index) end
end

if not waits then
  local reach = math.max(tonumber(upload.reach), tonumber(offset) + bytes)
  redis.call('HSET', state, 'reach', text(reach))
end
if upload.status == 'PENDING' then
  upload.status = 'UPLOADING'
  redis.call('HSET', state, 'status', 'UPLOADING', 'first_chunk_at', now)
end
if sha256 ~= '' then redis.call('HSET', state, 'sha256_seen', sha256) end
redis.call('HSET', state, 'received_bytes', upload.received_bytes, 'stored_bytes', upload.stored_bytes,
  'received_chunks', redis.call('HLEN', chunks))
keep_alive(upload, now)
tell(upload, upload.status, upload.received_bytes, upload.stored_bytes)
look_at(now + tonumber(lookMs))
return answer('OK', ready)
