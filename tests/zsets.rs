//! What sorted sets do that Redis 7.0, the oracle, does not know or does not show.

use crate::support::Gateway;

#[test]
fn ranks_come_with_scores() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let script = [
        ("ZADD z 1.5 a 2 b", ":2"),
        ("ZRANK z b WITHSCORE", "[:1, \"2\"]"),
        ("ZREVRANK z a WITHSCORE", "[:1, \"1.5\"]"),
        ("ZRANK z nothing WITHSCORE", "nil array"),
        ("ZRANK z nothing", "nil bulk"),
        ("ZRANK z a WITHSCORES", "-ERR syntax error"),
        ("ZRANK z a WITHSCORE WITHSCORE", "-ERR wrong number of arguments for 'zrank' command"),
    ];
    for (line, reply) in script {
        assert_eq!(conn.run(line).to_string(), reply, "{line}");
    }
}

#[test]
fn scores_are_printed_in_their_shortest_form() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    for score in ["0.1", "3", "-1e+30", "inf", "-inf", "5e-324", "1.7976931348623157e+308", "0.30000000000000004"] {
        conn.run(&format!("ZADD z {score} member"));
        assert_eq!(conn.run("ZSCORE z member").to_string(), format!("\"{score}\""));
        assert_eq!(conn.run("ZRANGE z 0 -1 WITHSCORES").to_string(), format!("[\"member\", \"{score}\"]"));
    }
}

/// Entries come in at one end and go out at the other; what is deleted in between must not be seen again.
#[test]
fn a_queue_gives_back_what_it_was_given() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    for number in 0..2_000 {
        conn.run(&format!("ZADD queue {number} first:{number}"));
        conn.run(&format!("ZADD queue {number} second:{number}"));
        let popped = conn.run("ZPOPMIN queue");
        let name = if number % 2 == 0 { "first" } else { "second" };
        assert_eq!(popped.to_string(), format!("[\"{name}:{0}\", \"{0}\"]", number / 2));
    }
    assert_eq!(conn.run("ZCARD queue").to_string(), ":2000");
}
