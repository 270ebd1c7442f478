-- KEYS: order, revision. ARGV: expected revision and count, min, max.
local revision, count = redis.call('GET', KEYS[2]) or '0', redis.call('ZCARD', KEYS[1])
if revision ~= ARGV[1] or count ~= tonumber(ARGV[2]) then
    return {revision, count, -1}
end
return {revision, count, redis.call('ZCOUNT', KEYS[1], ARGV[3], ARGV[4])}
