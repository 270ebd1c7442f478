"""A day's work with redis-py and its defaults, on the server at $RESPGATE_ADDR."""

import os
import time

import redis

HOST, _, PORT = os.environ["RESPGATE_ADDR"].rpartition(":")


def connect(**options):
    return redis.Redis(host=HOST, port=int(PORT), **options)


def strings(r):
    assert r.set("py:text", "héllo") is True
    assert r.get("py:text") == "héllo".encode()
    every = bytes(range(256))
    r.set(b"py:\x00\xff", every)
    assert r.get(b"py:\x00\xff") == every
    assert [r.incr("py:n"), r.incrby("py:n", 9), r.decr("py:n")] == [1, 10, 9]
    assert r.incrbyfloat("py:f", 10.5) == 10.5
    assert r.append("py:text", "!") == 7
    assert r.getrange("py:text", 0, 0) == b"h"
    assert r.mset({"py:a": 1, "py:b": 2}) is True
    assert r.mget("py:a", "py:none", "py:b") == [b"1", None, b"2"]
    assert r.set("py:a", 3, nx=True) is None
    assert r.set("py:a", 3, get=True) == b"1"
    assert r.getdel("py:a") == b"3"
    assert r.exists("py:a", "py:b") == 1


def expiry(r):
    r.set("py:short", "x", ex=1000)
    assert 0 < r.ttl("py:short") <= 1000
    assert r.persist("py:short") is True
    assert r.ttl("py:short") == -1
    assert r.expireat("py:short", 1) is True
    assert r.get("py:short") is None
    assert r.ttl("py:short") == -2
    r.set("py:gone", "x", px=50)
    deadline = time.monotonic() + 10
    while r.exists("py:gone"):
        assert time.monotonic() < deadline, "a key outlives its expiry"


def pipelines(r):
    pipe = r.pipeline(transaction=False)
    for i in range(1000):
        pipe.set(f"py:p:{i}", i)
        pipe.get(f"py:p:{i}")
    replies = pipe.execute()
    assert replies[1::2] == [str(i).encode() for i in range(1000)]


def transactions(r):
    r.set("py:text", "text")
    with r.pipeline() as pipe:
        pipe.set("py:t", 1).incr("py:t").incr("py:text")
        set_, incremented, failed = pipe.execute(raise_on_error=False)
    assert (set_, incremented) == (True, 2)
    assert isinstance(failed, redis.ResponseError)

    interfered = []

    def double(pipe):
        value = int(pipe.get("py:t"))
        if not interfered:
            interfered.append(r.set("py:t", 21))
        pipe.multi()
        pipe.set("py:t", value * 2)

    r.transaction(double, "py:t")
    assert r.get("py:t") == b"42", "the WATCH did not notice"


def scanning(r):
    r.mset({f"py:p:{i}": i for i in range(1000)})
    found = set(r.scan_iter(match="py:p:*", count=50))
    assert found == {f"py:p:{i}".encode() for i in range(1000)}
    assert r.delete(*found) == 1000


def wrong(r):
    try:
        r.execute_command("SET", "only-a-key")
    except redis.ResponseError as error:
        assert "wrong number of arguments for 'set' command" in str(error)
    else:
        raise AssertionError("SET without a value is accepted")


def day(r):
    assert r.ping()
    assert r.info("server")["redis_version"].startswith("7.")
    assert r.config_get("maxclients")
    for work in strings, expiry, pipelines, transactions, scanning, wrong:
        r.flushdb()
        work(r)
        print(f"  {work.__name__}")
    r.flushdb()


for options in {}, {"protocol": 2}, {"protocol": 3, "client_name": "day", "db": 3}:
    print(f"redis-py {redis.__version__} {options}")
    day(connect(**options))
