-- upload.lua (prelude): what the scripts of an upload share: its clock, its part plan, its bytes in the chunks Redis, its progress.
--
-- Parts. Part p covers the same bytes for everybody and for ever: every part has part_bytes bytes, or, when the length was
-- unknown at the start, part_bytes for the first grow_every parts, twice that for the next, and so on. The last part ends
-- with the file.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

-- The state as a table, or nil. Numbers stay strings.
local function read_state()
  local flat = redis.call('HGETALL', state)
  if #flat == 0 then return nil end
  local upload = {}
  for i = 1, #flat, 2 do upload[flat[i]] = flat[i + 1] end
  return upload
end

local function is_open(upload)
  return upload.status == 'PENDING' or upload.status == 'UPLOADING'
end

-- Where the part that holds `offset` begins, and how long it is if the file does not end in it.
local function part_at(upload, offset)
  local size, every = tonumber(upload.part_bytes), tonumber(upload.grow_every)
  if every == 0 then
    local index = math.floor(offset / size)
    return index, index * size, size
  end
  local start, index = 0, 0
  while offset >= start + size * every do
    start, index, size = start + size * every, index + every, size * 2
  end
  local within = math.floor((offset - start) / size)
  return index + within, start + within * size, size
end

-- The same, cut at the end of the file once that is known.
local function part_cut(upload, offset)
  local index, start, size = part_at(upload, offset)
  local total = tonumber(upload.expected_size)
  if total and start + size > total then size = total - start end
  return index, start, size
end

-- Where the part with this number begins.
local function part_numbered(upload, index)
  local size, every = tonumber(upload.part_bytes), tonumber(upload.grow_every)
  local start = 0
  while every > 0 and index >= every do
    start, index, size = start + size * every, index - every, size * 2
  end
  return start + index * size
end

-- Whether all bytes of the part are buffered.
local function is_full(upload, index, size)
  return tonumber(redis.call('HGET', fill, text(index)) or '0') == size and size > 0
end

-- Extents are members of `held`: "offset length source frame_bytes start name", source being the attempt whose frames hold the
-- bytes, or "*" and a staging object. No extent crosses the end of a part.
local function hold(upload, offset, length, source, frame_bytes, start, name, ready)
  while length > 0 do
    local index, from, size = part_at(upload, offset)
    local piece = math.min(length, from + size - offset)
    local member = table.concat({ text(offset), text(piece), source, frame_bytes, text(start), name }, ' ')
    redis.call('ZADD', held, offset, member)
    redis.call('HINCRBY', fill, text(index), text(piece))
    redis.call('HINCRBY', attempts, source .. ':refs', 1)
    redis.call('HINCRBY', budget, 'queued', 1)
    local _, _, cut = part_cut(upload, offset)
    if is_full(upload, index, cut) then ready[#ready + 1] = text(index) end
    offset, start, length = offset + piece, start + piece, length - piece
  end
end

local function let_go(member)
  redis.call('ZREM', held, member)
  redis.call('HINCRBY', budget, 'queued', -1)
end

-- Whether any byte of the range is there already.
local function overlaps(upload, offset, length)
  if length == 0 then return false end
  local before = redis.call('ZRANGE', held, '(' .. text(offset + length), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)
  if #before > 0 then
    local from, size = before[1]:match('^(%d+) (%d+) ')
    if tonumber(from) + tonumber(size) > offset then return true end
  end
  local at = offset
  while at < offset + length do
    local index, from, size = part_at(upload, at)
    if redis.call('HEXISTS', parts, text(index)) == 1 then return true end
    at = from + size
  end
  return false
end

-- Budget. `reserved` of an upload is its share of `used`, which is what all uploads of this partition may have in the chunks
-- Redis together. `charged` is what its attempts take there, paid before the first byte is sent.
local function reserve(upload, bytes)
  local more = bytes - tonumber(upload.reserved)
  if more == 0 then return end
  redis.call('HINCRBY', budget, 'used', text(more))
  redis.call('HSET', state, 'reserved', text(bytes))
  upload.reserved = text(bytes)
end

local function charge(upload, bytes)
  upload.charged = text(tonumber(upload.charged) + bytes)
  redis.call('HSET', state, 'charged', upload.charged)
end

-- An attempt whose frames nobody needs any more. The caller drops them; until that is done, `attempts` names them with a "!".
local function free(upload, attempt, freed)
  local paid = redis.call('HGET', attempts, attempt)
  if not paid then return end
  redis.call('HDEL', attempts, attempt, attempt .. ':refs')
  charge(upload, -tonumber(paid:match('^%d+')))
  if freed then
    local frames = paid:match('(%d+)$')
    redis.call('HSET', attempts, '!' .. attempt, frames)
    freed[#freed + 1] = attempt .. ' ' .. frames
  end
end

-- Attempts of processes that died: their frames have expired. There may be many thousands of attempts, so those who have little time
-- look only from `overdue_at` on: no deadline is earlier, and without one nobody has any.
local function free_overdue(upload, now)
  local first = math.huge
  local all = redis.call('HGETALL', attempts)
  for i = 1, #all, 2 do
    local deadline = tonumber(all[i + 1]:match('^%d+ (%d+) ') or '0')
    if deadline > 0 and deadline < now then
      free(upload, all[i])
    elseif deadline > 0 then
      first = math.min(first, deadline)
    end
  end
  upload.overdue_at = first < math.huge and text(math.max(first, now + 1000)) or nil
  if upload.overdue_at then
    redis.call('HSET', state, 'overdue_at', upload.overdue_at)
  else
    redis.call('HDEL', state, 'overdue_at')
  end
end

-- What is not needed goes back to everybody. Room for one part stays beside what is there: the lowest part, whichever that is
-- after the next one has been written, must find it, or uploads would wait for each other.
local function shrink(upload)
  local least = tonumber(upload.charged) + tonumber(upload.part_charge)
  if tonumber(upload.reserved) > least then reserve(upload, least) end
end

local function drop_reference(upload, source, freed)
  if redis.call('HINCRBY', attempts, source .. ':refs', -1) > 0 then return end
  if source:sub(1, 1) == '*' then
    redis.call('HDEL', attempts, source .. ':refs')
  else
    free(upload, source, freed)
  end
end

-- Frames that nobody needs and nobody has dropped: the caller before died, or its answer got lost.
local function undropped()
  local freed = {}
  local all = redis.call('HGETALL', attempts)
  for i = 1, #all, 2 do
    if all[i]:sub(1, 1) == '!' then freed[#freed + 1] = all[i]:sub(2) .. ' ' .. all[i + 1] end
  end
  return freed
end

-- Chunks that had bytes in these ranges may come again. Where a range begins stands in its name, and a fixed chunk size says it
-- too; other chunks keep the place that they had, and must bring the same bytes.
local function forget_chunks(upload, ranges)
  local records = redis.call('HGETALL', chunks)
  for i = 1, #records, 2 do
    local name = records[i]
    local length, crc64, offset = records[i + 1]:match('^(%d+) (%x+) (%d+)$')
    for _, range in ipairs(ranges) do
      if offset and tonumber(offset) < range[2] and tonumber(offset) + tonumber(length) > range[1] then
        if name:sub(1, 1) == '@' or upload.chunk_size ~= '' then
          redis.call('HDEL', chunks, name)
        else
          redis.call('HSET', chunks, name, table.concat({ 'lost', length, offset, crc64 }, ' '))
        end
        break
      end
    end
  end
end

-- After a loss the sums are made from what is there. What was hashed in passing may not be what comes the next time.
local function recount(upload)
  local stored, waiting = 0, 0
  for _, record in ipairs(redis.call('HVALS', parts)) do stored = stored + tonumber(record:match('^%d+')) end
  for _, member in ipairs(redis.call('ZRANGE', held, 0, -1)) do waiting = waiting + tonumber(member:match('^%d+ (%d+)')) end
  for _, entry in ipairs(redis.call('HVALS', window)) do waiting = waiting + tonumber(entry:match('^%d+')) end
  upload.stored_bytes, upload.received_bytes = text(stored), text(stored + waiting)
  redis.call('HSET', state, 'received_bytes', upload.received_bytes, 'stored_bytes', upload.stored_bytes,
    'received_chunks', redis.call('HLEN', chunks), 'low_part', '0', 'low_start', '0', 'sha256_seen', '', 'losses', '1')
end

-- The next time somebody looks at this upload, whatever happens to the processes that work on it.
local function look_at(at)
  redis.call('ZADD', attention, at, id)
end

-- The same, unless somebody looks before: an upload that is never quiet is looked at too.
local function look_by(at)
  redis.call('ZADD', attention, 'LT', at, id)
end

-- Open uploads are ended by whoever looks at them when they expire; most keys outlive that moment by a day. Those that the budget counts,
-- the state and what is held, stay until then. A key that became empty and came back has no expiry, so all get it every time.
local function keep(upload)
  local ttl = tonumber(upload.idle_ms) + 86400000
  for _, key in ipairs({ chunks, parts, fill, window, attempts, progress }) do
    redis.call('PEXPIRE', key, ttl)
  end
end

-- The client, or what it sent, has moved.
local function keep_alive(upload, now)
  redis.call('HSET', state, 'updated_at', now)
  keep(upload)
end

-- One numbered line for whoever watches.
local function tell(upload, status, received, stored)
  local sequence = redis.call('HINCRBY', state, 'sequence', 1)
  redis.call('XADD', progress, 'MAXLEN', '~', 100, sequence .. '-0', 'status', status, 'received', received, 'stored', stored,
    'size', upload.expected_size)
  if sequence == 1 then redis.call('PEXPIRE', progress, tonumber(upload.idle_ms) + 86400000) end
end
