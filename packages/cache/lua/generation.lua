#!lua
-- generation.lua: the generation of a group, made if there is none. Values carry it and are worth something as long as it is the
-- same; it is a random token, so that one that was thrown away (invalidated, expired, evicted) never comes back. It is kept for
-- longer than any value that carries it, and that is renewed rarely: each change of the key is told to everybody who watches it.
-- KEYS generation STRING
-- ARGV token, keepMs
-- Returns the generation
local current = redis.call('GET', generation)
if not current then
  redis.call('SET', generation, token, 'PX', keepMs)
  return token
end
if redis.call('PTTL', generation) * 2 < tonumber(keepMs) then redis.call('PEXPIRE', generation, keepMs) end
return current
