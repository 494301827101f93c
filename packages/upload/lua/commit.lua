#!lua
-- commit.lua: a chunk counts from here on. Its bytes are already where they belong: in frames (then they are held until their part
-- is written) or in the store (then whole parts are recorded). The same bytes again are a success, others a conflict.
--
-- `pieces` is a JSON list: ["f", offset, length, attempt, frame bytes] or ["p", part, offset, length, etag, crc64, key]. Bytes for which
-- there was no room are in a staging object: ["f", offset, length, "*" and its key, 0].
-- A numbered chunk without a fixed chunk size has offset '': it takes its place when all before it have theirs, and waits in
-- `window` until then.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, name, number, offset, length, crc64, pieces, last, sha256, maxChunks, maxParts, lookMs
-- Returns {word, received bytes, stored bytes, '1' if every byte is stored, {ready part or freed "attempt frames", …}}; word is 'OK',
--   'DUPLICATE', 'CONFLICT', 'OVERLAP', 'BEYOND', 'LAST', 'TOO_MANY', 'TOO_LARGE', 'UNPAID', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
local list = cjson.decode(pieces)
local function answer(word, ready)
  local all = upload.expected_size ~= '' and upload.stored_bytes == upload.expected_size
  return { word, upload.received_bytes, upload.stored_bytes, all and '1' or '', ready or {} }
end

local function is_staged(piece)
  return piece[1] == 'f' and piece[4]:sub(1, 1) == '*'
end

-- Whether this very piece has been committed: then the first answer got lost.
local function is_committed(piece)
  if piece[1] == 'p' then
    return redis.call('HGET', parts, text(piece[2])) == table.concat({ text(piece[4]), piece[6], piece[5], piece[7] }, ' ')
  end
  if is_staged(piece) then return redis.call('HEXISTS', attempts, piece[4] .. ':refs') == 1 end
  local paid = redis.call('HGET', attempts, piece[4])
  return piece[3] == 0 or (paid and paid:match('^%d+ 0 ') ~= nil)
end

local function same_answer(at)
  for _, piece in ipairs(list) do
    if not is_committed(piece) then return answer('DUPLICATE') end
  end
  local ready = {}
  local stop = at and tonumber(at) + tonumber(length) or 0
  at = tonumber(at)
  while at and at < stop do
    local index, from, cut = part_cut(upload, at)
    if is_full(upload, index, cut) then ready[#ready + 1] = text(index) end
    at = from + math.max(cut, 1)
  end
  return answer('OK', ready)
end

-- A part that was written twice at once has other bytes now, or the first ones: nobody knows. It is asked for again. Objects have
-- keys of their own, and are not touched by the second one.
local function lose_rewritten()
  local gone = {}
  for _, piece in ipairs(list) do
    if piece[1] == 'p' and piece[7] == '' and redis.call('HDEL', parts, text(piece[2])) == 1 then
      gone[#gone + 1] = { piece[3], piece[3] + piece[4] }
    end
  end
  if #gone == 0 then return end
  forget_chunks(upload, gone)
  recount(upload)
  tell(upload, upload.status, upload.received_bytes, upload.stored_bytes)
end

-- "length crc64 offset", or "lost length offset crc64" when its bytes were there and are gone.
local record = redis.call('HGET', chunks, name)
local lostLength, lostOffset, lostCrc = (record or ''):match('^lost (%d+) (%d+) (%x+)$')
if lostLength then
  if lostLength ~= length or lostCrc ~= crc64 then return answer('CONFLICT') end
  offset = lostOffset
elseif record then
  local known, at = record:match('^(%d+ %x+) (%d*)$')
  if known == length .. ' ' .. crc64 then return same_answer(at ~= '' and at) end
  if is_open(upload) then lose_rewritten() end
  return answer('CONFLICT')
end
if not is_open(upload) then return answer('ENDED') end
if redis.call('HLEN', chunks) >= tonumber(maxChunks) then return answer('TOO_MANY') end

local bytes = tonumber(length)
-- Chunks that come at once could pass the limit together.
local most = tonumber(upload.max_file_bytes or '')
if most and tonumber(upload.received_bytes) + bytes > most then return answer('TOO_LARGE') end
local waits = false
local offset_unknown = offset == ''
if offset_unknown then
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
  if not lostLength and overlaps(upload, tonumber(offset), bytes) then return answer('OVERLAP') end
  local index = part_at(upload, math.max(0, stop - 1))
  if index >= tonumber(maxParts) then return answer('TOO_MANY') end
elseif total and tonumber(upload.received_bytes) + bytes > total then
  return answer('BEYOND')
elseif last == '1' and upload.last_chunk ~= '' and upload.last_chunk ~= number then
  return answer('LAST')
elseif upload.last_chunk ~= '' and tonumber(number) > tonumber(upload.last_chunk) then
  return answer('BEYOND')
end
if last == '1' and offset_unknown then
  for _, waiting in ipairs(redis.call('HKEYS', window)) do
    if tonumber(waiting) > tonumber(number) then return answer('LAST') end
  end
end
for _, piece in ipairs(list) do
  -- What waits for its predecessors waits in Redis.
  local isPaid = piece[1] == 'p' or piece[3] == 0
  if not isPaid and is_staged(piece) then isPaid = not waits end
  if not isPaid and redis.call('HEXISTS', attempts, piece[4]) == 0 then return answer('UNPAID') end
end

local now = now_ms()
local ready = {}
-- No bytes at some place are no chunk: the ones that belong there come under the same name.
if bytes > 0 or number ~= '' then
  redis.call('HSET', chunks, name, length .. ' ' .. crc64 .. ' ' .. (waits and '' or offset))
end
if not lostLength then upload.received_bytes = text(tonumber(upload.received_bytes) + bytes) end
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

-- Of a chunk that was lost in part, only that part is taken; the rest is still there.
local function hold_missing(at, size, attempt, frameBytes)
  local stop, taken = at + size, 0
  local from = at
  while at < stop do
    local _, start, partSize = part_at(upload, at)
    local piece = math.min(stop, start + partSize) - at
    if not overlaps(upload, at, piece) then
      hold(upload, at, piece, attempt, frameBytes, at - from, name, ready)
      taken = taken + piece
    end
    at = at + piece
  end
  upload.received_bytes = text(tonumber(upload.received_bytes) + taken)
  if taken == 0 then free(upload, attempt, ready) end
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
    if lostLength then
      hold_missing(at, piece[3], piece[4], text(piece[5]))
    else
      hold(upload, at, piece[3], piece[4], text(piece[5]), 0, name, ready)
    end
  end
end

-- A chunk that waited and does not fit where it would have to go is as if it had not come; whoever sends it again learns why.
local function fits(at, size, isLast)
  local total = tonumber(upload.expected_size)
  if total and (at + size > total or (isLast and at + size ~= total)) then return false end
  return not overlaps(upload, at, size) and part_at(upload, math.max(0, at + size - 1)) < tonumber(maxParts)
end

-- The successors that waited for this one take their places.
if number ~= '' and number == upload.next_chunk and upload.chunk_size == '' and not lostLength then
  local nextChunk, nextOffset = tonumber(number) + 1, tonumber(offset) + bytes
  local waiting = redis.call('HGET', window, text(nextChunk))
  while waiting do
    local following = text(nextChunk)
    local size, attempt, frameBytes, isLast = waiting:match('^(%d+) (%S+) (%d+) ?(.*)$')
    redis.call('HDEL', window, following)
    if not fits(nextOffset, tonumber(size), isLast == '1') then
      redis.call('HDEL', chunks, following)
      upload.received_bytes = text(tonumber(upload.received_bytes) - tonumber(size))
      free(upload, attempt, ready)
      if isLast == '1' then redis.call('HSET', state, 'is_last_received', 'false', 'last_chunk', '') end
      break
    end
    if isLast == '1' then
      upload.expected_size = text(nextOffset + tonumber(size))
      redis.call('HSET', state, 'expected_size', upload.expected_size)
    end
    redis.call('HSET', chunks, following, redis.call('HGET', chunks, following) .. text(nextOffset))
    hold(upload, nextOffset, tonumber(size), attempt, frameBytes, 0, following, ready)
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
-- After a loss nobody knows whether what was hashed is what is stored.
if sha256 ~= '' and not upload.losses then redis.call('HSET', state, 'sha256_seen', sha256) end
redis.call('HSET', state, 'received_bytes', upload.received_bytes, 'stored_bytes', upload.stored_bytes,
  'received_chunks', redis.call('HLEN', chunks))
keep_alive(upload, now)
tell(upload, upload.status, upload.received_bytes, upload.stored_bytes)
look_by(now + tonumber(lookMs))
return answer('OK', ready)
