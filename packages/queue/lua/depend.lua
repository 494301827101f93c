#!lua flags=allow-oom
-- depend.lua: a job that others wait for learns of them. If it has ended already, the answer says how. From now on its end is
-- remembered for at least `rememberMs`, whatever its options said: who began to wait can still ask how it ended.
-- KEYS cfg HASH, sessions ZSET, active HASH, jobs HASH, dead ZSET, ended ZSET, results HASH, dependents HASH
-- ARGV id, target, rememberMs
-- Returns 'WAITING', 'done', 'cancelled', 'dead' or 'UNKNOWN'
local TOMBSTONE = 255
local OPTIONS, SETTLES = 1, 8 -- flags of a packed job, see place.lua
local MAX_OPTIONS_BYTES = 65535

-- The options get a longer memory by text, not by re-encoding, which Lua would do with losses: of two equal names in one
-- JSON object the last one counts, here and in JavaScript.
local function remembered(packed)
  local flags, options, payload = packed:byte(1), '', packed:sub(9)
  if flags % 2 == OPTIONS then
    local length = packed:byte(9) * 256 + packed:byte(10)
    options, payload = packed:sub(11, 10 + length), packed:sub(11 + length)
    if (cjson.decode(options).w or 0) >= tonumber(rememberMs) then return packed end
  end
  local memory = '"w":' .. rememberMs .. '}'
  options = #options > 2 and options:sub(1, -2) .. ',' .. memory or '{' .. memory
  if #options > MAX_OPTIONS_BYTES then return packed end
  if flags % 2 == 0 then flags = flags + OPTIONS end
  if math.floor(flags / SETTLES) % 2 == 0 then flags = flags + SETTLES end
  local length = string.char(math.floor(#options / 256), #options % 256)
  return string.char(flags) .. packed:sub(2, 8) .. length .. options .. payload
end

local packed = single_out(id)
if not packed then
  local until_ms = redis.call('ZSCORE', ended, id)
  if not until_ms then return 'UNKNOWN' end
  local now_s = redis.call('TIME')[1]
  redis.call('ZADD', ended, 'GT', now_s * 1000 + rememberMs, id)
  return (redis.call('HGET', results, id) or 'c'):sub(1, 1) == 'd' and 'done' or 'cancelled'
end
if packed:byte(1) == TOMBSTONE then return 'cancelled' end
local list = cjson.decode(redis.call('HGET', dependents, id) or '[]')
local known = false
for _, other in ipairs(list) do known = known or other == target end
if not known then
  list[#list + 1] = target
  redis.call('HSET', dependents, id, cjson.encode(list))
end
local pinned = remembered(packed)
if pinned ~= packed then redis.call('HSET', jobs, id, pinned) end
if redis.call('ZSCORE', dead, id) then return 'dead' end
return 'WAITING'
