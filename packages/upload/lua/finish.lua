#!lua flags=allow-oom
-- finish.lua: the upload has its end, which the records know already: COMPLETED with its result, FAILED, CANCELLED or EXPIRED with
-- its reason. What it had reserved goes back; `attempts` name the frames that are to be dropped, until somebody has done that (see
-- forget.lua). Its answer stays readable.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, status, fields, keepMs, lookMs
-- Returns {word, {attempt and its frames, …}}: 'OK', 'DONE' (it had ended before) or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
local left = undropped()
local all = redis.call('HGETALL', attempts)
for i = 1, #all, 2 do
  local frames = all[i + 1]:match('^%d+ %d+ (%d+)$')
  if frames then left[#left + 1] = all[i]:gsub('^!', '') .. ' ' .. frames end
end
if not is_open(upload) and upload.status ~= 'COMPLETING' then return { 'DONE', left } end
reserve(upload, 0)
redis.call('HINCRBY', budget, 'queued', text(0 - redis.call('ZCARD', held)))
redis.call('HSET', state, 'status', status, 'charged', '0', unpack(cjson.decode(fields)))
local now = now_ms()
redis.call('HSET', state, 'updated_at', now)
tell(upload, status, upload.received_bytes, upload.stored_bytes)
for _, key in ipairs({ state, chunks, parts, attempts, progress }) do redis.call('PEXPIRE', key, keepMs) end
redis.call('DEL', held, fill, window)
look_at(now + tonumber(lookMs))
return { 'OK', left }
