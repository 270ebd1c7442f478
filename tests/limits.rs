//! What one client may take from the others: connections, memory, time, and the password that it needs.

use std::time::{Duration, Instant};

use crate::support::{Conn, DEADLINE, Gateway, Options, Value};

fn with_env(env: &[(&str, &str)]) -> Gateway {
    Gateway::with(&Options { env, ..Options::alone() })
}

#[test]
fn one_client_too_many_is_turned_away() {
    let gateway = with_env(&[("RESPGATE_SERVER__MAXCLIENTS", "3")]);
    let mut clients: Vec<Conn> = (0..3).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|conn| assert_eq!(conn.run("PING").text(), "PONG"));
    assert_eq!(gateway.connect().read_to_close(), b"-ERR max number of clients reached\r\n");
    clients.pop();
    // It may take a moment until the gateway has seen the one leave.
    let until = Instant::now() + DEADLINE;
    while gateway.connect().run("PING") != Value::Simple("PONG".into()) {
        assert!(Instant::now() < until, "the place that became free is not given away");
    }
    clients.iter_mut().for_each(|conn| assert_eq!(conn.run("PING").text(), "PONG"));
}

#[test]
fn a_silent_client_is_hung_up_on_and_a_busy_one_is_not() {
    let gateway = with_env(&[("RESPGATE_SERVER__IDLE_TIMEOUT", "1s")]);
    let mut busy = gateway.connect();
    let mut silent = gateway.connect();
    let silent = std::thread::spawn(move || silent.read_to_close());
    while !silent.is_finished() {
        assert_eq!(busy.run("PING").text(), "PONG");
    }
    assert!(silent.join().unwrap().is_empty());
    assert_eq!(busy.run("PING").text(), "PONG");
}

#[test]
fn a_client_that_does_not_read_holds_back_nobody_and_takes_little() {
    const MIB: usize = 1 << 20;
    let gateway = Gateway::alone();
    let mut bystander = gateway.connect();
    bystander.call(&["SET".as_bytes(), b"large", &vec![b'x'; MIB]]);
    let before = gateway.resident_bytes();
    let deaf: Vec<Conn> = (0..4).map(|_| gateway.connect()).collect();
    let requests = b"GET large\r\n".repeat(1_000);
    deaf.iter().for_each(|conn| conn.send_aside(requests.clone()));
    for at in 0..1_000 {
        assert_eq!(bystander.call(&["SET", "busy", &at.to_string()]), Value::ok());
    }
    let after = gateway.resident_bytes();
    assert!(after < before + (256 << 20), "{before} bytes before, {after} after");
}

#[test]
fn a_password_is_asked_for_and_kept_secret() {
    let mut gateway = with_env(&[("RESPGATE_SERVER__REQUIREPASS", "s3cr3t-word")]);
    let mut conn = gateway.connect();
    let refused = Value::error("NOAUTH Authentication required.");
    assert_eq!(conn.run("GET a"), refused);
    assert_eq!(conn.run("NOTHING"), Value::error("ERR unknown command 'NOTHING', with args beginning with: "));
    let wrong = Value::error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(conn.run("AUTH guess"), wrong);
    assert_eq!(conn.run("AUTH nobody s3cr3t-word"), wrong);
    assert_eq!(conn.run("MULTI"), refused);
    assert_eq!(conn.run("AUTH s3cr3t-word"), Value::ok());
    assert_eq!(conn.run("SET a 1"), Value::ok());
    assert_eq!(conn.run("RESET"), Value::Simple("RESET".into()));
    assert_eq!(conn.run("GET a"), refused);
    assert!(matches!(gateway.connect().run("HELLO 3 AUTH default s3cr3t-word"), Value::Map(_)));
    let asks = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
                <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
    assert_eq!(gateway.connect().run("HELLO 3"), Value::error(asks));
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    assert!(!gateway.log().iter().any(|line| line.contains("s3cr3t")), "the password is in the log");
}

#[test]
fn strangers_may_send_only_little() {
    let gateway = with_env(&[("RESPGATE_SERVER__REQUIREPASS", "s3cr3t-word")]);
    for (bytes, text) in
        [("*11\r\n", "unauthenticated multibulk length"), ("*2\r\n$16385\r\n", "unauthenticated bulk length")]
    {
        let mut conn = gateway.connect();
        conn.send(bytes.as_bytes());
        assert_eq!(conn.read(), Value::error(&format!("ERR Protocol error: {text}")));
    }
}

#[test]
fn a_client_can_be_killed_by_another() {
    let gateway = Gateway::alone();
    let (mut victim, mut killer) = (gateway.connect(), gateway.connect());
    let id = victim.run("CLIENT ID").integer();
    assert!(killer.run("CLIENT LIST").text().contains(&format!("id={id} ")));
    assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    assert!(victim.read_to_close().is_empty());
    assert!(!killer.run("CLIENT LIST").text().contains(&format!("id={id} ")));
}

#[test]
fn a_pause_holds_writers_until_it_is_lifted() {
    let gateway = Gateway::alone();
    let (mut master, mut writer, mut reader) = (gateway.connect(), gateway.connect(), gateway.connect());
    assert_eq!(master.run("CLIENT PAUSE 1000000 WRITE"), Value::ok());
    writer.send(b"SET a 1\r\n");
    assert_eq!(reader.run("GET a"), Value::NilBulk);
    assert!(writer.is_silent_for(Duration::from_millis(200)));
    assert_eq!(master.run("CLIENT UNPAUSE"), Value::ok());
    assert_eq!(writer.read(), Value::ok());
    assert_eq!(reader.run("GET a").text(), "1");
}

#[test]
fn a_pause_holds_transactions_that_write() {
    let gateway = Gateway::alone();
    let (mut master, mut conn) = (gateway.connect(), gateway.connect());
    assert_eq!(master.run("CLIENT PAUSE 1000000 WRITE"), Value::ok());
    conn.pipeline(&[vec!["MULTI"], vec!["GET", "a"]]);
    assert_eq!(conn.run("EXEC"), Value::Array(vec![Value::NilBulk]));
    conn.pipeline(&[vec!["MULTI"], vec!["SET", "a", "1"]]);
    conn.send(b"EXEC\r\n");
    assert!(conn.is_silent_for(Duration::from_millis(200)));
    assert_eq!(master.run("CLIENT UNPAUSE"), Value::ok());
    assert_eq!(conn.read(), Value::Array(vec![Value::ok()]));
}

/// Waits until a client has begun a command, and kills it.
fn kill_during(killer: &mut Conn, command: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < until, "nobody runs {command}");
        let list = killer.run("CLIENT LIST").text();
        if let Some(line) = list.lines().find(|line| line.contains(&format!("cmd={command} "))) {
            let id = line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).unwrap();
            assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_client_does_not_finish_what_it_waits_for() {
    let gateway = Gateway::alone();
    let mut killer = gateway.connect();
    let mut sleeper = gateway.connect();
    sleeper.send(b"DEBUG SLEEP 1000\r\n");
    kill_during(&mut killer, "debug|sleep");
    assert!(sleeper.read_to_close().is_empty());

    assert_eq!(killer.run("CLIENT PAUSE 1000000 WRITE"), Value::ok());
    let (mut writer, mut transaction) = (gateway.connect(), gateway.connect());
    writer.send(b"SET a 1\r\n");
    transaction.pipeline(&[vec!["MULTI"], vec!["SET", "b", "1"]]);
    transaction.send(b"EXEC\r\n");
    kill_during(&mut killer, "set");
    kill_during(&mut killer, "exec");
    assert!(writer.read_to_close().is_empty());
    assert!(transaction.read_to_close().is_empty());
    assert_eq!(killer.run("CLIENT UNPAUSE"), Value::ok());
    assert_eq!(killer.run("EXISTS a b"), Value::Integer(0));
}

/// A client that always has more to say must not keep its connection, or the gateway, from ending.
#[test]
fn a_busy_client_can_be_killed() {
    let gateway = Gateway::alone();
    let (mut killer, mut busy) = (gateway.connect(), gateway.connect());
    let id = busy.run("CLIENT ID").integer();
    std::thread::scope(|scope| {
        let busy = scope.spawn(move || {
            let commands = vec![vec!["GET", "a"]; 100];
            while busy.try_pipeline(&commands).is_ok() {}
        });
        assert_eq!(killer.run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
        busy.join().unwrap();
    });
}
