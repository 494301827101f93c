-- pop.lua (prelude of claim.lua and take.lua, after bale.lua): jobs leave the list in which they waited.
local function put_back(list, names, from)
  for i = #names, from, -1 do redis.call('LPUSH', list, names[i]) end
end

local function read_bales(names)
  local bales, found = {}, {}
  for _, name in ipairs(names) do
    if is_bale(name) then bales[#bales + 1] = name end
  end
  if #bales == 0 then return found end
  for i, bale in ipairs(redis.call('HMGET', jobs, unpack(bales))) do found[bales[i]] = bale end
  return found
end

-- Takes up to `want` jobs from the head of a list: their ids, and how many they are. With `whole` bales that fit stay as they are
-- (their names are among the ids, their bytes in the third answer), and none is taken apart for a last few jobs.
local function pop(list, level, want, whole)
  local before = tonumber(redis.call('HGET', cfg, 'baled' .. level) or 0)
  local baled, entries = before, redis.call('LLEN', list)
  local taken, count, bytes_of = {}, 0, {}
  while count < want and entries > 0 do
    local share = math.floor((want - count) * entries / math.max(entries + baled, 1))
    if whole and share == 0 and count > 0 then break end
    local names, at = redis.call('LPOP', list, math.max(1, math.min(share, want - count))), 1
    local left, bales = {}, read_bales(names)
    while at <= #names and count < want do
      local name = names[at]
      at = at + 1
      if not is_bale(name) then
        count = count + 1
        taken[#taken + 1] = name
      else
        local bale = bales[name]
        local size = bale:byte(2)
        if whole and bale:byte(1) == BALE and count + size <= want then
          count = count + size
          taken[#taken + 1] = name
          bytes_of[name] = bale
        else
          local ids = undo(name, bale)
          size = #ids
          for i, id in ipairs(ids) do
            if count < want then
              count = count + 1
              taken[#taken + 1] = id
            else
              left[#left + 1] = id
            end
          end
        end
        baled = baled - size + 1
      end
    end
    put_back(list, names, at)
    put_back(list, left, 1)
    entries = entries - (at - 1) + #left
  end
  if baled ~= before then redis.call('HINCRBY', cfg, 'baled' .. level, string.format('%.0f', baled - before)) end
  return taken, count, bytes_of
end
