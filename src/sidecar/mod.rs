//! The sidecar: a Redis beside the store that keeps the order of sorted sets of encode-version 1.
//!
//! What is in it follows from the store, and can be made again from it. An order is a zset of indexes; a string beside it
//! tells the *revision* that it is in. Every request here is one atomic step in the sidecar that looks at the revision
//! first, so it may come late or twice without harm: a change is made to the revision that it belongs to, or not at all,
//! and a question is answered by the revision that was asked, or by none. `FORMAT.md` tells the whole protocol.

mod connection;
#[cfg(test)]
pub(crate) mod fixture;
mod members;

use std::{ops::Bound, result, time::Duration};

use bytes::Bytes;
use quick_cache::sync::Cache;
use redis::{RedisError, Script};
use respgate_backend_api::Direction;

use crate::encoding::{KeyCodec, OrderChange};

use connection::Connection;
use members::MemberCache;

/// The result of a request to the sidecar.
pub type Result<T> = result::Result<T, Unavailable>;

/// The sidecar cannot be reached, does not answer in time, or refuses. Try later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

impl From<RedisError> for Unavailable {
    fn from(error: RedisError) -> Self {
        Self(error.to_string())
    }
}

/// How to reach the sidecar.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis://[user:password@]host:port/database`, or `unix://path`.
    pub url: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long the sidecar caches the members behind indexes; zero for not at all.
    pub cache_ttl: Duration,
    /// Memory for members that are cached here.
    pub member_cache_bytes: u64,
}

/// The names of an order's keys in the sidecar.
#[derive(Clone, Debug)]
pub struct Names {
    order: Bytes,
    revision: Bytes,
}

impl Names {
    /// Those of one version of a key; `owner` is the name that it was created with.
    pub fn new(codec: &KeyCodec, db: u8, owner: &[u8], version: u64) -> Self {
        Self { order: codec.sidecar_order(db, owner, version), revision: codec.sidecar_revision(db, owner, version) }
    }
}

/// What state an order is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its revision; 0 if the sidecar knows none.
    pub revision: u64,
    /// How many indexes it has.
    pub count: u64,
}

/// An answer by the order in the state that was asked, or the state that it is in instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// The answer.
    Is(T),
    /// The order is in another state.
    Differs(State),
}

/// What to read of an order.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The least score.
    pub min: Bound<f64>,
    /// The greatest score.
    pub max: Bound<f64>,
    /// From which end the following two count.
    pub direction: Direction,
    /// How many entries to leave out.
    pub offset: usize,
    /// How many entries to read.
    pub limit: usize,
}

/// A part of an order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// Indexes and scores, from the least to the greatest. Where members with the same score stand behind digests, all
    /// of that score, even those beyond the window: the order of digests is not that of members.
    pub entries: Vec<(Bytes, f64)>,
    /// How many entries come before those of the window.
    pub before: usize,
    /// How many entries belong to the window.
    pub wanted: usize,
}

/// A connection to the sidecar, and what this process knows about it.
pub struct Sidecar {
    connection: Connection,
    scripts: Scripts,
    members: MemberCache,
    cache_ttl: Duration,
    /// Revisions in which orders were found last, by key-version.
    known: Cache<u64, u64>,
}

struct Scripts {
    apply: Script,
    count: Script,
    install: Script,
    read: Script,
}

impl Sidecar {
    /// Prepares a connection, which the first request opens.
    ///
    /// # Errors
    /// The URL cannot be read.
    pub fn new(options: &Options) -> Result<Self> {
        /// Each takes a few dozen bytes.
        const KNOWN_MAX: usize = 65_536;

        Ok(Self {
            connection: Connection::new(&options.url, options.connect_timeout, options.timeout)?,
            scripts: Scripts {
                apply: Script::new(include_str!("apply.lua")),
                count: Script::new(include_str!("count.lua")),
                install: Script::new(include_str!("install.lua")),
                read: Script::new(include_str!("read.lua")),
            },
            members: MemberCache::new(options.member_cache_bytes),
            cache_ttl: options.cache_ttl,
            known: Cache::new(KNOWN_MAX),
        })
    }

    /// True if the sidecar answered the last request, is still connected, and had the order of this version in this revision when it was
    /// asked last; every order that nobody has made yet has revision 0.
    pub fn is_known(&self, version: u64, revision: u64) -> bool {
        self.connection.is_healthy() && (revision == 0 || self.known.get(&version) == Some(revision))
    }

    /// Remembers the revision that an order is in.
    pub fn learn(&self, version: u64, revision: u64) {
        self.known.insert(version, revision);
    }

    /// The state of an order.
    pub async fn state(&self, names: &Names) -> Result<State> {
        let mut request = redis::pipe();
        request.atomic().get(&*names.revision).zcard(&*names.order);
        let (revision, count): (Option<u64>, u64) = self.connection.query(&request).await?;
        Ok(State { revision: revision.unwrap_or(0), count })
    }

    /// A part of an order.
    pub async fn read(&self, names: &Names, expected: State, window: &Window) -> Result<Answer<Entries>> {
        /// More than any order has, and still a number that Lua counts with.
        const MANY: usize = 1 << 52;

        let mut script = self.scripts.read.prepare_invoke();
        script.key(&*names.order).key(&*names.revision).arg(expected.revision).arg(expected.count);
        script.arg(below(window.min)).arg(upper(window.max));
        script.arg(window.offset.min(MANY)).arg(window.limit.min(MANY));
        script.arg(match window.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        });
        let (revision, count, before, wanted, flat): (u64, u64, i64, usize, Vec<Bytes>) =
            self.connection.invoke(&script).await?;
        let Ok(before) = usize::try_from(before) else { return Ok(Answer::Differs(State { revision, count })) };
        let mut flat = flat.into_iter();
        let mut entries = Vec::with_capacity(flat.len() / 2);
        while let (Some(index), Some(score)) = (flat.next(), flat.next()) {
            entries.push((index, parse_score(&score)?));
        }
        Ok(Answer::Is(Entries { entries, before, wanted }))
    }

    /// How many entries of an order have scores between two bounds.
    pub async fn count(&self, names: &Names, expected: State, min: Bound<f64>, max: Bound<f64>) -> Result<Answer<u64>> {
        let mut script = self.scripts.count.prepare_invoke();
        script.key(&*names.order).key(&*names.revision).arg(expected.revision).arg(expected.count);
        script.arg(lower(min)).arg(upper(max));
        let (revision, count, found): (u64, u64, i64) = self.connection.invoke(&script).await?;
        Ok(u64::try_from(found).map_or(Answer::Differs(State { revision, count }), Answer::Is))
    }

    /// Changes an order that is in revision `from`, which is in revision `to` then. False if it is in another one.
    pub async fn apply(&self, names: &Names, from: u64, to: u64, changes: &[OrderChange]) -> Result<bool> {
        let mut script = self.scripts.apply.prepare_invoke();
        script.key(&*names.order).key(&*names.revision).arg(from).arg(to);
        for (index, score) in changes {
            script.arg(&**index).arg(score.map(text).unwrap_or_default());
        }
        self.connection.invoke(&script).await
    }

    /// Adds entries to an order that is being put together under the name `loading`, apart from the one in use.
    pub async fn load(&self, loading: &[u8], entries: &[(Bytes, f64)]) -> Result<()> {
        /// What nobody goes on with is dropped by itself.
        const FORGOTTEN_AFTER_S: i64 = 600;

        if entries.is_empty() {
            return Ok(());
        }
        let mut request = redis::pipe();
        request.cmd("ZADD").arg(loading);
        for (index, score) in entries {
            request.arg(text(*score)).arg(&**index);
        }
        request.ignore().expire(loading, FORGOTTEN_AFTER_S).ignore();
        self.connection.query(&request).await
    }

    /// Puts what was loaded in place of an order that is in revision `from`. False if it is in another one.
    pub async fn install(&self, names: &Names, loading: &[u8], from: u64, to: u64) -> Result<bool> {
        let mut script = self.scripts.install.prepare_invoke();
        script.key(&*names.order).key(&*names.revision).key(loading).arg(from).arg(to);
        self.connection.invoke(&script).await
    }

    /// The scores of indexes in an order, in whatever state it is.
    pub async fn scores(&self, names: &Names, indexes: &[Bytes]) -> Result<Vec<Option<f64>>> {
        let mut request = redis::pipe();
        request.cmd("ZMSCORE").arg(&*names.order);
        for index in indexes {
            request.arg(&**index);
        }
        let (scores,) = self.connection.query(&request).await?;
        Ok(scores)
    }

    /// Deletes orders.
    pub async fn delete(&self, orders: &[Names]) -> Result<()> {
        let keys = orders.iter().flat_map(|names| [&*names.order, &*names.revision]);
        self.unlink(keys.collect()).await
    }

    /// Deletes keys by name.
    pub async fn unlink(&self, keys: Vec<&[u8]>) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut request = redis::pipe();
        request.unlink(keys).ignore();
        self.connection.query(&request).await
    }

    /// Some names of keys that begin with `prefix`, and the cursor for the next ones; 0 is the first and the last cursor.
    pub async fn scan(&self, prefix: &[u8], cursor: u64) -> Result<(u64, Vec<Bytes>)> {
        const LOOKED_AT: usize = 1_000;

        let mut pattern: Vec<u8> = Vec::with_capacity(prefix.len() + 1);
        for byte in prefix {
            if b"*?[]\\".contains(byte) {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        pattern.push(b'*');
        let mut request = redis::pipe();
        request.cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(LOOKED_AT);
        let (page,) = self.connection.query(&request).await?;
        Ok(page)
    }
}

/// The upper bound of the scores that are below `min`.
fn below(min: Bound<f64>) -> String {
    match min {
        Bound::Included(score) => format!("({}", text(score)),
        Bound::Excluded(score) => text(score),
        Bound::Unbounded => "(-inf".to_owned(),
    }
}

fn lower(min: Bound<f64>) -> String {
    match min {
        Bound::Included(score) => text(score),
        Bound::Excluded(score) => format!("({}", text(score)),
        Bound::Unbounded => "-inf".to_owned(),
    }
}

fn upper(max: Bound<f64>) -> String {
    match max {
        Bound::Unbounded => "+inf".to_owned(),
        bound => lower(bound),
    }
}

/// A score in its shortest form, from which Redis reads the same number again. There is only one zero.
fn text(score: f64) -> String {
    format!("{:e}", score + 0.0)
}

fn parse_score(text: &[u8]) -> Result<f64> {
    let score = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    score.ok_or_else(|| Unavailable("a score that is no number".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Names, fixture::Redis};
    use crate::encoding::KeyCodec;

    #[tokio::test]
    async fn a_connection_that_is_closed_is_noticed_without_a_question() {
        let mut redis = Redis::start();
        let sidecar = redis.sidecar();
        assert!(!sidecar.is_known(1, 0), "nobody has asked yet");
        sidecar.state(&Names::new(&KeyCodec::new("test", false).unwrap(), 0, b"z", 1)).await.unwrap();
        assert!(sidecar.is_known(1, 0));
        redis.stop();
        let until = Instant::now() + Duration::from_secs(30);
        while sidecar.is_known(1, 0) {
            assert!(Instant::now() < until);
            tokio::task::yield_now().await;
        }
    }
}
