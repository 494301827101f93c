#!lua flags=no-writes
-- letters.lua: what is known about dead letters. Those that are no longer dead are left out. It stops early when the answer
-- becomes large; the caller asks again for the rest.
-- KEYS jobs HASH, dead ZSET, deadInfo HASH, deadTitles HASH, tries LIST
-- ARGV ids, maxBytes
-- ids: msgpack {id, …}
-- Returns {ids looked at, {id, died ms, packed, fingerprint, title, detail, tries}, …}
local bytes, looked = 0, 0
local answer = { 0 }
for _, id in ipairs(cmsgpack.unpack(ids)) do
  if bytes >= tonumber(maxBytes) then break end
  looked = looked + 1
  local died = redis.call('ZSCORE', dead, id)
  if died then
    local packed = redis.call('HGET', jobs, id)
    local print, detail = unpack(cmsgpack.unpack(redis.call('HGET', deadInfo, id)))
    local title = redis.call('HGET', deadTitles, print) or ''
    answer[#answer + 1] = { id, died, packed, print, title, detail, redis.call('LRANGE', tries .. id, 0, -1) }
    bytes = bytes + #packed
  end
end
answer[1] = looked
return answer
