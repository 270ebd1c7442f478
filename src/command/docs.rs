//! COMMAND DOCS: what clients show to people who type commands.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    Args, Entry, Group, Result,
    introspection::{find, subcommands, top_level},
};
use crate::resp::Reply;

/// What `docs.toml` tells, by the full names of commands.
static NOTES: LazyLock<BTreeMap<String, Notes>> = LazyLock::new(|| read().unwrap_or_default());

fn read() -> std::result::Result<BTreeMap<String, Notes>, toml::de::Error> {
    toml::from_str(include_str!("docs.toml"))
}

/// What there is to tell of a command that nothing but COMMAND DOCS needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    /// In place of its family's.
    group: Option<String>,
    #[serde(default)]
    doc_flags: Vec<String>,
    deprecated_since: Option<String>,
    replaced_by: Option<String>,
    #[serde(default)]
    arguments: Vec<Argument>,
}

/// One argument, or several that belong together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    key_spec_index: Option<i64>,
    token: Option<String>,
    since: Option<String>,
    deprecated_since: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    arguments: Vec<Argument>,
}

/// `COMMAND DOCS [command-name [command-name ...]]`
pub(super) async fn docs(args: Args<'_>) -> Result<Reply> {
    let entries: Vec<&Entry> = if args.is_empty() {
        top_level().collect()
    } else {
        args.rest().iter().filter_map(|name| find(name)).collect()
    };
    Ok(Reply::Map(entries.into_iter().map(document).collect()))
}

/// The facts of a reply, in the order in which they are told.
#[derive(Default)]
struct Facts(Vec<(Reply, Reply)>);

impl Facts {
    fn tell(&mut self, name: &'static str, fact: Reply) {
        self.0.push((Reply::bulk(name), fact));
    }

    /// Tells nothing of a text that is not there, or empty.
    fn tell_text<'a>(&mut self, name: &'static str, text: impl Into<Option<&'a str>>) {
        if let Some(text) = text.into().filter(|text| !text.is_empty()) {
            self.tell(name, Reply::bulk(text.to_owned()));
        }
    }

    /// Tells nothing of no flags.
    fn tell_flags<'a>(&mut self, name: &'static str, flags: impl Iterator<Item = &'a str>) {
        let flags: Vec<Reply> = flags.map(|flag| Reply::status(flag.to_owned())).collect();
        if !flags.is_empty() {
            self.tell(name, Reply::Set(flags));
        }
    }

    /// Tells nothing of no arguments.
    fn tell_arguments(&mut self, arguments: &[Argument]) {
        if !arguments.is_empty() {
            self.tell("arguments", Reply::Array(arguments.iter().map(describe).collect()));
        }
    }
}

fn document(entry: &'static Entry) -> (Reply, Reply) {
    let command = entry.command;
    let notes = NOTES.get(&entry.name);
    let group = notes.and_then(|notes| notes.group.as_deref());
    let mut facts = Facts::default();
    facts.tell_text("summary", command.summary);
    facts.tell_text("since", command.since);
    facts.tell_text("group", group.unwrap_or(group_name(entry.group)));
    facts.tell_text("complexity", command.complexity);
    if let Some(notes) = notes {
        let deprecated = notes.deprecated_since.is_some().then_some("deprecated");
        facts.tell_flags("doc_flags", notes.doc_flags.iter().map(String::as_str).chain(deprecated));
        facts.tell_text("deprecated_since", notes.deprecated_since.as_deref());
        facts.tell_text("replaced_by", notes.replaced_by.as_deref());
        facts.tell_arguments(&notes.arguments);
    }
    let below: Vec<_> = subcommands(entry).map(document).collect();
    if !below.is_empty() {
        facts.tell("subcommands", Reply::Map(below));
    }
    (Reply::bulk(entry.name.as_str()), Reply::Map(facts.0))
}

fn describe(argument: &Argument) -> Reply {
    let token = argument.token.as_deref().unwrap_or_default();
    let name = argument.name.clone().unwrap_or_else(|| token.to_ascii_lowercase());
    let usual = if argument.name.is_some() { "string" } else { "pure-token" };
    let kind = argument.kind.as_deref().unwrap_or(usual);
    let mut facts = Facts::default();
    facts.tell_text("name", &*name);
    facts.tell_text("type", kind);
    // The others are shown by what they are made of.
    if !["oneof", "block"].contains(&kind) {
        facts.tell_text("display_text", &*name);
    }
    if let Some(index) = argument.key_spec_index {
        facts.tell("key_spec_index", Reply::Int(index));
    }
    // There are tokens that are empty.
    if argument.token.is_some() {
        facts.tell("token", Reply::bulk(token.to_owned()));
    }
    facts.tell_text("since", argument.since.as_deref());
    facts.tell_text("deprecated_since", argument.deprecated_since.as_deref());
    facts.tell_flags("flags", argument.flags.iter().map(String::as_str));
    facts.tell_arguments(&argument.arguments);
    Reply::Map(facts.0)
}

fn group_name(group: Group) -> &'static str {
    match group {
        Group::Generic => "generic",
        Group::String => "string",
        Group::Hash => "hash",
        Group::List => "list",
        Group::Set => "set",
        Group::SortedSet => "sorted-set",
        Group::Transactions => "transactions",
        Group::Connection => "connection",
        Group::Server => "server",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_of_a_command_that_there_is() {
        for name in read().unwrap().keys() {
            assert!(find(name.as_bytes()).is_some_and(|entry| entry.name == *name), "{name}");
        }
    }
}
