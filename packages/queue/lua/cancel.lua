#!lua flags=allow-oom
-- cancel.lua: ends a job wherever it is. A waiting one leaves a tombstone in its list, which the claim that meets it removes
-- (searching the list would take time that grows with it). A running one is ended in the books at once; its worker learns of
-- it with its next call, and whatever its handler still returns is refused.
-- KEYS cfg HASH, sessions ZSET, rescuing ZSET, active HASH, lanes HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST
-- KEYS wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET, suspects LIST, groups HASH, group ZSET, fresh LIST, ring LIST
-- KEYS groupActive HASH, unique STRING, ended ZSET, results HASH, dependents HASH, chained LIST, blocked HASH, deps SET, dead ZSET
-- KEYS deadInfo HASH, deadGroup ZSET, deadGroups ZSET, deadTitles HASH, tries LIST, progress HASH, logs LIST, stats HASH
-- KEYS events STREAM
-- ARGV id, keepMs
-- Returns 'UNKNOWN', 'ENDED', or the state that the job was in: 'waiting', 'delayed', 'blocked', 'active', 'dead'
local packed = single_out(id)
if not packed then return redis.call('ZSCORE', ended, id) and 'ENDED' or 'UNKNOWN' end
if packed:byte(1) == TOMBSTONE then return 'ENDED' end
local now = now_ms()

local function holder()
  for _, key in ipairs({ sessions, rescuing }) do
    for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if token_in(active .. session, id) then return session end
    end
  end
end

local function leave()
  if exhume(id) then return 'dead' end
  if redis.call('HDEL', blocked, id) == 1 then
    redis.call('DEL', deps .. id)
    return 'blocked'
  end
  local due = redis.call('ZSCORE', delayed, id)
  if due then
    redis.call('ZREM', delayed, id)
    return tonumber(due) > now and 'delayed' or 'waiting'
  end
  local session = holder()
  if session then
    token_apart(active .. session, id)
    redis.call('HDEL', active .. session, id)
    free(packed)
    local list = redis.call('HGET', lanes .. session, 'cancelled')
    list = list and cmsgpack.unpack(list) or {}
    list[#list + 1] = id
    redis.call('HSET', lanes .. session, 'cancelled', cmsgpack.pack(list))
    return 'active'
  end
  if math.floor(packed:byte(3) / 16) > 0 and redis.call('LREM', suspects, 1, id) == 1 then return 'waiting' end
  if has(packed:byte(1), 32) then
    local name = options_of(packed).g
    redis.call('ZREM', group .. name, id)
    if redis.call('HGET', groups, name) == 'ready' then return 'waiting' end
    redis.call('HINCRBY', cfg, 'held', -1)
    return 'blocked'
  end
  return 'listed'
end

local was = leave()
finish(now, id, packed, 'cancelled', keepMs, '')
if was == 'listed' then
  redis.call('HSET', jobs, id, string.char(TOMBSTONE) .. packed:sub(2, 3))
  redis.call('HINCRBY', cfg, 'tombstones', 1)
  return 'waiting'
end
return was
