#!lua flags=allow-oom
-- look.lua: everything the books say about one job. Reads only.
-- KEYS sessions ZSET, rescuing ZSET, active HASH, jobs HASH, delayed ZSET, ended ZSET, results HASH, blocked HASH, deps SET
-- KEYS dead ZSET, deadInfo HASH, groups HASH, tries LIST, progress HASH, logs LIST
-- ARGV id
-- Returns {state or '', packed, due ms, session, token, progress, outcome and result, detail, dependency refs, tries, logs,
--   labels of one that ended (JSON) or ''}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local packed = packed_of(id)
local report = redis.call('HGET', progress, id) or ''
local tried = redis.call('LRANGE', tries .. id, 0, -1)
local lines = redis.call('LRANGE', logs .. id, 0, -1)
if not packed or packed:byte(1) == 255 then
  -- The tombstone of a cancelled job may outlive the memory of it.
  local result = redis.call('ZSCORE', ended, id) and redis.call('HGET', results, id) or packed and 'c'
  if not result then return { '' } end
  local labels = redis.call('HGET', results, '#' .. id) or ''
  return { result:sub(1, 1) == 'd' and 'done' or 'cancelled', '', 0, '', '', report, result, '', {}, tried, lines, labels }
end
local function answer(state, due, session, token, detail, refs)
  return { state, packed, due or 0, session or '', token or '', report, '', detail or '', refs or {}, tried, lines, '' }
end
if redis.call('ZSCORE', dead, id) then return answer('dead', 0, '', '', cmsgpack.unpack(redis.call('HGET', deadInfo, id))[2]) end
if redis.call('HEXISTS', blocked, id) == 1 then return answer('blocked', 0, '', '', '', redis.call('SMEMBERS', deps .. id)) end
local due = redis.call('ZSCORE', delayed, id)
if due and tonumber(due) > now then return answer('delayed', tonumber(due)) end
for _, key in ipairs({ sessions, rescuing }) do
  for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    local token = token_in(active .. session, id)
    if token then return answer('active', 0, session, token) end
  end
end
-- A job that saw a worker die waits among the suspects, not in its group.
if math.floor(packed:byte(1) / 32) % 2 == 1 and packed:byte(3) < 16 then
  local length = packed:byte(9) * 256 + packed:byte(10)
  local name = cjson.decode(packed:sub(11, 10 + length)).g
  local state = redis.call('HGET', groups, name)
  if not due and (state == 'full' or state == 'slow') then return answer('blocked') end
end
return answer('waiting')
