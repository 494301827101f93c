#!lua flags=allow-oom
-- retry.lua: an active job goes back: after a failure (which counts an attempt), a snooze or an early return (which do not).
-- KEYS cfg HASH, sessions ZSET, active HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST
-- KEYS wait5 LIST, delayed ZSET, groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET
-- KEYS results HASH, dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET
-- KEYS deadTitles HASH, tries LIST, progress HASH, logs LIST, stats HASH, events STREAM
-- ARGV session, items
-- items: msgpack {{id, token, 'failed' | 'snoozed' | 'returned', delay ms or '', run at ms or '', try}, …}
-- Returns {'LEASE_LOST'} or {'OK', 'DELAYED' | 'ALREADY', …}
if not redis.call('ZSCORE', sessions, session) then return { 'LEASE_LOST' } end
local now = now_ms()
local answer = { 'OK' }
for _, item in ipairs(cmsgpack.unpack(items)) do
  local id, token, why, delay, run_at, try = unpack(item)
  local packed = token_apart(active .. session, id) == token and redis.call('HGET', jobs, id)
  if packed then
    redis.call('HDEL', active .. session, id)
    free(packed)
    if why == 'failed' then
      local marked = with_flag(packed, 16)
      local crashes = math.floor(packed:byte(3) / 16)
      redis.call('HSET', jobs, id, with_header(marked, marked:byte(1), packed:byte(2) + 1, crashes))
      remember_try(id, try)
      tally(now, 'failed', 1)
      tell('failed', id)
    end
    if delay ~= '' and tonumber(delay) > 0 then
      set_due(id, now + tonumber(delay))
    elseif run_at ~= '' then
      set_due(id, math.max(tonumber(run_at), 1))
    else
      set_due(id, 0)
    end
    answer[#answer + 1] = 'DELAYED'
  else
    answer[#answer + 1] = 'ALREADY'
  end
end
return answer
