-- acknowledge.lua (prelude of claim.lua and take.lua, after sheaf.lua): recognises the caller, answers repetitions, ends what was
-- finished.
-- `early_answer` gives the reply of a call that must change nothing; `acknowledge` does the rest of its work.
local MINUTE_MS = 60000
local STATS_MS = 25 * 3600 * 1000

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = active .. session
local names = cmsgpack.unpack(list)
local state = redis.call('HMGET', held, unpack(names))
local refused, special, cancelled = {}, {}, {}
local sheaf, _, _, sheaf_size = sheaf_in(state[2])

-- Many small strings travel best as one msgpack value; a few large ones, bales, as they are.
local function as_reply(given)
  for i = 1, #given, 2 do
    if is_bale(given[i]) then return given end
  end
  return cmsgpack.pack(given)
end

local function early_answer()
  if not state[1] then return { 'LEASE_LOST' } end
  local last_seq, last_token, mark = state[2]:match('^(%d+):(%d*)([^=]*)')
  if tonumber(seq) < tonumber(last_seq) then return { 'STALE' } end
  -- Somebody untied the sheaf that the caller wants to end, or a job in it may have to tell others of its end.
  local is_new_whole = whole == '1' and seq ~= last_seq
  if is_new_whole and (not sheaf or redis.call('EXISTS', dependents) == 1) then return { 'SPLIT' } end
  if seq ~= last_seq then return nil end
  local again = {}
  if sheaf then
    local packs = redis.call('HMGET', jobs, unpack(sheaf))
    for i, id in ipairs(sheaf) do
      again[2 * i - 1] = id
      again[2 * i] = packs[i]
    end
  elseif last_token ~= '' then
    local all = redis.call('HGETALL', held)
    for i = 1, #all, 2 do
      if all[i + 1] == last_token then
        again[#again + 1] = all[i]
        again[#again + 1] = redis.call('HGET', jobs, all[i])
      end
    end
  end
  local stored = redis.call('HGET', lanes .. session, lane)
  local said = stored and cmsgpack.unpack(stored)
  if said and said[1] == seq then refused, special, cancelled = said[2], said[3], said[4] end
  local flags = 16 + (mark == '' and 0 or 8) + (sheaf and 512 or 0)
  return { 'REPEAT', last_token, now, as_reply(again), 0, flags, refused, special, cancelled, -1 }
end

-- What a repetition has to say again, beside the jobs. An answer of an earlier call may stay: it is known by its number.
local function keep_answer()
  if #refused + #special + #cancelled == 0 then return end
  redis.call('HSET', lanes .. session, lane, cmsgpack.pack({ seq, refused, special, cancelled }))
end

local function count_done(done)
  if done == 0 then return end
  local key = stats .. string.format('%.0f', math.floor(now / MINUTE_MS))
  if redis.call('HINCRBY', key, 'done', done) == done then redis.call('PEXPIRE', key, STATS_MS) end
end

local together = 0 -- jobs of the sheaf that this call ends; it goes when the field of its lane is written
local function acknowledge()
  if sheaf and whole == '1' then
    redis.call('HDEL', jobs, unpack(sheaf))
    together = sheaf_size
  elseif untie_lane(held, lane, state[2]) then
    state = redis.call('HMGET', held, unpack(names))
  end
  local done = #names - 2
  if done == 0 then return count_done(together) end
  local at, plain = 3, redis.call('EXISTS', dependents) == 0
  local tokens = cmsgpack.unpack(runs)
  for run = 1, #tokens, 2 do
    for _ = 1, tokens[run + 1] do
      if state[at] ~= tokens[run] then plain = false end
      at = at + 1
    end
  end
  if not plain then
    -- A job may be in the sheaf of the other lane.
    if untie(held, whole == '1' and lane) then state = redis.call('HMGET', held, unpack(names)) end
    local good = { '#', lane }
    at = 3
    for run = 1, #tokens, 2 do
      for _ = 1, tokens[run + 1] do
        if state[at] ~= tokens[run] then
          refused[#refused + 1] = names[at]
        elseif redis.call('HEXISTS', dependents, names[at]) == 1 then
          special[#special + 1] = names[at]
        else
          good[#good + 1] = names[at]
        end
        at = at + 1
      end
    end
    names, done = good, #good - 2
    if done == 0 then return count_done(together) end
  end
  redis.call('HDEL', held, unpack(names, 3))
  redis.call('HDEL', jobs, unpack(names, 3))
  count_done(done + together)
end

local function next_token(last)
  return string.format('%.0f', math.max(tonumber(last or 0) + 1, time[1] * 1000000 + time[2]))
end
