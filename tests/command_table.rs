//! What COMMAND says about every command is what Redis says.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Conn, Gateway, Redis, Value};

/// Commands that are not compared, and why.
const EXCEPTIONS: &[(&[&str], &str)] = &[
    (
        &[
            "asking",
            "bgrewriteaof",
            "bgsave",
            "cluster",
            "failover",
            "migrate",
            "module",
            "monitor",
            "psync",
            "readonly",
            "readwrite",
            "replconf",
            "replicaof",
            "save",
            "slaveof",
            "sync",
        ],
        "only answered with an error",
    ),
    (&["zrank", "zrevrank"], "7.2 takes WITHSCORE"),
];

/// Commands whose documentation is not compared with that of Redis 7.0, beside the [`EXCEPTIONS`].
const OTHERWISE_DOCUMENTED: &[(&str, &str)] =
    &[("client|pause", "it is from 3.0.0, as 7.2 says"), ("hscan", "7.4 takes NOVALUES")];

/// The names of all commands, without those of subcommands.
fn names(conn: &mut Conn) -> Vec<String> {
    let list = conn.run("COMMAND LIST");
    list.elements().iter().map(Value::text).filter(|name| !name.contains('|')).collect()
}

/// The parts of an entry that clients and proxies route by.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    arity: i64,
    flags: BTreeSet<String>,
    first_key: i64,
    last_key: i64,
    step: i64,
    categories: BTreeSet<String>,
}

/// The entries of COMMAND INFO, subcommands too, by name.
fn entries(conn: &mut Conn, names: &[String]) -> BTreeMap<String, Entry> {
    let mut args = vec!["COMMAND".to_owned(), "INFO".to_owned()];
    args.extend_from_slice(names);
    let mut found = BTreeMap::new();
    conn.call(&args).elements().iter().for_each(|entry| add(entry, &mut found));
    found
}

fn add(entry: &Value, found: &mut BTreeMap<String, Entry>) {
    // A name that the server does not know.
    let Value::Array(fields) = entry else { return };
    let texts = |at: usize| fields[at].elements().iter().map(Value::text).collect();
    let entry = Entry {
        arity: fields[1].integer(),
        flags: texts(2),
        first_key: fields[3].integer(),
        last_key: fields[4].integer(),
        step: fields[5].integer(),
        categories: texts(6),
    };
    found.insert(fields[0].text(), entry);
    fields[9].elements().iter().for_each(|subcommand| add(subcommand, found));
}

#[test]
fn entries_equal_those_of_redis() {
    let (gateway, redis) = (Gateway::start(), Redis::start());
    let mut conn = gateway.connect();
    let names = names(&mut conn);
    let count = usize::try_from(conn.run("COMMAND COUNT").integer()).unwrap();
    assert_eq!(names.len(), count);
    let ours = entries(&mut conn, &names);
    let theirs = entries(&mut redis.connect(), &names);
    let compared = ours.iter().filter(|(name, _)| !EXCEPTIONS.iter().any(|(names, _)| names.contains(&name.as_str())));
    let differing: Vec<String> = compared
        .filter_map(|(name, entry)| theirs.get(name).filter(|other| *other != entry).map(|other| (name, entry, other)))
        .map(|(name, entry, other)| format!("{name}\n  respgate: {entry:?}\n  redis:    {other:?}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn docs_describe_every_command() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    conn.run("HELLO 3");
    let names = names(&mut conn);
    let Value::Map(docs) = conn.run("COMMAND DOCS") else { panic!("COMMAND DOCS gives a map") };
    assert_eq!(docs.len(), names.len());
    for (name, doc) in &docs {
        let Value::Map(fields) = doc else { panic!("{name}: {doc}") };
        let field =
            |wanted: &str| fields.iter().find(|(field, _)| field.text() == wanted).map(|(_, value)| value.text());
        assert!(field("summary").is_some_and(|summary| !summary.is_empty()), "{name} has no summary");
        assert!(field("group").is_some_and(|group| !group.is_empty()), "{name} has no group");
    }
}

/// What programs read in the documentation of a command: not the texts, which are our own.
#[derive(Debug, PartialEq)]
struct Doc {
    facts: BTreeMap<String, Value>,
    arguments: Vec<Value>,
}

/// The documentation of commands and of their subcommands, by name.
fn docs(value: &Value, found: &mut BTreeMap<String, Doc>) {
    const FACTS: &[&str] = &["since", "group", "doc_flags", "deprecated_since"];

    for (name, fields) in pairs(value) {
        let fields: BTreeMap<String, Value> = pairs(fields).map(|(name, value)| (name.text(), value.clone())).collect();
        if let Some(subcommands) = fields.get("subcommands") {
            docs(subcommands, found);
        }
        let arguments = fields.get("arguments").map(|arguments| arguments.elements().iter().map(shown).collect());
        let facts = fields.into_iter().filter(|(name, _)| FACTS.contains(&name.as_str()));
        found.insert(name.text(), Doc { facts: facts.collect(), arguments: arguments.unwrap_or_default() });
    }
}

/// An argument as 7.0 shows it: without the text that 7.2 displays, which is its name.
fn shown(argument: &Value) -> Value {
    let fields = pairs(argument).filter(|(name, _)| name.text() != "display_text");
    Value::Map(
        fields
            .map(|(name, value)| match value {
                Value::Array(arguments) => (name.clone(), Value::Array(arguments.iter().map(shown).collect())),
                value => (name.clone(), value.clone()),
            })
            .collect(),
    )
}

fn pairs(value: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let Value::Map(pairs) = value else { panic!("{value} is no map") };
    pairs.iter().map(|(name, value)| (name, value))
}

#[test]
fn docs_have_the_structure_of_those_of_redis() {
    let (gateway, redis) = (Gateway::start(), Redis::start());
    let [ours, theirs] = [gateway.addr(), redis.addr()].map(|addr| {
        let mut conn = Conn::open(&addr);
        conn.run("HELLO 3");
        let mut found = BTreeMap::new();
        docs(&conn.run("COMMAND DOCS"), &mut found);
        found
    });
    let is_compared = |name: &str| {
        !EXCEPTIONS.iter().any(|(names, _)| names.contains(&name))
            && !OTHERWISE_DOCUMENTED.iter().any(|(other, _)| *other == name)
    };
    let differing: Vec<String> = ours
        .iter()
        .filter_map(|(name, ours)| Some((name, ours, theirs.get(name)?)))
        .filter(|(name, ours, theirs)| is_compared(name) && ours != theirs)
        .map(|(name, ours, theirs)| format!("{name}\n  respgate: {ours:?}\n  redis:    {theirs:?}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(ours["zadd"].arguments.len() == 6 && ours.len() > 200);
}
