-- KEYS: order, revision. ARGV: expected revision and count, the bound below the range, its upper bound, offset, limit,
-- direction. Returns revision, count, how many of the entries come before the wanted ones, how many are wanted, entries.
local revision, count = redis.call('GET', KEYS[2]) or '0', redis.call('ZCARD', KEYS[1])
if revision ~= ARGV[1] or count ~= tonumber(ARGV[2]) then
    return {revision, count, -1, 0, {}}
end
local low = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[3])
local high = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[4])
local offset, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
local first, last
if ARGV[7] == 'forward' then
    first = low + offset
    last = math.min(first + limit, high)
else
    last = high - offset
    first = math.max(last - limit, low)
end
if first >= last then
    return {revision, count, 0, 0, {}}
end
-- Members behind a digest stand after all others of their score, wherever they belong: whoever reads a part of such a
-- group needs all of it.
local function group(rank)
    local score = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')[2]
    local from = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. score)
    local to = redis.call('ZCOUNT', KEYS[1], '-inf', score)
    local greatest = redis.call('ZRANGE', KEYS[1], to - 1, to - 1)[1]
    return from, to, string.byte(greatest, 1) == 1
end
local start, stop = first, last
for _, rank in ipairs({first, last - 1}) do
    local from, to, has_digests = group(rank)
    if has_digests then
        start, stop = math.min(start, from), math.max(stop, to)
    end
end
local entries = redis.call('ZRANGE', KEYS[1], start, stop - 1, 'WITHSCORES')
return {revision, count, first - start, last - first, entries}
