//! A sequence of calls over a few connections: alone, in pipelines, in transactions.

use std::fmt;

use rand::RngExt;
use rand::rngs::StdRng;

use super::atoms;
use super::families::Family;
use super::grammar::{Args, Template};
use crate::support::quoted;

/// Connections of one sequence.
pub(crate) const CONNECTIONS: usize = 3;

/// One command on one connection.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) connection: usize,
    /// Sent in one write with the call after it, if that is on the same connection.
    pub(crate) joined: bool,
    pub(crate) args: Args,
}

impl Call {
    fn new(connection: usize, joined: bool, args: Args) -> Self {
        Self { connection, joined, args }
    }

    fn words(connection: usize, words: &[&[u8]]) -> Self {
        Self::new(connection, false, words.iter().map(|word| word.to_vec()).collect())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}{}", self.connection, if self.joined { "+" } else { " " })?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// Writes sequences from the templates of some families.
pub(crate) struct Planner {
    families: Vec<Vec<Template>>,
    /// Transactions may watch keys: if that family is among those chosen.
    watches: bool,
}

impl Planner {
    pub(crate) fn new(families: &[Family]) -> Self {
        let parse = |family: &Family| family.templates.iter().map(|text| Template::parse(text)).collect();
        let watches = families.iter().any(|family| family.name == super::families::TRANSACTIONS.name);
        Self { families: families.iter().map(parse).collect(), watches }
    }

    /// About `length` calls.
    pub(crate) fn sequence(&self, length: usize, rng: &mut StdRng) -> Vec<Call> {
        let mut calls = Vec::new();
        for connection in 0..CONNECTIONS {
            if rng.random_bool(0.4) {
                calls.push(Call::words(connection, &[b"HELLO", b"3"]));
            }
        }
        while calls.len() < length {
            let connection = rng.random_range(0..CONNECTIONS);
            match rng.random_range(0..100) {
                0..8 => self.pipeline(connection, &mut calls, rng),
                8..14 => self.transaction(connection, &mut calls, rng),
                _ => calls.push(Call::new(connection, false, self.command(rng))),
            }
        }
        calls
    }

    fn pipeline(&self, connection: usize, calls: &mut Vec<Call>, rng: &mut StdRng) {
        let length = rng.random_range(2..20);
        calls.extend((1..=length).map(|at| Call::new(connection, at < length, self.command(rng))));
    }

    /// WATCH, perhaps a write by another, MULTI, commands, EXEC or DISCARD: at once or one by one.
    fn transaction(&self, connection: usize, calls: &mut Vec<Call>, rng: &mut StdRng) {
        if self.watches && rng.random_bool(0.5) {
            calls.push(Call::words(connection, &[b"WATCH", any_key(rng), any_key(rng)]));
            if rng.random_bool(0.5) {
                let other = rng.random_range(0..CONNECTIONS);
                calls.push(Call::new(other, false, self.command(rng)));
            }
        }
        let start = calls.len();
        calls.push(Call::words(connection, &[b"MULTI"]));
        calls.extend((0..rng.random_range(0..8)).map(|_| Call::new(connection, false, self.command(rng))));
        calls.push(Call::words(connection, &[if rng.random_bool(0.9) { b"EXEC" } else { b"DISCARD" }]));
        if rng.random_bool(0.5) {
            let last = calls.len() - 1;
            calls[start..last].iter_mut().for_each(|call| call.joined = true);
        }
    }

    fn command(&self, rng: &mut StdRng) -> Args {
        let family = &self.families[rng.random_range(0..self.families.len())];
        let templates: Vec<&Template> = family.iter().collect();
        Template::pick(&templates, rng).generate(rng)
    }
}

fn any_key(rng: &mut StdRng) -> &'static [u8] {
    atoms::KEYS[rng.random_range(0..atoms::KEYS.len())]
}

/// Calls that read everything that a sequence may have written.
pub(crate) fn audit(families: &[Family]) -> Vec<Args> {
    const READERS: &[(&str, &[&[u8]])] = &[
        ("strings", &[b"GET"]),
        ("large strings", &[b"GET"]),
        ("hashes", &[b"HGETALL"]),
        ("lists", &[b"LRANGE", b"0", b"-1"]),
        ("sets", &[b"SMEMBERS"]),
        ("zsets", &[b"ZRANGE", b"0", b"-1", b"WITHSCORES"]),
    ];
    let mut calls: Vec<Args> = Vec::new();
    for database in atoms::DATABASES {
        calls.push(vec![b"SELECT".to_vec(), database.to_string().into_bytes()]);
        calls.push(vec![b"KEYS".to_vec(), b"*".to_vec()]);
        for key in atoms::KEYS.iter().chain(atoms::LEX_KEYS).chain(atoms::LARGE_KEYS) {
            calls.push(vec![b"TYPE".to_vec(), key.to_vec()]);
            calls.push(vec![b"PTTL".to_vec(), key.to_vec()]);
            for (_, reader) in READERS.iter().filter(|(name, _)| families.iter().any(|family| family.name == *name)) {
                let mut args: Args = reader.iter().map(|arg| arg.to_vec()).collect();
                args.insert(1, key.to_vec());
                calls.push(args);
            }
        }
    }
    calls
}
