#!lua flags=allow-oom
-- drain.lua: an operator wishes that a worker claim nothing more, or takes that back. The wish lies with the session; its worker learns of it
-- with the next renewal (renew.lua), and it goes with the session, however that ends.
-- KEYS sessions ZSET, active HASH, lanes HASH
-- ARGV session, worker, wished
-- session: the one that is meant; or '', and `worker` is the id in the descriptions of those that are meant
-- wished: '1', or '0' to take it back
-- Returns {} when there is none, or {id of the worker or '', state of its wish or ''}
local function is_meant(each, description)
  if session ~= '' then return each == session end
  return description:find('"id":"' .. worker .. '"', 1, true) ~= nil
end

local answer = {}
local all = session ~= '' and { session } or redis.call('ZRANGE', sessions, 0, -1)
for _, each in ipairs(all) do
  local description = redis.call('ZSCORE', sessions, each) and redis.call('HGET', active .. each, '#')
  if description and is_meant(each, description) then
    if wished == '1' then redis.call('HSETNX', lanes .. each, 'drain', 'asked') else redis.call('HDEL', lanes .. each, 'drain') end
    answer = { description:match('"id":"([%w_-]+)"') or '', redis.call('HGET', lanes .. each, 'drain') or '' }
  end
end
return answer
