#!lua flags=no-writes
-- browse.lua: a page of the ids on one shelf of a partition. A shelf is a place where jobs of one state lie and that is not a
-- sorted set (those are read by deaths.lua). Its time grows with the page and, for active jobs, with the number of sessions.
-- Lists are read from their end, where new jobs come: a claim takes from the other end, so nothing is passed over between two pages.
-- KEYS sessions ZSET, rescuing ZSET, active HASH, jobs HASH, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST
-- KEYS suspects LIST, groups HASH, group ZSET, blocked HASH
-- ARGV shelf, at, limit
-- shelf: 'active', 'wait0' to 'wait5', 'suspects', 'ready' (groups), 'held' (groups at a limit), 'blocked'
-- at: '' or where the page before ended
-- Returns {where the next page begins or '', 1 when a group was cut short, id, …}
local IDS_PER_GROUP = 100
local GROUPS_PER_PAGE = 20
local lists = { wait0 = wait0, wait1 = wait1, wait2 = wait2, wait3 = wait3, wait4 = wait4, wait5 = wait5, suspects = suspects }
local answer = { '', 0 }

local function show(name)
  if not is_bale(name) then
    answer[#answer + 1] = name
    return
  end
  local bale = redis.call('HGET', jobs, name)
  if not bale then return end
  if bale:byte(1) == LOOSE then
    for _, id in ipairs(cmsgpack.unpack(bale:sub(9))) do answer[#answer + 1] = id end
  else
    for i = 0, bale:byte(2) - 1 do answer[#answer + 1] = name:sub(2) .. '.' .. i end
  end
end

local function page_of_list(key)
  local from = tonumber(at) or 0
  local page = redis.call('LRANGE', key, -from - limit, -from - 1)
  for i = #page, 1, -1 do show(page[i]) end
  if #page == tonumber(limit) then answer[1] = tostring(from + limit) end
end

local function page_of_session()
  local all = {}
  for _, key in ipairs({ sessions, rescuing }) do
    for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do all[#all + 1] = session end
  end
  table.sort(all)
  local wanted, cursor = at:match('^(%S*) (%d+)$')
  for i, session in ipairs(all) do
    if not wanted or session >= wanted then
      local page = redis.call('HSCAN', active .. session, session == wanted and cursor or '0', 'COUNT', limit)
      for field = 1, #page[2], 2 do
        local name, said = page[2][field], page[2][field + 1]
        if name:byte(1) ~= 35 then show(name) end -- '#' begins what is no job
        for _, tied in ipairs(name:byte(1) == 35 and sheaf_in(said) or {}) do show(tied) end
      end
      if page[1] ~= '0' then answer[1] = session .. ' ' .. page[1]
      elseif all[i + 1] then answer[1] = all[i + 1] .. ' 0' end
      return
    end
  end
end

local function page_of_groups(held)
  local page = redis.call('HSCAN', groups, at == '' and '0' or at, 'COUNT', GROUPS_PER_PAGE)
  for i = 1, #page[2], 2 do
    if (page[2][i + 1] ~= 'ready') == held then
      local ids = redis.call('ZRANGE', group .. page[2][i], 0, IDS_PER_GROUP)
      if ids[IDS_PER_GROUP + 1] then answer[2] = 1 end
      for n = 1, math.min(#ids, IDS_PER_GROUP) do answer[#answer + 1] = ids[n] end
    end
  end
  if page[1] ~= '0' then answer[1] = page[1] end
end

local function page_of_blocked()
  local page = redis.call('HSCAN', blocked, at == '' and '0' or at, 'COUNT', limit)
  for i = 1, #page[2], 2 do answer[#answer + 1] = page[2][i] end
  if page[1] ~= '0' then answer[1] = page[1] end
end

if lists[shelf] then page_of_list(lists[shelf])
elseif shelf == 'active' then page_of_session()
elseif shelf == 'blocked' then page_of_blocked()
else page_of_groups(shelf == 'held') end
return answer
