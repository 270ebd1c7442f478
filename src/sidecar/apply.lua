-- KEYS: order, revision. ARGV: from, to, then index and score by turns; no score removes.
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then
    return 0
end
if ARGV[1] == '0' then
    redis.call('UNLINK', KEYS[1])
end
for i = 3, #ARGV, 2 do
    if ARGV[i + 1] == '' then
        redis.call('ZREM', KEYS[1], ARGV[i])
    else
        redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i])
    end
end
redis.call('SET', KEYS[2], ARGV[2])
return 1
