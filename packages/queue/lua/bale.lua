-- bale.lua (prelude): plain jobs that were added together, kept together.
--
-- A call that adds many plain jobs writes up to 16 of them as one field of `jobs` and one entry of their list: a bale. The ids of
-- its jobs are `stem.0`, `stem.1`, …; its own name is `=stem`. Its value begins with the header that its jobs share, with flag 64,
-- and their number where a job counts its attempts; then their payloads follow, one per line, with commas between them: JSON as it
-- is written here has no line ends.
--
-- A quick worker gets bales as they are and ends them as they are. Whoever needs a single job takes the bale apart, and each of
-- its jobs has a field of its own, as ever. If the bale still waits, its entry keeps the place in the list for all of them: it is
-- then a loose bale (flag 128 too), and its value ends with a msgpack list of their ids.
--
-- cfg counts what lengths do not show: `baled<priority>`, the jobs of a list beyond its entries, and `loose`, the jobs of loose
-- bales, which have an entry and a field more than they need.
local BALE, LOOSE = 64, 192
local EQUALS = 61
local BETWEEN = ',\n'
local BALED = { 'baled0', 'baled1', 'baled2', 'baled3', 'baled4', 'baled5' } -- fields of cfg

local function is_bale(name) return name:byte(1) == EQUALS end

-- {id, packed, id, packed, …}
local function jobs_in(name, bale)
  local header, stem, fields = string.char(0, 0) .. bale:sub(3, 8), name:sub(2) .. '.', {}
  for payload in (bale:sub(9) .. BETWEEN):gmatch('(.-)' .. BETWEEN) do
    fields[#fields + 1] = stem .. #fields / 2
    fields[#fields + 1] = header .. payload
  end
  return fields
end

-- The bale that a job would be in.
local function bale_of(id)
  local stem = id:match('^(.+)%.%d+$')
  return stem and '=' .. stem
end

-- The bytes of a job, and the name of its bale if it has no field of its own. Reads only.
local function packed_of(id)
  if is_bale(id) then return nil end
  local packed = redis.call('HGET', jobs, id)
  if packed then return packed end
  local name = bale_of(id)
  local bale = name and redis.call('HGET', jobs, name)
  if not bale or bale:byte(1) ~= BALE then return nil end
  local fields = jobs_in(name, bale)
  for i = 1, #fields, 2 do
    if fields[i] == id then return fields[i + 1], name end
  end
end

-- Gives each job of a bale its own field. Returns their ids; the caller decides what becomes of the bale's.
local function take_apart(name, bale)
  local fields, ids = jobs_in(name, bale), {}
  for i = 1, #fields, 2 do ids[#ids + 1] = fields[i] end
  redis.call('HSET', jobs, unpack(fields))
  return ids
end

-- A bale that waits and keeps its place, while one of its jobs needs a field of its own.
local function loosen(name)
  local bale = redis.call('HGET', jobs, name)
  local ids = take_apart(name, bale)
  redis.call('HSET', jobs, name, string.char(LOOSE) .. bale:sub(2, 8) .. cmsgpack.pack(ids))
  redis.call('HINCRBY', cfg, 'loose', #ids)
end

-- Takes a bale apart, or the rest of a loose one, that is in no list any more. Returns the ids of its jobs.
local function undo(name, bale)
  local ids
  if bale:byte(1) == LOOSE then
    ids = cmsgpack.unpack(bale:sub(9))
    redis.call('HINCRBY', cfg, 'loose', 0 - #ids)
  else
    ids = take_apart(name, bale)
  end
  redis.call('HDEL', jobs, name)
  return ids
end
