use std::{collections::HashMap, future::Future, pin::Pin, sync::LazyLock};

use bitflags::bitflags;
use bytes::Bytes;
use foldhash::fast::RandomState;

use super::{
    Args, Context, ElementSpec, Error, KeySpec, Result, client, config, connection, databases, dump, expire, generic,
    hashes, info, introspection, lists, object, respgate, scan, server, sets, sort, strings, transactions, unsupported,
    zsets,
};
use crate::resp::Reply;

/// What a command does: an asynchronous function from its arguments to a reply.
pub type Handler = for<'a> fn(&'a mut Context<'_>, Args<'a>) -> HandlerFuture<'a>;

/// The future of a [`Handler`].
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// How a command is carried out.
#[derive(Clone, Copy)]
pub enum Run {
    /// By its function, in the unit it belongs to.
    Handler(Handler),
    /// EXEC: by running the queued commands as one unit.
    Transaction,
    /// By the subcommand that its second argument names.
    Subcommands(&'static [Command]),
}

/// A row of the command table.
pub struct Command {
    /// In lower case. A subcommand's is without its container's.
    pub name: &'static str,
    /// The number of arguments, the command's name included; at least that many if negative.
    pub arity: i32,
    /// What Redis, its clients and the planner of units must know.
    pub flags: Flags,
    /// Where the keys are among the arguments.
    pub keys: &'static [KeySpec],
    /// Where elements of the first key are among the arguments, if the command reads them one by one.
    pub elements: Option<ElementSpec>,
    /// What carries it out.
    pub run: Run,
    /// What carries out a container that is called without a subcommand; most are not to be.
    pub bare: Option<Handler>,
    /// ACL categories in place of its group's; those that follow from the flags come on top.
    pub categories: &'static [&'static str],
    /// One line for COMMAND DOCS.
    pub summary: &'static str,
    /// The Redis version that brought it.
    pub since: &'static str,
    /// Its cost, for COMMAND DOCS.
    pub complexity: &'static str,
}

impl Command {
    /// A row for a command without keys.
    pub const fn new(name: &'static str, arity: i32, flags: Flags, handler: Handler) -> Self {
        Self::with(name, arity, flags, Run::Handler(handler))
    }

    /// A row for a command that is carried out in a way of its own.
    pub const fn with(name: &'static str, arity: i32, flags: Flags, run: Run) -> Self {
        Self {
            name,
            arity,
            flags,
            keys: &[],
            elements: None,
            run,
            bare: None,
            categories: &[],
            summary: "",
            since: "",
            complexity: "",
        }
    }

    /// The same row with keys.
    pub const fn keys(self, keys: &'static [KeySpec]) -> Self {
        Self { keys, ..self }
    }

    /// The same row with elements.
    pub const fn elements(self, elements: ElementSpec) -> Self {
        Self { elements: Some(elements), ..self }
    }

    /// The same row for a container that may be called without a subcommand.
    pub const fn bare(self, handler: Handler) -> Self {
        Self { bare: Some(handler), ..self }
    }

    /// The same row in other ACL categories than its group's.
    pub const fn categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    /// The same row with what COMMAND DOCS tells.
    pub const fn doc(self, since: &'static str, complexity: &'static str, summary: &'static str) -> Self {
        Self { since, complexity, summary, ..self }
    }

    /// True if `count` arguments, the name included, are as many as the command takes.
    pub fn takes(&self, count: usize) -> bool {
        let arity = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 { count >= arity } else { count == arity }
    }

    /// True if the command may write to the store.
    pub fn may_write(&self) -> bool {
        self.flags.intersects(Flags::WRITE)
    }

    /// The keys among `args`, where the first argument is the command's name.
    pub fn keys_among<'a>(&self, args: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> {
        self.keys.iter().flat_map(|spec| spec.positions(args)).filter_map(|at| args.get(at))
    }

    /// The rows of the subcommands, if it has any.
    pub fn subcommands(&self) -> &'static [Command] {
        match self.run {
            Run::Subcommands(rows) => rows,
            Run::Handler(_) | Run::Transaction => &[],
        }
    }
}

bitflags! {
    /// The first part are Redis' own flags, as COMMAND INFO shows them; the second part is for the planner of units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// May change data.
        const WRITE = 1 << 0;
        /// Never changes data.
        const READONLY = 1 << 1;
        /// May need more space.
        const DENYOOM = 1 << 2;
        /// For operators.
        const ADMIN = 1 << 3;
        /// Belongs to publish/subscribe.
        const PUBSUB = 1 << 4;
        /// Not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// May wait for data.
        const BLOCKING = 1 << 6;
        /// Allowed while the server loads data.
        const LOADING = 1 << 7;
        /// Allowed on a stale replica.
        const STALE = 1 << 8;
        /// Not shown by MONITOR.
        const SKIP_MONITOR = 1 << 9;
        /// Not counted as slow.
        const SKIP_SLOWLOG = 1 << 10;
        /// Costs O(1) or O(log n).
        const FAST = 1 << 11;
        /// Allowed before AUTH.
        const NO_AUTH = 1 << 12;
        /// Its keys cannot all be found by position.
        const MOVABLE_KEYS = 1 << 13;
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 14;
        /// May be called with no key at all.
        const NO_MANDATORY_KEYS = 1 << 15;
        /// Allowed while a script runs too long.
        const ALLOW_BUSY = 1 << 16;
        /// Belongs to the dangerous ACL category.
        const DANGEROUS = 1 << 17;

        /// Runs in a unit of its own: it may run long, blocks, or changes the connection.
        const ALONE = 1 << 24;
        /// Touches every key there is: takes every latch.
        const EVERYTHING = 1 << 25;
        /// Overwrites without reading, so reading its keys ahead would be wasted.
        const BLIND = 1 << 26;
        /// Is carried out at once even between MULTI and EXEC.
        const NOT_QUEUED = 1 << 27;
        /// Needs the metadata of its keys, which hold a short string whole, and nothing else.
        const BRIEF = 1 << 28;
        /// Tells how much time is left, and so needs the time of the store, not only about that.
        const TIMED = 1 << 29;
    }
}

/// The groups of COMMAND DOCS; each is an ACL category too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Any type of key.
    Generic,
    /// Strings.
    String,
    /// Hashes.
    Hash,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// MULTI and what belongs to it.
    Transactions,
    /// What a client tells or asks about its connection.
    Connection,
    /// What operators ask for.
    Server,
}

/// The commands of one file.
pub struct Family {
    /// The group they belong to.
    pub group: Group,
    /// Their rows.
    pub commands: &'static [Command],
}

/// Every family, in the order in which COMMAND lists them.
const FAMILIES: &[Family] = &[
    Family { group: Group::Generic, commands: generic::COMMANDS },
    Family { group: Group::Generic, commands: expire::COMMANDS },
    Family { group: Group::Generic, commands: dump::COMMANDS },
    Family { group: Group::Generic, commands: object::COMMANDS },
    Family { group: Group::Generic, commands: scan::COMMANDS },
    Family { group: Group::Generic, commands: sort::COMMANDS },
    Family { group: Group::String, commands: strings::COMMANDS },
    Family { group: Group::Hash, commands: hashes::COMMANDS },
    Family { group: Group::List, commands: lists::COMMANDS },
    Family { group: Group::Set, commands: sets::COMMANDS },
    Family { group: Group::SortedSet, commands: zsets::COMMANDS },
    Family { group: Group::Transactions, commands: transactions::COMMANDS },
    Family { group: Group::Connection, commands: connection::COMMANDS },
    Family { group: Group::Connection, commands: client::COMMANDS },
    Family { group: Group::Server, commands: introspection::COMMANDS },
    Family { group: Group::Server, commands: config::COMMANDS },
    Family { group: Group::Server, commands: databases::COMMANDS },
    Family { group: Group::Server, commands: info::COMMANDS },
    Family { group: Group::Server, commands: server::COMMANDS },
    Family { group: Group::Server, commands: respgate::COMMANDS },
    Family { group: Group::Server, commands: unsupported::COMMANDS },
];

/// A command as the table knows it.
pub struct Entry {
    /// Its row.
    pub command: &'static Command,
    /// The group it belongs to.
    pub group: Group,
    /// Its name, `container|subcommand` for a subcommand.
    pub name: String,
    /// Its place in the table, for those who count something per command.
    pub id: usize,
}

/// All commands and subcommands, by name.
pub struct Table {
    entries: Vec<Entry>,
    by_name: HashMap<&'static [u8], usize, RandomState>,
    by_subcommand: HashMap<(&'static str, &'static str), usize>,
}

impl Table {
    /// The table of this program.
    pub fn get() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(Table::build);
        &TABLE
    }

    fn build() -> Self {
        let mut table = Self { entries: Vec::new(), by_name: HashMap::default(), by_subcommand: HashMap::new() };
        for family in FAMILIES {
            for command in family.commands {
                let id = table.add(family.group, command, command.name.to_owned());
                table.by_name.insert(command.name.as_bytes(), id);
                let Run::Subcommands(subcommands) = command.run else { continue };
                for subcommand in subcommands {
                    let id = table.add(family.group, subcommand, format!("{}|{}", command.name, subcommand.name));
                    table.by_subcommand.insert((command.name, subcommand.name), id);
                }
            }
        }
        table
    }

    fn add(&mut self, group: Group, command: &'static Command, name: String) -> usize {
        let id = self.entries.len();
        self.entries.push(Entry { command, group, name, id });
        id
    }

    /// Every command and subcommand, a container right before its subcommands.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The command with this name, in whatever case. A container is found, its subcommands are not.
    pub fn command(&self, name: &[u8]) -> Option<&Entry> {
        /// Longer than any command's name.
        const NAME_BYTES_MAX: usize = 32;

        let mut buffer = [0; NAME_BYTES_MAX];
        let lowercase = buffer.get_mut(..name.len())?;
        lowercase.copy_from_slice(name);
        lowercase.make_ascii_lowercase();
        self.entries.get(*self.by_name.get(&*lowercase)?)
    }

    /// The subcommand of `container` with this name, in whatever case.
    pub fn subcommand(&self, container: &Command, name: &[u8]) -> Option<&Entry> {
        let row = container.subcommands().iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))?;
        self.entries.get(*self.by_subcommand.get(&(container.name, row.name))?)
    }

    /// The command that a request is for, with a number of arguments that it takes.
    ///
    /// # Errors
    /// The texts of Redis for an unknown command or subcommand and for a wrong number of arguments.
    pub fn resolve(&self, args: &[Bytes]) -> Result<&Entry> {
        let (name, rest) = args.split_first().ok_or(Error::SYNTAX)?;
        let mut entry = self.command(name).ok_or_else(|| Error::unknown_command(name, rest))?;
        if let (Run::Subcommands(_), Some(subcommand)) = (entry.command.run, rest.first()) {
            entry = self
                .subcommand(entry.command, subcommand)
                .ok_or_else(|| Error::unknown_subcommand(entry.command.name, subcommand))?;
        }
        if entry.command.takes(args.len()) { Ok(entry) } else { Err(Error::wrong_arity(&entry.name)) }
    }
}
