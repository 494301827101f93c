#!lua flags=no-writes
-- deaths.lua: a page of one partition's dead letters in the order of their deaths; of one cause, if `print` names it. The page
-- begins beside a place (atMs, atId), whether or not a letter still lies there: letters may come and go between two pages, and
-- thousands may have died in the same millisecond. Its time grows with the page, and with the logarithm of the rest.
-- KEYS dead ZSET, deadGroup ZSET
-- ARGV print, atMs, atId, order, limit
-- order: 'newest' gives what lies before the place, newest first; 'oldest' what lies behind it, oldest first
-- Returns {id, died ms, id, died ms, …}
local key = print == '' and dead or deadGroup .. print

-- As Redis orders members of equal score: by their bytes. Lua's own `<` would ask the server's locale.
local function precedes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- How many letters lie before the place.
local low = redis.call('ZCOUNT', key, '-inf', '(' .. atMs)
if atId ~= '' then
  local high = low + redis.call('ZCOUNT', key, atMs, atMs)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if precedes(redis.call('ZRANGE', key, middle, middle)[1], atId) then low = middle + 1 else high = middle end
  end
end

if order == 'newest' then
  if low == 0 then return {} end
  local page = redis.call('ZRANGE', key, math.max(low - limit, 0), low - 1, 'WITHSCORES')
  local answer = {}
  for i = #page - 1, 1, -2 do
    answer[#answer + 1] = page[i]
    answer[#answer + 1] = page[i + 1]
  end
  return answer
end
local first = redis.call('ZRANGE', key, low, low, 'WITHSCORES')
if first[1] == atId and tonumber(first[2]) == tonumber(atMs) then low = low + 1 end
return redis.call('ZRANGE', key, low, low + limit - 1, 'WITHSCORES')
