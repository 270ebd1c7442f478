//! A day's work with redis-rs and its defaults, in RESP2 and RESP3. Other languages' clients are in `clients/`.

use redis::{Client, Commands, Connection, RedisResult};

use crate::support::Gateway;

fn connect(gateway: &Gateway, query: &str) -> Connection {
    let url = format!("redis://127.0.0.1:{}/{query}", gateway.port());
    Client::open(url).unwrap().get_connection().unwrap()
}

#[test]
fn a_day_in_resp2() {
    day("");
}

#[test]
fn a_day_in_resp3() {
    day("3?protocol=resp3");
}

fn day(query: &str) {
    let gateway = Gateway::start();
    let mut conn = connect(&gateway, query);
    let works: [fn(&mut Connection, &mut Connection) -> RedisResult<()>; 5] =
        [strings, expiry, pipelines, transactions, scanning];
    for work in works {
        work(&mut conn, &mut connect(&gateway, query)).unwrap();
        conn.flushdb::<()>().unwrap();
    }
}

fn strings(conn: &mut Connection, _: &mut Connection) -> RedisResult<()> {
    let every: Vec<u8> = (0..=255).collect();
    conn.set::<_, _, ()>("binary", &every)?;
    assert_eq!(conn.get::<_, Vec<u8>>("binary")?, every);
    assert_eq!(conn.incr::<_, _, i64>("n", 10)?, 10);
    assert_eq!(conn.incr::<_, _, f64>("f", 10.5)?, 10.5);
    assert_eq!(conn.append::<_, _, usize>("text", "héllo")?, 6);
    conn.mset::<_, _, ()>(&[("a", 1), ("b", 2)])?;
    assert_eq!(conn.mget::<_, (Option<i32>, Option<i32>, i32)>(&["a", "none", "b"])?, (Some(1), None, 2));
    assert!(!conn.set_nx::<_, _, bool>("a", 3)?);
    assert_eq!(conn.get_del::<_, i32>("a")?, 1);
    assert!(!conn.exists::<_, bool>("a")?);
    let error = conn.incr::<_, _, i64>("text", 1).unwrap_err();
    assert_eq!(error.detail(), Some("value is not an integer or out of range"));
    Ok(())
}

fn expiry(conn: &mut Connection, _: &mut Connection) -> RedisResult<()> {
    conn.set_ex::<_, _, ()>("short", "x", 1000)?;
    assert!((1..=1000).contains(&conn.ttl::<_, i64>("short")?));
    assert!(conn.persist::<_, bool>("short")?);
    assert!(conn.expire_at::<_, bool>("short", 1)?);
    assert_eq!(conn.get::<_, Option<String>>("short")?, None);
    Ok(())
}

fn pipelines(conn: &mut Connection, _: &mut Connection) -> RedisResult<()> {
    let mut pipe = redis::pipe();
    for at in 0..1_000 {
        pipe.set(format!("p:{at}"), at).ignore().get(format!("p:{at}"));
    }
    let replies: Vec<i32> = pipe.query(conn)?;
    assert!(replies.into_iter().eq(0..1_000));
    Ok(())
}

fn transactions(conn: &mut Connection, other: &mut Connection) -> RedisResult<()> {
    let (n,): (i32,) = redis::pipe().atomic().set("t", 1).ignore().incr("t", 1).query(conn)?;
    assert_eq!(n, 2);
    let mut tries = 0;
    let (doubled,): (i32,) = redis::transaction(conn, &["t"], |conn, pipe| {
        let value: i32 = conn.get("t")?;
        if tries == 0 {
            other.set::<_, _, ()>("t", 21)?;
        }
        tries += 1;
        pipe.set("t", value * 2).ignore().get("t").query(conn)
    })?;
    assert_eq!((doubled, tries), (42, 2));
    Ok(())
}

fn scanning(conn: &mut Connection, _: &mut Connection) -> RedisResult<()> {
    let pairs: Vec<(String, i32)> = (0..1_000).map(|at| (format!("s:{at}"), at)).collect();
    conn.mset::<_, _, ()>(&pairs)?;
    let mut found: Vec<String> = conn.scan_match("s:*")?.collect::<RedisResult<_>>()?;
    found.sort();
    found.dedup();
    assert_eq!(found.len(), pairs.len());
    Ok(())
}
