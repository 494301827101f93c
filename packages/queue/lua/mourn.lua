#!lua flags=no-writes
-- mourn.lua: of some dead letters only what it takes to group them: the cause, and the head of the job with its labels. Those that are no
-- longer dead are left out.
-- KEYS jobs HASH, dead ZSET, deadInfo HASH, deadTitles HASH
-- ARGV ids
-- ids: msgpack {id, …}
-- Returns {{id, died ms, fingerprint, title, head}, …}
local answer = {}
for _, id in ipairs(cmsgpack.unpack(ids)) do
  local died = redis.call('ZSCORE', dead, id)
  if died then
    local packed = redis.call('HGET', jobs, id)
    local head = 8
    if packed:byte(1) % 2 == 1 then head = 10 + packed:byte(9) * 256 + packed:byte(10) end
    local print = cmsgpack.unpack(redis.call('HGET', deadInfo, id))[1]
    answer[#answer + 1] = { id, died, print, redis.call('HGET', deadTitles, print) or '', packed:sub(1, head) }
  end
end
return answer
