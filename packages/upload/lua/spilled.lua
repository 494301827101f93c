#!lua flags=allow-oom
-- spilled.lua: a run of extents that waited for the rest of its part, or a chunk that waits for its predecessors (its number is
-- `waiting`), has been copied to a staging object, so that an idle upload takes no room in Redis.
-- KEYS state HASH, chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, attempts HASH, progress STREAM
-- KEYS attention ZSET, budget HASH
-- ARGV id, start, length, key, extents, name, waiting
-- Returns {word, {freed attempt and its frames, …}}; word is 'OK', 'STALE', 'ENDED' or 'GONE'
local upload = read_state()
if not upload then return { 'GONE' } end
if not is_open(upload) then return { 'ENDED' } end
local freed = {}

local function move_run()
  local stop = tonumber(start) + tonumber(length)
  local member = table.concat({ start, length, '*' .. key, '0', '0', name }, ' ')
  if redis.call('ZSCORE', held, member) then return 'OK' end
  local members = redis.call('ZRANGE', held, start, '(' .. text(stop), 'BYSCORE')
  if table.concat(members, '\n') ~= extents then return 'STALE' end
  for _, extent in ipairs(members) do
    let_go(extent)
    drop_reference(upload, extent:match('^%d+ %d+ (%S+) '), freed)
  end
  redis.call('ZADD', held, start, member)
  redis.call('HINCRBY', attempts, '*' .. key .. ':refs', 1)
  redis.call('HINCRBY', budget, 'queued', 1)
  return 'MOVED'
end

local function move_waiting()
  local attempt, last = extents:match('^%d+ (%S+) %d+ ?(.*)$')
  local entry = table.concat({ length, '*' .. key, '0', last }, ' ')
  local known = redis.call('HGET', window, waiting)
  if known == entry then return 'OK' end
  if known ~= extents then return 'STALE' end
  redis.call('HSET', window, waiting, entry)
  free(upload, attempt, freed)
  return 'MOVED'
end

local word = (waiting == '' and move_run or move_waiting)()
if word == 'STALE' then return { word } end
-- Told before, and the answer got lost.
if word == 'OK' then return { word, undropped() } end
-- An upload that has nothing in Redis holds no place there either; it reserves again when it goes on.
if tonumber(upload.charged) == 0 then reserve(upload, 0) else shrink(upload) end
keep(upload)
return { 'OK', freed }
