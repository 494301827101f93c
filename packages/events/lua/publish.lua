#!lua
-- publish.lua: appends a batch of events to the stream, in order. An event whose id was appended a short while ago is left out:
-- the batch came again because its reply was lost, or because the relay died before it could note that it was published.
-- KEYS events STREAM, recent ZSET
-- ARGV keep, remember, batch
-- Returns how many events were appended
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local appended = 0
for _, event in ipairs(cjson.decode(batch)) do
  local id, topic, key, data = event[1], event[2], event[3], event[4]
  if redis.call('ZADD', recent, 'NX', now, id) == 1 then
    redis.call('XADD', events, 'MAXLEN', '~', keep, '*', 'id', id, 'topic', topic, 'key', key, 'data', data)
    appended = appended + 1
  end
end
redis.call('ZREMRANGEBYRANK', recent, 0, -remember - 1)
return appended
