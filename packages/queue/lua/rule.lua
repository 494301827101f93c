#!lua flags=allow-oom
-- rule.lua: changes what a queue may do: paused or not, its limits, its event stream. An empty object removes all rules.
-- Groups that were held back by a limit are looked at again under the new one.
-- KEYS cfg HASH, wake LIST, jobs HASH, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, parked ZSET, rate LIST
-- ARGV changes
-- changes: JSON; a value of null removes the rule. `events` is kept in a field of its own, read by every script.
-- Returns the rules in force, as JSON
local rules = cjson.decode(redis.call('HGET', cfg, 'rules') or '{}')
local regroup = false
for name, value in pairs(cjson.decode(changes)) do
  if name:sub(1, 3) == 'key' then regroup = true end
  if name == 'events' then
    if value == cjson.null then redis.call('HDEL', cfg, 'events') else redis.call('HSET', cfg, 'events', value) end
  elseif value == cjson.null then
    rules[name] = nil
  else
    rules[name] = value
  end
end
local text = next(rules) and cjson.encode(rules) or '{}'
if next(rules) then redis.call('HSET', cfg, 'rules', text) else redis.call('HDEL', cfg, 'rules') end
-- claim.lua takes the length of `rate` for what the window has used; a lower limit needs fewer times.
if rules.rateMax then redis.call('LTRIM', rate, -rules.rateMax, -1) end
local all = regroup and redis.call('HGETALL', groups) or {}
for i = 1, #all, 2 do
  if all[i + 1] ~= 'ready' then
    redis.call('ZREM', parked, all[i])
    open_group(all[i])
  end
end
rouse()
return text
