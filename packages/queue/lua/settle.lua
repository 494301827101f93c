#!lua flags=allow-oom
-- settle.lua: ends active jobs that leave something behind: a result, a memory of their id, a notice to other jobs, a grave.
-- (Jobs that leave nothing end in claim.lua.) Each item must show the token of its claim.
-- KEYS cfg HASH, sessions ZSET, active HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST
-- KEYS wait5 LIST, delayed ZSET, groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET
-- KEYS results HASH, dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET
-- KEYS deadTitles HASH, tries LIST, progress HASH, logs LIST, stats HASH, events STREAM
-- ARGV session, items
-- items: msgpack {{id, token, 'done' | 'cancelled' | 'dead', keep ms, result, try, dead detail, fingerprint, title}, …}
-- Returns {'LEASE_LOST'} or {'OK', 'SETTLED' | 'ALREADY', …}
if not redis.call('ZSCORE', sessions, session) then return { 'LEASE_LOST' } end
local now = now_ms()
local answer = { 'OK' }
for _, item in ipairs(cmsgpack.unpack(items)) do
  local id, token, outcome, keep_ms, result, try, detail, print, title = unpack(item)
  local packed = token_apart(active .. session, id) == token and redis.call('HGET', jobs, id)
  if packed then
    redis.call('HDEL', active .. session, id)
    free(packed)
    remember_try(id, try)
    if outcome == 'dead' then
      bury(now, id, packed, detail, print, title)
    else
      finish(now, id, packed, outcome, keep_ms, result)
    end
    answer[#answer + 1] = 'SETTLED'
  else
    answer[#answer + 1] = 'ALREADY'
  end
end
return answer
