//! Sends a sequence to a gateway and to Redis, and finds the first reply that differs.

use std::io;

use respgate_test_cluster::TestCluster;

use super::compare::{EncodeVersion, Rule, pairs_sorted, transaction_accepts};
use super::grammar::Args;
use super::plan::{CONNECTIONS, Call};
use crate::support::{Conn, Gateway, Options, Redis, Value};

/// The two servers.
pub(crate) struct Servers {
    gateway: Gateway,
    redis: Redis,
    /// The one beside the gateway.
    sidecar: Redis,
    version: EncodeVersion,
    /// More settings of the gateway.
    env: Env,
    /// What the gateways share, if there are several.
    cluster: Option<TestCluster>,
}

/// Settings by environment variable.
pub(crate) type Env = &'static [(&'static str, &'static str)];

/// Where the replies part.
pub(crate) struct Difference {
    /// The call, by its place in the sequence; none if only the audit at the end shows it.
    pub(crate) at: Option<usize>,
    /// The call, as text.
    pub(crate) call: String,
    pub(crate) ours: String,
    pub(crate) oracle: String,
}

/// What the two replied; an error if the connection broke.
type Replies = (io::Result<Value>, io::Result<Value>);

/// A connection to each of the two, in the same state.
struct Pair {
    gateway: Conn,
    redis: Conn,
    version: EncodeVersion,
    /// The rules of the queued commands, between MULTI and EXEC.
    queued: Option<Vec<Rule>>,
}

impl Servers {
    pub(crate) fn start(version: EncodeVersion, env: Env) -> Self {
        Self::with(version, env, None)
    }

    /// Three gateways in front of a cluster, and Redis.
    #[cfg(feature = "tikv")]
    pub(crate) fn over(cluster: TestCluster) -> Self {
        Self::with(EncodeVersion::V0, &[], Some(cluster))
    }

    fn with(version: EncodeVersion, env: Env, cluster: Option<TestCluster>) -> Self {
        let sidecar = Redis::start();
        let gateway = start_gateway(version, env, &sidecar, cluster.as_ref());
        Self { gateway, redis: Redis::start(), sidecar, version, env, cluster }
    }

    /// Runs a sequence on empty servers and then reads everything back with `audit`.
    pub(crate) fn first_difference(&mut self, calls: &[Call], audit: &[Args]) -> Option<Difference> {
        if !self.gateway.is_running() {
            self.gateway = start_gateway(self.version, self.env, &self.sidecar, self.cluster.as_ref());
        }
        let mut cleaner = self.connect();
        cleaner.both(&[vec![b"FLUSHALL".to_vec()]]);
        let mut pairs: Vec<Pair> = (0..CONNECTIONS).map(|_| self.connect()).collect();
        let mut at = 0;
        while at < calls.len() {
            let batch = batch(&calls[at..]);
            let pair = &mut pairs[batch[0].connection];
            if let Some((offset, difference)) = pair.compare(batch) {
                return Some(Difference { at: Some(at + offset), ..difference });
            }
            at += batch.len();
        }
        let found = cleaner
            .both(audit)
            .into_iter()
            .zip(audit)
            .find_map(|(replies, args)| differ(self.version.rule(args), args, replies));
        found.map(|difference| Difference { at: None, ..difference })
    }

    fn connect(&self) -> Pair {
        Pair { gateway: self.gateway.connect(), redis: self.redis.connect(), version: self.version, queued: None }
    }
}

fn start_gateway(version: EncodeVersion, env: Env, sidecar: &Redis, cluster: Option<&TestCluster>) -> Gateway {
    let url = sidecar.url();
    let env = [version.env(), env, &[("RESPGATE_SIDECAR__URL", &url)]].concat();
    let (pd, gateways) = (cluster.map(TestCluster::pd), cluster.map(|_| 3));
    Gateway::with(&Options { env: &env, pd, gateways, ..Options::default() })
}

/// The first calls that go out in one write.
fn batch(calls: &[Call]) -> &[Call] {
    let follows = |pair: &[Call]| pair[0].joined && pair[1].connection == pair[0].connection;
    let length = 1 + calls.windows(2).take_while(|pair| follows(pair)).count();
    &calls[..length]
}

impl Pair {
    /// Sends one batch to both; the offset of the first reply that differs, and what it was.
    fn compare(&mut self, batch: &[Call]) -> Option<(usize, Difference)> {
        if let [call] = batch
            && self.queued.is_none()
            && starts_scan(&call.args)
        {
            let replies = (scan(&mut self.gateway, &call.args), scan(&mut self.redis, &call.args));
            return differ(Rule::Exact, &call.args, replies).map(|difference| (0, difference));
        }
        let commands: Vec<Args> = batch.iter().map(|call| call.args.clone()).collect();
        let replies = self.both(&commands);
        let mut each = commands.iter().zip(replies).enumerate();
        each.find_map(|(offset, (args, replies))| Some((offset, self.check(args, replies)?)))
    }

    fn check(&mut self, args: &Args, replies: Replies) -> Option<Difference> {
        let name = args[0].to_ascii_uppercase();
        let queued = matches!(&replies.1, Ok(Value::Simple(text)) if text == "QUEUED");
        let failed = matches!(replies.1, Ok(Value::Error(_)));
        if name == b"EXEC"
            && let Some(rules) = self.queued.take()
        {
            return match &replies {
                (Ok(ours), Ok(oracle)) if transaction_accepts(&rules, ours, oracle) => None,
                _ => Some(difference(args, replies)),
            };
        }
        match (name.as_slice(), &mut self.queued) {
            (b"MULTI", rules @ None) if !failed => *rules = Some(Vec::new()),
            (b"DISCARD" | b"RESET", rules) if !failed && !queued => *rules = None,
            (_, Some(rules)) if queued => rules.push(self.version.rule(args)),
            _ => {}
        }
        let rule = if queued { Rule::Exact } else { self.version.rule(args) };
        differ(rule, args, replies)
    }

    /// Sends the same commands to both, each in one write.
    fn both(&mut self, commands: &[Args]) -> Vec<Replies> {
        let ours = replies(&mut self.gateway, commands);
        let oracle = replies(&mut self.redis, commands);
        ours.into_iter().zip(oracle).collect()
    }
}

fn replies(conn: &mut Conn, commands: &[Args]) -> Vec<io::Result<Value>> {
    let bytes: Vec<u8> = commands.iter().flat_map(|args| crate::support::command(args)).collect();
    // A connection that cannot be written to cannot be read from either: the reads tell.
    let _ = conn.try_send(&bytes);
    let mut broken = false;
    let read = |_| match broken {
        true => Err(io::ErrorKind::NotConnected.into()),
        false => conn.try_read().inspect_err(|_| broken = true),
    };
    commands.iter().map(read).collect()
}

fn differ(rule: Rule, args: &Args, replies: Replies) -> Option<Difference> {
    match &replies {
        (Ok(ours), Ok(oracle)) if rule.accepts(ours, oracle) => None,
        _ => Some(difference(args, replies)),
    }
}

fn difference(args: &Args, (ours, oracle): Replies) -> Difference {
    let show =
        |reply: io::Result<Value>| reply.map_or_else(|error| format!("connection: {error}"), |value| value.to_string());
    let call = args.iter().map(|arg| crate::support::quoted(arg)).collect::<Vec<_>>().join(" ");
    Difference { at: None, call, ours: show(ours), oracle: show(oracle) }
}

fn cursor_at(args: &Args) -> usize {
    usize::from(!args[0].eq_ignore_ascii_case(b"SCAN")) + 1
}

/// True for SCAN, HSCAN, SSCAN or ZSCAN from the start.
fn starts_scan(args: &Args) -> bool {
    let scans: [&[u8]; 4] = [b"SCAN", b"HSCAN", b"SSCAN", b"ZSCAN"];
    scans.contains(&args[0].to_ascii_uppercase().as_slice())
        && args.get(cursor_at(args)).is_some_and(|cursor| cursor == b"0")
}

/// A whole iteration: the set of what it returned, or the error that ended it.
fn scan(conn: &mut Conn, args: &Args) -> io::Result<Value> {
    let mut args = args.clone();
    let mut found = Vec::new();
    loop {
        conn.try_send(&crate::support::command(&args))?;
        let reply = conn.try_read()?;
        let Value::Array(parts) = &reply else { return Ok(reply) };
        let [cursor, page] = parts.as_slice() else { return Ok(reply) };
        match args[0].to_ascii_uppercase().as_slice() {
            b"HSCAN" => {
                found.extend(pairs_sorted(page).into_iter().map(|(a, b)| Value::Array(vec![a.clone(), b.clone()])))
            }
            b"ZSCAN" => {
                found.extend(pairs_sorted(page).into_iter().map(|(a, b)| Value::Array(vec![a.clone(), by_value(b)])))
            }
            _ => found.extend(page.elements().iter().cloned()),
        }
        if cursor.bytes() == b"0" {
            found.sort();
            found.dedup();
            return Ok(Value::Set(found));
        }
        let at = cursor_at(&args);
        args[at] = cursor.bytes().to_vec();
    }
}

/// A score, printed as Rust does: 7.0 and 7.2 print it differently.
fn by_value(score: &Value) -> Value {
    score.text().parse::<f64>().map_or_else(|_| score.clone(), |number| Value::bulk(number.to_string()))
}
