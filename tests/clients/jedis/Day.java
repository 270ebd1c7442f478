import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** A day's work with Jedis and its defaults, on the server at $RESPGATE_ADDR. */
class Day {
    static final HostAndPort SERVER = HostAndPort.from(System.getenv("RESPGATE_ADDR"));

    static Jedis connect(DefaultJedisClientConfig config) {
        return config == null ? new Jedis(SERVER) : new Jedis(SERVER, config);
    }

    static void check(String what, Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": got " + got + ", want " + want);
        }
    }

    static void strings(Jedis r) {
        check("SET", r.set("java:text", "héllo"), "OK");
        check("GET", r.get("java:text"), "héllo");
        byte[] every = new byte[256];
        for (int i = 0; i < every.length; i++) {
            every[i] = (byte) i;
        }
        byte[] key = "java:binary".getBytes(StandardCharsets.UTF_8);
        r.set(key, every);
        check("binary", Arrays.equals(r.get(key), every), true);
        check("INCRBY", r.incrBy("java:n", 10), 10L);
        check("INCRBYFLOAT", r.incrByFloat("java:f", 10.5), 10.5);
        check("APPEND", r.append("java:text", "!"), 7L);
        check("MSET", r.mset("java:a", "1", "java:b", "2"), "OK");
        check("MGET", r.mget("java:a", "java:none", "java:b"), Arrays.asList("1", null, "2"));
        check("SET NX", r.set("java:a", "3", SetParams.setParams().nx()), null);
        check("GETDEL", r.getDel("java:a"), "1");
        check("EXISTS", r.exists("java:a", "java:b"), 1L);
    }

    static void expiry(Jedis r) {
        r.setex("java:short", 1000, "x");
        long left = r.ttl("java:short");
        check("TTL", left > 0 && left <= 1000, true);
        check("PERSIST", r.persist("java:short"), 1L);
        check("EXPIREAT", r.expireAt("java:short", 1), 1L);
        check("expired", r.get("java:short"), null);
    }

    static void pipelines(Jedis r) {
        Pipeline pipe = r.pipelined();
        for (int i = 0; i < 1000; i++) {
            pipe.set("java:p:" + i, Integer.toString(i));
            pipe.get("java:p:" + i);
        }
        List<Object> replies = pipe.syncAndReturnAll();
        for (int i = 0; i < 1000; i++) {
            check("pipelined GET", replies.get(2 * i + 1), Integer.toString(i));
        }
    }

    static void transactions(Jedis r, Jedis other) {
        Transaction first = r.multi();
        first.set("java:t", "1");
        Response<Long> incremented = first.incr("java:t");
        first.exec();
        check("MULTI", incremented.get(), 2L);

        int tries = 0;
        List<Object> done = null;
        while (done == null) {
            r.watch("java:t");
            int value = Integer.parseInt(r.get("java:t"));
            if (tries++ == 0) {
                other.set("java:t", "21");
            }
            Transaction attempt = r.multi();
            attempt.set("java:t", Integer.toString(value * 2));
            done = attempt.exec();
        }
        check("tries", tries, 2);
        check("WATCH", r.get("java:t"), "42");
    }

    static void scanning(Jedis r) {
        for (int i = 0; i < 1000; i++) {
            r.set("java:s:" + i, "x");
        }
        Set<String> found = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = r.scan(cursor, new ScanParams().match("java:s:*").count(50));
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        check("SCAN", found.size(), 1000);
    }

    static void wrong(Jedis r) {
        r.set("java:text", "text");
        try {
            r.incr("java:text");
        } catch (JedisDataException error) {
            check("error", error.getMessage(), "ERR value is not an integer or out of range");
            return;
        }
        throw new AssertionError("INCR of a text is accepted");
    }

    static void day(DefaultJedisClientConfig config) {
        try (Jedis r = connect(config); Jedis other = connect(config)) {
            check("PING", r.ping(), "PONG");
            List<Consumer<Jedis>> works =
                    List.of(Day::strings, Day::expiry, Day::pipelines, Day::scanning, Day::wrong, j -> transactions(j, other));
            for (var work : works) {
                r.flushDB();
                work.accept(r);
            }
            r.flushDB();
        }
    }

    public static void main(String[] args) {
        System.out.println("jedis");
        day(null);
        System.out.println("jedis, RESP3");
        day(DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP3).clientName("day").database(3).build());
        System.out.println("jedis, pooled");
        try (RedisClient r = RedisClient.create(SERVER)) {
            check("SET", r.set("java:pooled", "1"), "OK");
            check("INCR", r.incr("java:pooled"), 2L);
        }
    }
}
