#!lua flags=allow-oom
-- rescue.lua: takes the jobs of a session that stopped renewing. First the session is marked (from then on all its calls
-- are refused), then its jobs move, a chunk per call; any worker can go on where another stopped.
-- A rescued job counts a crash and waits among the suspects, which run alone, so that its neighbours are not blamed again.
-- KEYS cfg HASH, sessions ZSET, rescuing ZSET, active HASH, lanes HASH, jobs HASH, suspects LIST, wake LIST, tries LIST
-- KEYS wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH
-- ARGV leaseMs, chunk
-- Returns {'NONE'}, {'GRACE', ms until it ends} or {'RESCUED', session, jobs moved, 1 while more remain else 0, ids}
local TRIES_KEPT = 20 -- as in finish.lua
local now = now_ms()
survive_outage(now, tonumber(leaseMs))
local session = redis.call('ZRANGE', rescuing, 0, 0)[1]
if not session then
  if in_grace(now) then return { 'GRACE', tonumber(redis.call('HGET', cfg, 'graceUntil')) - now } end
  session = redis.call('ZRANGE', sessions, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1)[1]
  if not session then return { 'NONE' } end
  redis.call('ZREM', sessions, session)
  redis.call('ZADD', rescuing, now, session)
  local description = redis.call('HGET', active .. session, '#') or '{}'
  redis.call('HSET', lanes .. session, 'worker', cjson.decode(description).name or session)
  untie(active .. session)
  redis.call('HDEL', active .. session, '#', '#0', '#1')
end
local held = active .. session
local worker = redis.call('HGET', lanes .. session, 'worker')
local moved = {}
for _, id in ipairs(redis.call('HRANDFIELD', held, chunk)) do
  local packed = redis.call('HGET', jobs, id)
  if packed then
    local crashes = math.floor(packed:byte(3) / 16) + 1
    local marked = with_flag(packed, 16)
    redis.call('HSET', jobs, id, with_header(marked, marked:byte(1), packed:byte(2), crashes))
    redis.call('HDEL', held, id)
    free(packed)
    redis.call('RPUSH', suspects, id)
    local try = { packed:byte(2) + 1, now, 'crash', worker, 'WORKER_CRASHED', 'the worker died while it ran the job', '' }
    if redis.call('RPUSH', tries .. id, cjson.encode(try)) > TRIES_KEPT then
      redis.call('LSET', tries .. id, 1, '')
      redis.call('LREM', tries .. id, 1, '')
    end
    moved[#moved + 1] = id
  else
    redis.call('HDEL', held, id)
  end
end
local more = redis.call('EXISTS', held)
if more == 0 then
  redis.call('DEL', held, lanes .. session)
  redis.call('ZREM', rescuing, session)
end
if #moved > 0 then rouse() end
return { 'RESCUED', session, #moved, more, moved }
