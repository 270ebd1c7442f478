// A day's work with ioredis and its defaults, on the server at $RESPGATE_ADDR.
"use strict";

const assert = require("node:assert/strict");
const Redis = require("ioredis").Redis;

const [, host, port] = process.env.RESPGATE_ADDR.match(/^(.*):(\d+)$/);
const connect = (options = {}) => new Redis({ host, port: Number(port), ...options });

async function strings(r) {
  assert.equal(await r.set("js:text", "héllo"), "OK");
  assert.equal(await r.get("js:text"), "héllo");
  const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await r.set("js:binary", every);
  assert.deepEqual(await r.getBuffer("js:binary"), every);
  assert.deepEqual([await r.incr("js:n"), await r.incrby("js:n", 9), await r.decr("js:n")], [1, 10, 9]);
  assert.equal(await r.append("js:text", "!"), 7);
  assert.equal(await r.mset({ "js:a": 1, "js:b": 2 }), "OK");
  assert.deepEqual(await r.mget("js:a", "js:none", "js:b"), ["1", null, "2"]);
  assert.equal(await r.set("js:a", 3, "NX"), null);
  assert.equal(await r.set("js:a", 3, "GET"), "1");
  assert.equal(await r.getdel("js:a"), "3");
}

async function expiry(r) {
  await r.set("js:short", "x", "EX", 1000);
  const left = await r.ttl("js:short");
  assert(left > 0 && left <= 1000);
  assert.equal(await r.persist("js:short"), 1);
  assert.equal(await r.expireat("js:short", 1), 1);
  assert.equal(await r.get("js:short"), null);
}

async function pipelines(r) {
  const pipe = r.pipeline();
  for (let i = 0; i < 1000; i++) pipe.set(`js:p:${i}`, i).get(`js:p:${i}`);
  const replies = await pipe.exec();
  for (let i = 0; i < 1000; i++) assert.deepEqual(replies[2 * i + 1], [null, String(i)]);
  // Commands that are not awaited one by one travel together.
  const numbers = await Promise.all(Array.from({ length: 1000 }, () => r.incr("js:together")));
  assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, i) => i + 1));
}

async function transactions(r) {
  await r.set("js:text", "text");
  const replies = await r.multi().set("js:t", 1).incr("js:t").incr("js:text").exec();
  assert.deepEqual(replies.slice(0, 2), [[null, "OK"], [null, 2]]);
  assert.match(replies[2][0].message, /not an integer/);

  const other = r.duplicate();
  let tries = 0;
  for (let done = null; done === null; tries++) {
    await r.watch("js:t");
    const value = Number(await r.get("js:t"));
    if (tries === 0) await other.set("js:t", 21);
    done = await r.multi().set("js:t", value * 2).exec();
  }
  assert.equal(tries, 2);
  assert.equal(await r.get("js:t"), "42");
  await other.quit();
}

async function scanning(r) {
  await r.mset(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`js:s:${i}`, i])));
  const found = new Set();
  for await (const keys of r.scanStream({ match: "js:s:*", count: 50 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 1000);
}

async function wrong(r) {
  await assert.rejects(r.call("SET", "only-a-key"), /wrong number of arguments for 'set' command/);
}

async function day(r) {
  assert.equal(await r.ping(), "PONG");
  for (const work of [strings, expiry, pipelines, transactions, scanning, wrong]) {
    await r.flushdb();
    await work(r);
    console.log(`  ${work.name}`);
  }
  await r.flushdb();
  await r.quit();
}

(async () => {
  for (const options of [{}, { db: 3, connectionName: "day", enableAutoPipelining: true }]) {
    console.log(`ioredis ${require("ioredis/package.json").version} ${JSON.stringify(options)}`);
    await day(connect(options));
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
