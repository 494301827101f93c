-- finish.lua (prelude, after place.lua): the last step of a job's life, and the grave of those that failed.
local MINUTE_MS = 60000
local STATS_MS = 25 * 3600 * 1000
local TRIES_KEPT = 20 -- the first and the last 19

local function tally(now, field, by)
  local key = stats .. string.format('%.0f', math.floor(now / MINUTE_MS))
  if redis.call('HINCRBY', key, field, by) == by then redis.call('PEXPIRE', key, STATS_MS) end
end

local function tell(kind, id)
  local length = redis.call('HGET', cfg, 'events')
  if length then redis.call('XADD', events, 'MAXLEN', '~', length, '*', 'type', kind, 'id', id) end
end

local function remember_try(id, entry)
  if entry == '' then return end
  if redis.call('RPUSH', tries .. id, entry) > TRIES_KEPT then
    redis.call('LSET', tries .. id, 1, '')
    redis.call('LREM', tries .. id, 1, '')
  end
end

-- Tells the jobs that wait for this one; a notice stays in `chained` until it was delivered.
local function tell_dependents(id, outcome, final)
  local list = redis.call('HGET', dependents, id)
  if not list then return end
  for _, target in ipairs(cjson.decode(list)) do
    redis.call('RPUSH', chained, cjson.encode({ target = target, id = id, outcome = outcome }))
  end
  if final then redis.call('HDEL', dependents, id) end
  rouse()
end

local function release_unique(id, options)
  if options.u and not options.uw and redis.call('GET', unique .. options.u) == id then
    redis.call('DEL', unique .. options.u)
  end
end

-- outcome: 'done' or 'cancelled'. Only what somebody may still ask for is kept.
local function finish(now, id, packed, outcome, keep_ms, result)
  local options = options_of(packed)
  redis.call('HDEL', jobs, id)
  if has(packed:byte(1), 16) then
    redis.call('DEL', tries .. id)
    redis.call('HDEL', progress, id)
  end
  release_unique(id, options)
  local window = math.max(tonumber(keep_ms) or 0, options.w or 0)
  if window > 0 then
    redis.call('ZADD', ended, now + window, id)
    redis.call('HSET', results, id, outcome:sub(1, 1) .. result)
    -- Whose job it was may still be asked: no id begins with '#'.
    if options.m then redis.call('HSET', results, '#' .. id, cjson.encode(options.m)) end
    if has(packed:byte(1), 16) then redis.call('PEXPIRE', logs .. id, window) end
  elseif has(packed:byte(1), 16) then
    redis.call('DEL', logs .. id)
  end
  tally(now, outcome, 1)
  tell(outcome, id)
  tell_dependents(id, outcome, true)
end

-- The payload stays in `jobs`, the attempts in `tries`; `detail` is a JSON that the worker made.
local function bury(now, id, packed, detail, print, title)
  redis.call('HSET', jobs, id, with_flag(packed, 16))
  redis.call('ZADD', dead, now, id)
  redis.call('HSET', deadInfo, id, cmsgpack.pack({ print, detail }))
  redis.call('ZADD', deadGroup .. print, now, id)
  redis.call('ZINCRBY', deadGroups, 1, print)
  redis.call('HSET', deadTitles, print, title)
  release_unique(id, options_of(packed))
  tally(now, 'dead', 1)
  tell('dead', id)
  tell_dependents(id, 'dead', false)
end

-- Takes a job out of the dead letters; false when it is not one.
local function exhume(id)
  if redis.call('ZREM', dead, id) == 0 then return false end
  local print = cmsgpack.unpack(redis.call('HGET', deadInfo, id))[1]
  redis.call('HDEL', deadInfo, id)
  redis.call('ZREM', deadGroup .. print, id)
  if tonumber(redis.call('ZINCRBY', deadGroups, -1, print)) <= 0 then
    redis.call('ZREM', deadGroups, print)
    redis.call('HDEL', deadTitles, print)
  end
  return true
end
