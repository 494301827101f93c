#!lua
-- admit.lua: may so many bytes come into the chunks Redis for this upload? They are paid for here, before the first one is
-- sent. An upload first reserves room for one part. Bytes of its lowest unfinished part always find room there: what lies
-- further ahead may only use what that part does not need. An upload that has begun and was quiet for so long that others got its
-- room sends the bytes of that part to the store instead, where its others are. A chunk that is known by its name is not paid for:
-- what is known of it is the answer.
-- KEYS state HASH, parts HASH, fill HASH, attempts HASH, budget HASH
-- KEYS chunks HASH, held ZSET, window HASH, progress STREAM, attention ZSET
-- ARGV id, name, attempt, offset, bytes, price, frames, budgetBytes, uploadBytes, attemptMs
-- Returns 'OK' (also when this attempt has paid before), 'WAIT' (the lowest part will have room soon), 'FULL' (no room for another
-- upload), 'STAGE' (no room here, but the bytes are wanted), 'BUSY' (no room for what lies so far ahead), 'ENDED' or 'GONE'; or
-- {'KNOWN', record of the chunk}
local upload = read_state()
if not upload then return 'GONE' end
local record = name ~= '' and redis.call('HGET', chunks, name)
if record then return { 'KNOWN', record } end
if not is_open(upload) then return 'ENDED' end
local now = now_ms()
local need = tonumber(price)

if redis.call('HEXISTS', attempts, attempt) == 1 then return 'OK' end
if upload.overdue_at and now >= tonumber(upload.overdue_at) then free_overdue(upload, now) end

local function room_for(bytes)
  local reserved = tonumber(upload.reserved)
  if bytes <= reserved then return true end
  if bytes > tonumber(uploadBytes) then return false end
  local used = tonumber(redis.call('HGET', budget, 'used') or '0')
  if used + bytes - reserved > tonumber(budgetBytes) then return false end
  reserve(upload, bytes)
  return true
end

-- The lowest part that is neither stored nor wholly buffered.
local low = tonumber(upload.low_part)
local start, size = tonumber(upload.low_start), nil
while true do
  local _, from, cut = part_cut(upload, start)
  start, size = from, cut
  if size <= 0 then break end
  if redis.call('HEXISTS', parts, text(low)) == 0 and not is_full(upload, low, size) then break end
  low, start = low + 1, from + cut
end
redis.call('HSET', state, 'low_part', text(low), 'low_start', text(start))

local before = tonumber(upload.reserved)
local isLow = offset ~= '' and tonumber(offset) < start + math.max(size, 0)
if before == 0 and not room_for(math.max(need, tonumber(upload.part_charge))) then
  return isLow and upload.first_chunk_at and 'STAGE' or 'FULL'
end
local paid = tonumber(upload.charged)
local missing = 0
if not isLow then
  local there = tonumber(redis.call('HGET', fill, text(low)) or '0')
  -- Whole bytes only: fractions would be rounded differently in `used` and in `reserved`.
  missing = math.max(0, math.min(tonumber(upload.part_charge), math.ceil((size - there) * 1.25)))
end
if not room_for(paid + need + missing) then
  if not isLow then
    reserve(upload, before)
    return 'BUSY'
  end
  -- With nothing else in the way the lowest bytes find the room that is reserved. What is in the way is written soon, or can be
  -- moved to the store by whoever looks after this upload.
  if paid > 0 or need > tonumber(upload.reserved) then
    redis.call('HSET', state, 'pressed', '1')
    return 'WAIT'
  end
end
redis.call('HSET', attempts, attempt, text(need) .. ' ' .. text(now + attemptMs) .. ' ' .. frames)
if not upload.overdue_at then redis.call('HSET', state, 'overdue_at', text(now + attemptMs)) end
redis.call('PEXPIRE', attempts, tonumber(upload.idle_ms) + 86400000)
charge(upload, need)
-- If nothing comes of it, nobody else would look before the upload expires.
look_by(now + attemptMs + 1)
return 'OK'
