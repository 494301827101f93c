#!lua flags=allow-oom
-- multipart.lua: which multipart upload of the store this one uses. The first to say wins; the others abort theirs.
-- KEYS state HASH
-- ARGV multipartId
-- Returns the id that counts, or '' when the upload is not open
local status = redis.call('HGET', state, 'status')
if status ~= 'PENDING' and status ~= 'UPLOADING' then return '' end
local known = redis.call('HGET', state, 's3_upload_id')
if known and known ~= '' then return known end
redis.call('HSET', state, 's3_upload_id', multipartId)
return multipartId
