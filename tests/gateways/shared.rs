//! A cluster that asks for certificates, and one that others use too.

use respgate_test_cluster::TestCluster;
use tempfile::TempDir;

use super::gateway;
use crate::support::{Gateway, Options, Value};

#[test]
fn certificates_are_shown_and_asked_for() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let Some(cluster) = TestCluster::with(&["--tls", dir.path().to_str().unwrap()]) else { return };
    let (ca, cert, key) = (path("ca.pem"), path("client.pem"), path("client-key.pem"));
    let env = [("RESPGATE_TIKV__TLS_CA", &*ca), ("RESPGATE_TIKV__TLS_CERT", &cert), ("RESPGATE_TIKV__TLS_KEY", &key)];
    let gateways = [gateway(&cluster, &env), gateway(&cluster, &env)];
    let mut conns = gateways.each_ref().map(Gateway::connect);
    assert_eq!(conns[0].run("MSET a 1 b 2"), Value::ok());
    assert_eq!(conns[1].run("INCR a"), Value::Integer(2));
    assert_eq!(conns[0].run("MGET a b").elements(), [Value::bulk("2"), Value::bulk("2")]);

    // Neither without a certificate, nor with one that another authority has signed.
    let other_dir = TempDir::new().unwrap();
    let Some(_other) = TestCluster::with(&["--tls", other_dir.path().to_str().unwrap()]) else { return };
    let path = |name: &str| other_dir.path().join(name).to_str().unwrap().to_owned();
    let (other_cert, other_key) = (path("client.pem"), path("client-key.pem"));
    let strangers = [
        ("RESPGATE_TIKV__TLS_CA", &*ca),
        ("RESPGATE_TIKV__TLS_CERT", &other_cert),
        ("RESPGATE_TIKV__TLS_KEY", &other_key),
    ];
    for env in [&[][..], &strangers] {
        let mut gateway = Gateway::with(&Options { pd: Some(cluster.pd()), env, ..Options::default() });
        gateway.wait_for_log("the placement driver cannot be reached");
        let Value::Error(error) = gateway.connect().run("GET a") else { panic!("let in without a certificate") };
        assert!(error.starts_with("LOADING"), "{error}");
    }
}

/// Two gateways in each part of a cluster. One prefix is the beginning of another, and the name of a keyspace.
#[test]
fn gateways_with_other_prefixes_or_keyspaces_see_nothing_of_each_other() {
    const PREFIX: &str = "RESPGATE_TIKV__KEY_PREFIX";
    const KEYSPACE: &str = "RESPGATE_TIKV__KEYSPACE";

    let Some(cluster) = TestCluster::start() else { return };
    let start = |setting| [(); 2].map(|()| gateway(&cluster, &[setting]));
    let fleets = [(PREFIX, "app"), (PREFIX, "app2"), (KEYSPACE, "app")].map(start);
    let mut conns = fleets.each_ref().map(|fleet| fleet.each_ref().map(Gateway::connect));
    for (number, [first, second]) in conns.iter_mut().enumerate() {
        assert_eq!(first.run("DBSIZE"), Value::Integer(0));
        assert_eq!(first.run(&format!("SET key {number}")), Value::ok());
        for element in 0..=number {
            second.run(&format!("RPUSH list {element}"));
            second.run(&format!("ZADD zset {element} {element}"));
        }
    }
    for (number, [first, second]) in conns.iter_mut().enumerate() {
        assert_eq!(second.run("GET key"), Value::bulk(number.to_string()));
        assert_eq!(first.run("LLEN list"), Value::Integer(number as i64 + 1));
        assert_eq!(first.run("ZRANGE zset 0 -1").elements().len(), number + 1);
        for conn in [first, second] {
            assert_eq!(conn.run("DBSIZE"), Value::Integer(3));
            assert_eq!(conn.run("KEYS *").elements().len(), 3);
        }
    }
    let [flushed, swapped, left_alone] = &mut conns;
    assert_eq!(swapped[0].run("SWAPDB 0 1"), Value::ok());
    assert_eq!(swapped[1].run("EXISTS key"), Value::Integer(0));
    assert_eq!(flushed[0].run("FLUSHALL"), Value::ok());
    assert_eq!(flushed[1].run("DBSIZE"), Value::Integer(0));
    assert_eq!(left_alone[0].run("DBSIZE"), Value::Integer(3));
    swapped[0].run("SELECT 1");
    assert_eq!(swapped[0].run("DBSIZE"), Value::Integer(3));
}
