-- KEYS: order, revision, what was loaded. ARGV: from, to.
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then
    redis.call('UNLINK', KEYS[3])
    return 0
end
redis.call('UNLINK', KEYS[1])
if redis.call('EXISTS', KEYS[3]) == 1 then
    redis.call('RENAME', KEYS[3], KEYS[1])
    redis.call('PERSIST', KEYS[1])
end
redis.call('SET', KEYS[2], ARGV[2])
return 1
