#!lua
-- declare.lua: the client says how long the file is, or what its digest is, after it began.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, size, sha256, seen, lookMs
-- Returns {word, '1' if every byte is stored, {ready part}}; word is 'OK', 'SAME' (it is being completed, or is, as it is declared), 'SIZE'
--   (other bytes are there already), 'TOO_LARGE', 'DIGEST', 'LATE' (what is being completed is not compared any more), 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
-- Of what has all its bytes, what was declared before may be said again.
local function said_late()
  if upload.status ~= 'COMPLETING' and upload.status ~= 'COMPLETED' then return 'ENDED' end
  if size ~= '' and size ~= upload.expected_size then return 'SIZE' end
  if sha256 == '' or sha256 == upload.sha256 then return 'SAME' end
  if upload.sha256 ~= '' then return 'DIGEST' end
  if upload.status == 'COMPLETING' then return 'LATE' end
  return cjson.decode(upload.result).sha256 == sha256 and 'SAME' or 'DIGEST'
end
if not is_open(upload) then return { said_late() } end
if sha256 ~= '' and upload.sha256 ~= '' and upload.sha256 ~= sha256 then return { 'DIGEST' } end
if size ~= '' then
  if upload.expected_size ~= '' and upload.expected_size ~= size then return { 'SIZE' } end
  if tonumber(upload.reach) > tonumber(size) then return { 'SIZE' } end
  -- Chunks that wait for their predecessors are bytes of the file too, wherever they will be.
  if tonumber(upload.received_bytes) > tonumber(size) then return { 'SIZE' } end
  if tonumber(size) > (tonumber(upload.max_file_bytes or '') or math.huge) then return { 'TOO_LARGE', upload.max_file_bytes } end
  upload.expected_size = size
  redis.call('HSET', state, 'expected_size', size)
end
if sha256 ~= '' then redis.call('HSET', state, 'sha256', sha256) end
if seen ~= '' and not upload.losses then redis.call('HSET', state, 'sha256_seen', seen) end
local ready = {}
if upload.expected_size ~= '' and tonumber(upload.expected_size) > 0 then
  local index, _, cut = part_cut(upload, tonumber(upload.expected_size) - 1)
  if is_full(upload, index, cut) then ready[1] = text(index) end
end
local now = now_ms()
keep_alive(upload, now)
look_by(now + tonumber(lookMs))
local all = upload.expected_size ~= '' and upload.stored_bytes == upload.expected_size
return { 'OK', all and '1' or '', ready }
