#!lua flags=no-writes
-- retries.lua: of some delayed jobs, those that failed before and wait for their next attempt: the head of each, the beginning of its payload
-- and its last attempt. It stops early when it has looked at much; the caller asks again for the rest.
-- KEYS jobs HASH, tries LIST
-- ARGV ids, previewBytes, maxBytes
-- ids: msgpack {id, …}
-- Returns {ids looked at, {id, bytes, last attempt or ''}, …}
local bytes, looked = 0, 0
local answer = { 0 }
for _, id in ipairs(cmsgpack.unpack(ids)) do
  if bytes >= tonumber(maxBytes) then break end
  looked = looked + 1
  local packed = redis.call('HGET', jobs, id) or ''
  bytes = bytes + #packed
  if #packed > 0 and packed:byte(1) ~= 255 and packed:byte(2) > 0 then
    local head = 8
    if packed:byte(1) % 2 == 1 then head = 10 + packed:byte(9) * 256 + packed:byte(10) end
    answer[#answer + 1] = { id, packed:sub(1, head + previewBytes), redis.call('LINDEX', tries .. id, -1) or '' }
  end
end
answer[1] = looked
return answer
