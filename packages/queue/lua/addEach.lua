#!lua
-- addEach.lua: accepts jobs that carry more than a priority: an own id, a unique key, a delay, a group, dependencies;
-- also foreign messages taken from the inbox, together with their removal from it, and malformed ones, which go
-- straight to the dead letters with their bytes.
-- KEYS cfg HASH, jobs HASH, producer HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST
-- KEYS delayed ZSET, ended ZSET, results HASH, groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING
-- KEYS blocked HASH, deps SET, dependents HASH, chained LIST, inbox LIST, dead ZSET, deadInfo HASH, deadGroup ZSET
-- KEYS deadGroups ZSET, deadTitles HASH, tries LIST, progress HASH, logs LIST, stats HASH, events STREAM
-- ARGV lane, seq, rememberMs, items, inboxTaken, inboxCount
-- items: msgpack {{id, packed, own 0|1, delay ms or '', run at ms or '', unique key or '', unique window ms or '',
--   dependency refs {…}, failure policy, dead detail or '', fingerprint, title}, …}
-- Returns {'OK' | 'REPEAT' | 'ABANDONED' | 'STALE', now ms, {'ADDED' | 'DUPLICATE', id, …}}
local now = now_ms()
local last = redis.call('HGET', producer, lane)
local repeating = lane:sub(1, 1) == '='

-- What the call was answered. Plain calls on the same lane leave an older answer behind; theirs is empty.
local function first_answer(of_lane)
  local stored = redis.call('HGET', producer, of_lane .. ':answer')
  local number, words = unpack(stored and cmsgpack.unpack(stored) or {})
  return { 'REPEAT', now, number == seq and words or {} }
end

if repeating then
  -- "=lane" repeats a call whose outcome its caller never learned; see add.ts.
  local original = redis.call('HGET', producer, lane:sub(2))
  if original and original ~= 'A' .. seq and tonumber(original) and tonumber(original) >= tonumber(seq) then
    return first_answer(lane:sub(2))
  end
elseif last then
  if last == 'A' .. seq then return { 'ABANDONED', now, {} } end
  last = last:match('%d+') -- also of an abandoned call: those before it on its lane have been answered
  if tonumber(last) and tonumber(last) >= tonumber(seq) then return first_answer(lane) end
end
local from_inbox = tonumber(inboxCount)
if from_inbox > 0 and (redis.call('HGET', cfg, 'inboxTaken') or '0') ~= inboxTaken then
  return { 'STALE', now, {} }
end

-- The grave of a job in a loose bale is needed no more.
local function drop_from_loose(id, level)
  local name = bale_of(id)
  local bale = redis.call('HGET', jobs, name)
  local ids = {}
  for _, other in ipairs(cmsgpack.unpack(bale:sub(9))) do
    if other ~= id then ids[#ids + 1] = other end
  end
  redis.call('HINCRBY', cfg, 'loose', -1)
  if #ids == 0 then
    redis.call('LREM', waits[level], 1, name)
    redis.call('HDEL', jobs, name)
  else
    redis.call('HSET', jobs, name, bale:sub(1, 8) .. cmsgpack.pack(ids))
    redis.call('HINCRBY', cfg, 'baled' .. level, -1)
  end
end

local function duplicate_of(id, own, key)
  if own == 1 then
    local packed = packed_of(id)
    if packed and packed:byte(1) == TOMBSTONE then
      -- Cancelled so long ago that its memory is gone, but its place in the list is not: clear it, then start anew.
      local level = packed:byte(3) % 16
      if redis.call('LREM', waits[level], 1, id) == 0 then drop_from_loose(id, level) end
      redis.call('HDEL', jobs, id)
      redis.call('HINCRBY', cfg, 'tombstones', -1)
    elseif packed then
      return id
    end
    local until_ms = redis.call('ZSCORE', ended, id)
    if until_ms and tonumber(until_ms) > now then return id end
  end
  if key ~= '' then
    local holder = redis.call('GET', unique .. key)
    if holder then return holder end
  end
  return nil
end

local answer = {}
local ready = false
for _, item in ipairs(cmsgpack.unpack(items)) do
  local id, packed, own, delay, run_at, key, window, refs, policy, detail, print, title = unpack(item)
  local existing = duplicate_of(id, own, key)
  if existing then
    answer[#answer + 1] = 'DUPLICATE'
    answer[#answer + 1] = existing
  else
    answer[#answer + 1] = 'ADDED'
    answer[#answer + 1] = id
    redis.call('HSET', jobs, id, packed)
    if own == 1 then
      redis.call('ZREM', ended, id)
      redis.call('HDEL', results, id, '#' .. id)
    end
    if key ~= '' then
      if window == '' then redis.call('SET', unique .. key, id) else redis.call('SET', unique .. key, id, 'PX', window) end
    end
    if detail ~= '' then
      bury(now, id, packed, detail, print, title)
    elseif #refs > 0 then
      redis.call('SADD', deps .. id, unpack(refs))
      redis.call('HSET', blocked, id, policy)
    elseif delay ~= '' then
      set_due(id, now + tonumber(delay))
    elseif run_at ~= '' then
      set_due(id, math.max(tonumber(run_at), 1)) -- 0 would overtake everybody
    else
      place(id, packed, false)
      ready = true
    end
    tell('added', id)
  end
end
if from_inbox > 0 then
  redis.call('LTRIM', inbox, from_inbox, -1)
  redis.call('HINCRBY', cfg, 'inboxTaken', from_inbox)
end
if repeating then
  redis.call('HSET', producer, lane:sub(2), 'A' .. seq)
else
  redis.call('HSET', producer, lane, seq, lane .. ':answer', cmsgpack.pack({ seq, answer }))
end
redis.call('PEXPIRE', producer, rememberMs)
if ready then rouse() end
return { 'OK', now, answer }
