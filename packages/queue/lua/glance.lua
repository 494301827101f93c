#!lua flags=no-writes
-- glance.lua: the bytes of several jobs, and how those that ended did. It stops early when the answer becomes large; the caller asks
-- again for the rest.
-- KEYS jobs HASH, results HASH
-- ARGV ids, maxBytes
-- ids: msgpack {id, …}
-- Returns {ids looked at, {id, packed or '', 'd', 'c' or '', labels of one that ended (JSON) or ''}, …}
local bytes, looked = 0, 0
local answer = { 0 }
for _, id in ipairs(cmsgpack.unpack(ids)) do
  if bytes >= tonumber(maxBytes) then break end
  looked = looked + 1
  local packed = packed_of(id) or ''
  if packed:byte(1) == 255 then packed = '' end
  local ending = packed == '' and redis.call('HGET', results, id) or ''
  local labels = ending ~= '' and redis.call('HGET', results, '#' .. id) or ''
  answer[#answer + 1] = { id, packed, ending:sub(1, 1), labels }
  bytes = bytes + #packed
end
answer[1] = looked
return answer
