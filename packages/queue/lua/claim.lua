#!lua flags=allow-oom
-- claim.lua: acknowledges what a worker finished and gives it the next jobs, in one round trip per batch. This is the whole
-- claim: it moves what has become due, serves priorities, groups, limits and suspects, and tells the worker what others need.
-- A busy worker uses the shorter take.lua in between.
--
-- Lost replies: a lane of a session sends one call at a time, numbered by `seq`. The active hash keeps each lane's last number
-- and the token of its claim. A repetition acknowledges nothing twice and finds its claims again by their token.
-- Fencing: every claim gets a token that only grows: max(last + 1, TIME in µs), also across restore and failover.
-- Priorities: of 16 turns each level below the first owns one, and the most urgent waiting level gets the rest.
-- KEYS cfg HASH, sessions ZSET, rescuing ZSET, active HASH, lanes HASH, jobs HASH, wake LIST
-- KEYS wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET, suspects LIST, inbox LIST
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, groupRate LIST, parked ZSET, rate LIST
-- KEYS dependents HASH, chained LIST, ticks ZSET, stats HASH, events STREAM
-- ARGV session, lane, seq, want, list, runs, whole, tie, idle
-- list: msgpack {'#', '#lane', id, …}, the ids being acknowledged; runs: msgpack {token, how many of them, …}
-- whole: '1' to acknowledge the sheaf of this lane as well (sheaf.lua)
-- tie: '1' when the worker would like a sheaf: if there is nothing but a list, it is left to take.lua
-- idle: '1' when the worker runs nothing, so that it may take a suspect
-- Returns {'LEASE_LOST'}, {'STALE'}, {'SPLIT'} (there is no sheaf: name the ids) or
--   {'OK' | 'REPEAT', token, now ms, msgpack {id, packed, …} (or as it is when it has bales), next due ms, flags,
--   ids not held any more, ids that need settle.lua, cancelled ids, priority of the list for take.lua or -1}
-- flags: 1 inbox, 2 rescue, 4 drain for a suspect, 8 runs alone, 16 more is waiting, 32 on watch, 64 paused, 128 chain notices,
--   256 schedule due, 512 (in a repetition of take.lua) a sheaf
local PROMOTED_PER_CALL = 200
local CLAIM_BYTES = 8 * 1024 * 1024
local BYTES_CHECKED_EVERY = 64 -- jobs; bounds how far a claim of large jobs can overshoot
local SUSPECTS_LOOKED_AT = 20
local WORTH_TAKING = 16 -- jobs that wait, from which on a worker that ties leaves them to take.lua

local answer = early_answer()
if answer then return answer end
local conf = redis.call('HMGET', cfg, 'token', 'turn', 'rules', 'events', 'watch', unpack(BALED))
-- An event tells which jobs have ended.
if conf[4] and whole == '1' then return { 'SPLIT' } end
acknowledge()
if conf[4] and #names > 2 then
  redis.call('XADD', events, 'MAXLEN', '~', conf[4], '*', 'type', 'done', 'id', table.concat(names, ' ', 3))
end

local ids = {}
local room = tonumber(want)
-- Four turns in one number: of the lists (0–15), of the groups or the lists for an odd job, of the ring or the fresh groups, of
-- the newest or the oldest of the fresh ones.
local turns = tonumber(conf[2] or 0)
local turn, odd_to_groups, ring_first, newest_first = turns % 16, turns % 32 >= 16, turns % 64 >= 32, turns >= 64
local rules = conf[3] and cjson.decode(conf[3]) or {}
local flags, due_at = 0, 0

-- 1. How much may be claimed?
local function earlier(at)
  at = tonumber(at)
  if at and at > 0 and (due_at == 0 or at < due_at) then due_at = at end
end
if rules.paused then
  room = 0
  flags = flags + 64
end
-- A limit that leaves no room is no reason to wake anybody: whoever makes room does that.
if room > 0 and rules.maxActive then
  local running = 0 - together
  for key, fields in pairs({ [sessions] = META_FIELDS, [rescuing] = 0 }) do
    for _, other in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      running = running + count_held(active .. other, fields)
    end
  end
  room = math.min(room, math.max(rules.maxActive - running, 0))
end
if room > 0 and rules.rateMax then
  -- An exact sliding window: the times of the last rateMax claims.
  local used = redis.call('LLEN', rate)
  local allowed = math.max(rules.rateMax - used, 0)
  if allowed < room then
    for _, at in ipairs(redis.call('LRANGE', rate, 0, room - allowed - 1)) do
      if tonumber(at) + rules.ratePerMs <= now then
        allowed = allowed + 1
      else
        earlier(tonumber(at) + rules.ratePerMs)
        break
      end
    end
  end
  room = math.min(room, allowed)
end

-- 2. Move what has become due.
local function promote()
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  if not first[1] then return end
  if tonumber(first[2]) > now then return earlier(first[2]) end
  local due = redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE', 'LIMIT', 0, PROMOTED_PER_CALL, 'WITHSCORES')
  local ids = {}
  for i = #due - 1, 1, -2 do
    -- Returned jobs (score 0) go to the front one by one, so the last goes first.
    if tonumber(due[i + 1]) == 0 then ids[#ids + 1] = due[i] end
  end
  local returned = #ids
  for i = 1, #due, 2 do
    if tonumber(due[i + 1]) > 0 then ids[#ids + 1] = due[i] end
  end
  local packs = redis.call('HMGET', jobs, unpack(ids))
  for i, id in ipairs(ids) do
    if packs[i] and packs[i]:byte(3) >= 16 then
      -- It was there when a worker died: it runs alone, however often it is tried again.
      redis.call('RPUSH', suspects, id)
    elseif packs[i] then
      place(id, packs[i], i <= returned)
    end
  end
  redis.call('ZREM', delayed, unpack(ids))
  first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  if first[1] then earlier(math.max(tonumber(first[2]), 1)) end
end
promote()

local grouped = redis.call('HLEN', groups) > 0
if grouped then
  for _, name in ipairs(redis.call('ZRANGE', parked, '-inf', now, 'BYSCORE', 'LIMIT', 0, PROMOTED_PER_CALL)) do
    redis.call('ZREM', parked, name)
    open_group(name)
  end
  earlier(redis.call('ZRANGE', parked, 0, 0, 'WITHSCORES')[2])
end

-- Why no job of a group may start, and from when on one may; nothing when there is room.
local function limit_of(name)
  if rules.keyMaxActive and tonumber(redis.call('HGET', groupActive, name) or 0) >= rules.keyMaxActive then return 'full' end
  if not rules.keyRateMax then return nil end
  local at = redis.call('LINDEX', groupRate .. name, -rules.keyRateMax)
  if not at or tonumber(at) + rules.keyRatePerMs <= now then return nil end
  earlier(tonumber(at) + rules.keyRatePerMs)
  return 'slow', tonumber(at) + rules.keyRatePerMs
end

-- A job of a group starts.
local function enter_group(name)
  redis.call('HINCRBY', groupActive, name, 1)
  if not rules.keyRateMax then return end
  local key = groupRate .. name
  redis.call('RPUSH', key, now)
  redis.call('LTRIM', key, -rules.keyRateMax, -1)
  redis.call('PEXPIRE', key, rules.keyRatePerMs)
end

-- Groups take turns, one job each. A group that has just become busy is served from `fresh`, which alternates with the
-- ring of the others: it waits for nobody's backlog, and cannot starve them either. Of the fresh ones the oldest and the newest
-- alternate: whoever comes after ten thousand others does not wait for all of them.
local function next_fresh()
  local name = redis.call(newest_first and 'RPOP' or 'LPOP', fresh)
  if name then newest_first = not newest_first end
  return name
end

local function next_group()
  if not ring_first then return next_fresh() or redis.call('LPOP', ring) end
  return redis.call('LPOP', ring) or next_fresh()
end

local function claim_from_groups(count)
  local looked = 0
  while count > 0 and looked < 1000 do
    looked = looked + 1
    local name = next_group()
    if not name then return end
    ring_first = not ring_first
    local left = redis.call('ZCARD', group .. name)
    local shut, free_at = nil, nil
    if left > 0 then shut, free_at = limit_of(name) end
    if left == 0 then
      redis.call('HDEL', groups, name)
    elseif shut then
      shut_group(name, shut)
      if free_at then redis.call('ZADD', parked, free_at, name) end
    else
      enter_group(name)
      ids[#ids + 1] = redis.call('ZPOPMIN', group .. name)[1]
      count = count - 1
      if left > 1 then redis.call('RPUSH', ring, name) else redis.call('HDEL', groups, name) end
    end
  end
end

-- 3. Choose.
local lengths, waiting = {}, 0
for p = 0, 5 do
  lengths[p] = redis.call('LLEN', waits[p]) + (conf[6 + p] or 0)
  waiting = waiting + lengths[p]
end

-- Where a busy worker may go on with take.lua: one list, and nothing else to respect.
local suspected = redis.call('LLEN', suspects)
local function plain_list()
  if grouped or conf[3] or conf[4] or suspected > 0 or waiting == 0 then return -1 end
  for p = 0, 5 do
    if lengths[p] > 0 then return lengths[p] == waiting and p or -1 end
  end
end

local function claim_from_lists(count)
  local left = math.min(count, waiting)
  if left == 0 then return end
  local take = {}
  for p = 1, 5 do
    local offset = 5 - p -- level p owns the turns that are (10 + p) mod 16
    local owned = math.floor((turn + left + offset) / 16) - math.floor((turn + offset) / 16)
    take[p] = math.min(owned, lengths[p])
  end
  turn = (turn + left) % 16
  for p = 1, 5 do left = left - take[p] end
  take[0] = 0
  for p = 0, 5 do
    local more = math.min(left, lengths[p] - take[p])
    take[p] = take[p] + more
    left = left - more
    if take[p] > 0 then
      local popped = pop(waits[p], p, take[p], false)
      lengths[p] = lengths[p] - #popped
      waiting = waiting - #popped
      if #ids == 0 then
        ids = popped
      else
        for _, id in ipairs(popped) do ids[#ids + 1] = id end
      end
    end
  end
end

-- The first suspect whose group has room, and that group.
local function runnable_suspect()
  for _, id in ipairs(redis.call('LRANGE', suspects, 0, SUSPECTS_LOOKED_AT - 1)) do
    local name = options_of(redis.call('HGET', jobs, id)).g
    if not name or not limit_of(name) then return id, name end
  end
end

local suspect, suspect_group = nil, nil
if room > 0 and suspected > 0 then suspect, suspect_group = runnable_suspect() end
if suspect then
  local nurse = redis.call('HGET', cfg, 'nurse')
  local who, until_ms = '', 0
  if nurse then who, until_ms = nurse:match('^(.-) (%d+)$') end
  -- A nurse that died must not keep the suspects waiting for longer than its lease.
  if tonumber(redis.call('ZSCORE', sessions, who) or 0) < now then until_ms = 0 end
  if idle == '1' then
    ids[1] = suspect
    redis.call('LREM', suspects, 1, suspect)
    if suspect_group then enter_group(suspect_group) end
    flags = flags + 8
    if suspected == 1 and nurse then redis.call('HDEL', cfg, 'nurse') end
  elseif who == session or tonumber(until_ms) < now then
    -- One worker at a time lets its jobs end, so that it can run the suspect alone.
    redis.call('HSET', cfg, 'nurse', session .. ' ' .. string.format('%.0f', now + 10000))
    flags = flags + 4
    room = 0
  end
end
local leaves = tie == '1' and waiting >= WORTH_TAKING and conf[5] ~= session and plain_list() >= 0
if room > 0 and #ids == 0 and not leaves then
  if grouped then
    local share = waiting == 0 and room or math.floor(room / 2)
    if waiting > 0 and room % 2 == 1 then
      if odd_to_groups then share = share + 1 end
      odd_to_groups = not odd_to_groups
    end
    claim_from_groups(share)
    claim_from_lists(room - #ids)
    if #ids < room then claim_from_groups(room - #ids) end
  else
    claim_from_lists(room)
  end
end

-- What the worker should know before its next call, and what others need.
local told = redis.call('HGET', lanes .. session, 'cancelled')
if told then
  cancelled = cmsgpack.unpack(told)
  redis.call('HDEL', lanes .. session, 'cancelled')
end
if redis.call('LLEN', inbox) > 0 then flags = flags + 1 end
local oldest = redis.call('ZRANGE', sessions, 0, 0, 'WITHSCORES')
if (oldest[2] and tonumber(oldest[2]) < now) or redis.call('EXISTS', rescuing) == 1 then flags = flags + 2 end
-- Beside one that is over the next may end soon: whoever comes for the first must also come for that.
if oldest[2] and tonumber(oldest[2]) < now then
  oldest = redis.call('ZRANGE', sessions, now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
end
if oldest[2] then earlier(tonumber(oldest[2]) + 10) end
if redis.call('EXISTS', chained) == 1 then flags = flags + 128 end
local tick = redis.call('ZRANGE', ticks, 0, 0, 'WITHSCORES')[2]
if tick then
  if tonumber(tick) <= now then flags = flags + 256 else earlier(tick) end
end
local limited = tonumber(want) > 0 and room == 0
local more = not limited and (waiting > 0 or (flags % 16 >= 8 and suspected > 1))
if grouped and not more and not limited then more = redis.call('EXISTS', fresh, ring) > 0 end
if #ids == 0 and not more then
  -- Of all sleepers one keeps watch: it sees what arrives in the inbox and wakes for what is due.
  local watcher = conf[5]
  local watched_until = watcher and watcher ~= session and tonumber(redis.call('ZSCORE', sessions, watcher) or 0) or 0
  if watched_until >= now then
    due_at = watched_until + 50 -- the others look again when its lease is over
  else
    if watcher ~= session then redis.call('HSET', cfg, 'watch', session) end
    flags = flags + 32
  end
end

-- 4. Give. The answer of this call is written with it, for a repetition.
local token, given, count = '', {}, 0
local records = { lane, '' }
if #ids > 0 then
  token = next_token(conf[1])
  local bytes, buried = 0, 0
  for from = 1, #ids, BYTES_CHECKED_EVERY do
    if bytes > CLAIM_BYTES then
      -- Too much for one reply: the rest goes back to where it was, or where it will be found first.
      for i = #ids, from, -1 do
        local packed = redis.call('HGET', jobs, ids[i])
        if packed:byte(1) ~= TOMBSTONE and has(packed:byte(1), 32) then
          free(packed)
          redis.call('ZADD', delayed, 0, ids[i])
        else
          redis.call('LPUSH', waits[packed:byte(3) % 16], ids[i])
        end
      end
      more = true
      break
    end
    local to = math.min(from + BYTES_CHECKED_EVERY - 1, #ids)
    local packs = redis.call('HMGET', jobs, unpack(ids, from, to))
    for i = from, to do
      local packed = packs[i - from + 1]
      if packed and packed:byte(1) ~= TOMBSTONE then
        local id = ids[i]
        given[count + 1] = id
        given[count + 2] = packed
        records[count + 3] = id
        records[count + 4] = token
        count = count + 2
        bytes = bytes + #packed
      elseif packed then
        redis.call('HDEL', jobs, ids[i])
        buried = buried + 1
      end
    end
  end
  if buried > 0 then
    redis.call('HINCRBY', cfg, 'tombstones', -buried)
    more = more or count == 0
  end
  if count > 0 then
    if rules.rateMax then
      for _ = 1, count, 2 do redis.call('RPUSH', rate, now) end
      redis.call('LTRIM', rate, -rules.rateMax, -1)
      redis.call('PEXPIRE', rate, rules.ratePerMs)
    end
    if conf[4] then
      local names = {}
      for i = 1, count, 2 do names[#names + 1] = given[i] end
      redis.call('XADD', events, 'MAXLEN', '~', conf[4], '*', 'type', 'claimed', 'token', token, 'id', table.concat(names, ' '))
    end
  end
end
records[2] = seq .. ':' .. token .. (flags % 16 >= 8 and ':alone' or '')
redis.call('HSET', held, unpack(records))
keep_answer()
if token ~= '' then
  turns = turn + (odd_to_groups and 16 or 0) + (ring_first and 32 or 0) + (newest_first and 64 or 0)
  redis.call('HSET', cfg, 'token', token, 'turn', turns)
end

if #ids > 0 and conf[5] == session then
  redis.call('HDEL', cfg, 'watch')
  more = true
end
if more then
  flags = flags + 16
  if not rules.paused and redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
end
return { 'OK', token, now, cmsgpack.pack(given), due_at, flags, refused, special, cancelled, plain_list() }
