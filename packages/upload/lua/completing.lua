#!lua flags=allow-oom
-- completing.lua: somebody wants to complete this upload. Every byte must be stored; one at a time may try, under a lease whose
-- fence grows with every holder. A holder that died is followed by the next when its lease has run out. A lease that would last longer than
-- it was given for is from before the clock was set back: who holds it renews it soon, or is dead.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, holder, leaseMs
-- Returns {word, fence, state field, value, …}; word is 'OK', 'HELD', 'MISSING', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE', '0' } end
if not is_open(upload) and upload.status ~= 'COMPLETING' then return { 'ENDED', '0' } end
if upload.expected_size == '' or upload.stored_bytes ~= upload.expected_size then return { 'MISSING', '0' } end
local now = now_ms()
local left = tonumber(upload.lease_until or '0') - now
if upload.status == 'COMPLETING' and left > 0 and left <= tonumber(upload.lease_ms or leaseMs) then
  if upload.lease_holder ~= holder then return { 'HELD', '0' } end
  -- The first answer got lost.
  return { 'OK', upload.fence, unpack(redis.call('HGETALL', state)) }
end
local fence = redis.call('HINCRBY', state, 'fence', 1)
redis.call('HSET', state, 'status', 'COMPLETING', 'lease_until', text(now + leaseMs), 'lease_ms', leaseMs, 'lease_holder', holder)
keep_alive(upload, now)
look_at(now + leaseMs)
if upload.status ~= 'COMPLETING' then tell(upload, 'COMPLETING', upload.received_bytes, upload.stored_bytes) end
return { 'OK', text(fence), unpack(redis.call('HGETALL', state)) }
