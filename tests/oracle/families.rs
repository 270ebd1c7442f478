//! What the generators may send: templates, family by family. See [`super::grammar`] for how to read them.
//!
//! Left out is what cannot be compared: commands that keep the connection from answering (CLIENT PAUSE, CLIENT REPLY),
//! end it or the server (QUIT, SHUTDOWN), change its protocol within a transaction (HELLO), choose at random what they
//! change (SPOP of a part), and what Redis 7.0, the oracle, does not have yet (ZRANK WITHSCORE, CLIENT SETINFO).

/// Commands about one thing.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) templates: &'static [&'static str],
}

pub(crate) const STRINGS: Family = Family {
    name: "strings",
    templates: &[
        "APPEND skey value",
        "DECR skey",
        "DECRBY skey int",
        "GET skey",
        "GETDEL skey",
        "GETEX skey [EX ttl|PX ttl-ms|EXAT at|PXAT at-ms|PERSIST]",
        "~ GETEX skey EX ttl PERSIST",
        "GETRANGE skey index index",
        "GETSET skey value",
        "INCR skey",
        "INCRBY skey int",
        "INCRBYFLOAT skey float",
        "LCS skey skey [LEN|IDX] [MINMATCHLEN index] [WITHMATCHLEN]",
        "MGET key...",
        "MSET (key value)...",
        "MSET (skey value)...",
        "MSETNX (skey value)...",
        "PSETEX skey ttl-ms value",
        "SET skey value",
        "SET skey value [NX|XX] [GET] [EX ttl|PX ttl-ms|EXAT future|PXAT future-ms|KEEPTTL]",
        "~ SET skey value EX ttl PX ttl-ms",
        "~ SET skey value NX XX",
        "~ SET skey value KEEPTTL EX ttl",
        "SETEX skey ttl value",
        "SETNX skey value",
        "SETRANGE skey offset value",
        "STRLEN skey",
        "SUBSTR skey index index",
    ],
};

/// Strings around the length from which they are kept in chunks.
pub(crate) const LARGE_STRINGS: Family = Family {
    name: "large strings",
    templates: &[
        "APPEND large-key (large-value|value)",
        "~ COPY large-key large-key REPLACE",
        "~ DEL large-key",
        "GET large-key",
        "~ GETDEL large-key",
        "~ GETEX large-key EX ttl",
        "GETRANGE large-key large-offset large-offset",
        "GETRANGE large-key large-offset -1",
        "GETSET large-key (large-value|value)",
        "INCR large-key",
        "MGET large-key...",
        "MSET (large-key large-value)...",
        "~ RENAME large-key large-key",
        "SET large-key (large-value|value) [GET] [KEEPTTL|EX ttl]",
        "SETNX large-key large-value",
        "SETRANGE large-key large-offset (large-value|value)",
        "STRLEN large-key",
    ],
};

pub(crate) const KEYS: Family = Family {
    name: "keys",
    templates: &[
        "COPY key key [DB db] [REPLACE]",
        "DBSIZE",
        "DEL key...",
        "DUMP key",
        "EXISTS key...",
        // A relative time that is given twice is later the second time, unless both fall into one millisecond: GT.
        "EXPIRE key ttl [NX|XX|LT]",
        "~ EXPIRE key low-ttl (NX|XX|GT|LT)...",
        "EXPIREAT key at [NX|XX|GT|LT]",
        "EXPIRETIME key",
        "~ FLUSHALL [ASYNC|SYNC|WILD]",
        "~ FLUSHDB [ASYNC|SYNC|WILD]",
        "KEYS pattern",
        "MOVE key db",
        "OBJECT (ENCODING|FREQ|IDLETIME|REFCOUNT) key",
        "~ OBJECT HELP",
        "~ OBJECT NOTHING key",
        "PERSIST key",
        "PEXPIRE key ttl-ms [NX|XX|LT]",
        "PEXPIREAT key at-ms [NX|XX|GT|LT]",
        "PEXPIRETIME key",
        "PTTL key",
        "RANDOMKEY",
        "RENAME key key",
        "RENAMENX key key",
        "RESTORE skey ttl-ms string-payload [REPLACE] [IDLETIME count|FREQ count]",
        "~ RESTORE skey at-ms string-payload ABSTTL REPLACE",
        "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]",
        "SELECT db",
        "~ SWAPDB db db",
        "TOUCH key...",
        "TTL key",
        "TYPE key",
        "UNLINK key...",
    ],
};

/// RESTORE of every type, once there is every type.
pub(crate) const RESTORE: Family =
    Family { name: "restore", templates: &["RESTORE key ttl-ms payload [REPLACE]", "DUMP key"] };

pub(crate) const TRANSACTIONS: Family = Family {
    name: "transactions",
    templates: &["~ DISCARD", "~ EXEC", "~ MULTI", "UNWATCH", "~ WATCH key...", "~ EXEC value", "~ WATCH"],
};

pub(crate) const CONNECTION: Family = Family {
    name: "connection",
    templates: &[
        "AUTH value [value]",
        "CLIENT GETNAME",
        "CLIENT (ID|INFO|LIST)",
        "= CLIENT KILL (ID 999999|ID 0|ID X|ADDR value|TYPE NOTHING|TYPE PUBSUB|USER NOBODY|SKIPME value|127.0.0.1:1)",
        "= CLIENT LIST (TYPE NORMAL|TYPE REPLICA|TYPE NOTHING|ID index)",
        "CLIENT (NO-EVICT) (ON|OFF|value)",
        "CLIENT NOTHING value",
        "CLIENT SETNAME client-name",
        "CLIENT UNBLOCK 999999 [TIMEOUT|ERROR|value]",
        "CLIENT",
        "ECHO value",
        "~ HELLO [bad-protocol [SETNAME client-name|AUTH value value|value]]",
        "PING [value]",
        "~ RESET",
        "SELECT db",
    ],
};

pub(crate) const SERVER: Family = Family {
    name: "server",
    templates: &[
        "COMMAND (COUNT|HELP)",
        "= COMMAND GETKEYS (GET key|MSET (key value)...|DEL key...|SET key value|value value)",
        "COMMAND INFO (GET|MSET|NOTHING|PING)",
        "COMMAND LIST",
        "CONFIG GET (MAXCLIENTS|TIMEOUT|DATABASES|value)",
        "CONFIG (HELP|RESETSTAT|NOTHING)",
        "CONFIG SET NOTHING value",
        "~ INFO [value]",
        "LOLWUT",
        "MEMORY USAGE key [SAMPLES count]",
        "MEMORY (HELP|DOCTOR|NOTHING)",
        "NOTHING [value...]",
        "TIME",
    ],
};

pub(crate) const HASHES: Family = Family {
    name: "hashes",
    templates: &[
        "HDEL hkey field...",
        "HEXISTS hkey field",
        "HGET hkey field",
        "HGETALL hkey",
        "HINCRBY hkey field int",
        "HINCRBYFLOAT hkey field float",
        "HKEYS hkey",
        "HLEN hkey",
        "HMGET hkey field...",
        "HMSET hkey (field value)...",
        "HRANDFIELD hkey [index [WITHVALUES]]",
        "HSCAN hkey cursor [MATCH pattern] [COUNT count]",
        "HSET hkey (field value)...",
        "HSETNX hkey field value",
        "HSTRLEN hkey field",
        "HVALS hkey",
    ],
};

pub(crate) const LISTS: Family = Family {
    name: "lists",
    templates: &[
        "LINDEX lkey index",
        "LINSERT lkey (BEFORE|AFTER) element element",
        "LLEN lkey",
        "LMOVE lkey lkey (LEFT|RIGHT) (LEFT|RIGHT)",
        "~ LMOVE lkey lkey value LEFT",
        "LMPOP numkeys lkey [lkey] (LEFT|RIGHT) [COUNT count]",
        "LPOP lkey [count]",
        "LPOS lkey element [RANK rank] [COUNT count] [MAXLEN count]",
        "LPUSH lkey element...",
        "LPUSHX lkey element...",
        "LRANGE lkey index index",
        "LREM lkey index element",
        "LSET lkey index element",
        "LTRIM lkey index index",
        "RPOP lkey [count]",
        "RPOPLPUSH lkey lkey",
        "RPUSH lkey element...",
        "RPUSH lkey element element element element",
        "RPUSHX lkey element...",
    ],
};

pub(crate) const SETS: Family = Family {
    name: "sets",
    templates: &[
        "SADD setkey member...",
        "SADD setkey member member member",
        "SCARD setkey",
        "SDIFF setkey...",
        "SDIFFSTORE setkey setkey...",
        "SINTER setkey...",
        "SINTERCARD numkeys setkey [setkey] [LIMIT count]",
        "SINTERSTORE setkey setkey...",
        "SISMEMBER setkey member",
        "SMEMBERS setkey",
        "SMISMEMBER setkey member...",
        "SMOVE setkey setkey member",
        "~= SPOP setkey all",
        "SRANDMEMBER setkey [index]",
        "SREM setkey member...",
        "SSCAN setkey cursor [MATCH pattern] [COUNT count]",
        "SUNION setkey...",
        "SUNIONSTORE setkey setkey...",
    ],
};

pub(crate) const ZSETS: Family = Family {
    name: "zsets",
    templates: &[
        "ZADD zkey [NX|XX] [GT|LT] [CH] [INCR] (score member)...",
        "ZADD zkey [NX|XX] [CH] (score member)...",
        "ZADD zkey (score member)...",
        "ZADD zkey score member score member score member",
        "ZCARD zkey",
        "ZCOUNT zkey score-bound score-bound",
        "ZDIFF numkeys zkey [zkey] [WITHSCORES]",
        "ZDIFFSTORE zkey numkeys zkey [zkey]",
        "ZINCRBY zkey score member",
        "ZINTER numkeys zkey [zkey] [WEIGHTS weight [weight]] [AGGREGATE (SUM|MIN|MAX|value)] [WITHSCORES]",
        "ZINTER 2 zkey zkey [WITHSCORES]",
        "ZINTERCARD numkeys zkey [zkey] [LIMIT count]",
        "ZINTERSTORE zkey numkeys (zkey|setkey) [zkey] [WEIGHTS weight [weight]] [AGGREGATE (SUM|MIN|MAX)]",
        // A range by bytes means nothing among different scores, so it has keys of its own.
        "= ZADD lexkey 0 member 0 member 0 member",
        "= ZREM lexkey member",
        "= ZLEXCOUNT lexkey lex-bound lex-bound",
        "ZMPOP numkeys zkey [zkey] (MIN|MAX) [COUNT count]",
        "ZMSCORE zkey member...",
        "ZPOPMAX zkey [count]",
        "ZPOPMIN zkey [count]",
        "ZRANDMEMBER zkey [index [WITHSCORES]]",
        "ZRANGE zkey index index [REV] [WITHSCORES]",
        "ZRANGE zkey score-bound score-bound BYSCORE [REV] [LIMIT index index] [WITHSCORES]",
        "= ZRANGE lexkey lex-bound lex-bound BYLEX [REV] [LIMIT index index]",
        "~ ZRANGE zkey index index [BYSCORE] [LIMIT index index] [REV] [WITHSCORES]",
        "= ZRANGEBYLEX lexkey lex-bound lex-bound [LIMIT index index]",
        "ZRANGEBYSCORE zkey score-bound score-bound [WITHSCORES] [LIMIT index index]",
        "ZRANGESTORE zkey zkey index index [REV]",
        "ZRANGESTORE zkey zkey score-bound score-bound BYSCORE [REV] [LIMIT index index]",
        "= ZRANGESTORE lexkey lexkey lex-bound lex-bound BYLEX [REV]",
        // 7.2 takes WITHSCORE, of which 7.0 knows nothing, so they are not spoiled.
        "= ZRANK zkey member",
        "= ZREVRANK zkey member",
        "ZREM zkey member...",
        "= ZREMRANGEBYLEX lexkey lex-bound lex-bound",
        "ZREMRANGEBYRANK zkey index index",
        "ZREMRANGEBYSCORE zkey score-bound score-bound",
        "ZREVRANGE zkey index index [WITHSCORES]",
        "= ZREVRANGEBYLEX lexkey lex-bound lex-bound [LIMIT index index]",
        "ZREVRANGEBYSCORE zkey score-bound score-bound [WITHSCORES] [LIMIT index index]",
        "ZSCAN zkey cursor [MATCH pattern] [COUNT count]",
        "ZSCORE zkey member",
        "ZUNION numkeys zkey [zkey] [WEIGHTS weight [weight]] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]",
        "ZUNION 2 zkey zkey [WITHSCORES]",
        "ZUNIONSTORE zkey numkeys (zkey|setkey) [zkey] [WEIGHTS weight [weight]] [AGGREGATE (SUM|MIN|MAX)]",
    ],
};

pub(crate) const SORTING: Family = Family {
    name: "sorting",
    templates: &[
        "MSET (skey weight)...",
        "HSET hkey field weight",
        "= ZADD zkey index member index member",
        "SORT lkey [LIMIT index index] [ASC|DESC] ALPHA [STORE lkey]",
        "SORT (lkey|setkey|zkey) [LIMIT index index] [ASC|DESC] [ALPHA]",
        "= SORT lkey BY by-pattern [LIMIT index index] [GET get-pattern]... [ASC|DESC]",
        "SORT_RO (lkey|setkey|zkey) [LIMIT index index] [ASC|DESC] [ALPHA]",
    ],
};
