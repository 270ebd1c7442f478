//! CONFIG: settings under the names that Redis has for them.

use bytes::Bytes;

use super::{Args, Command, Context, Error, Flags, Result, Run, glob, help::help};
use crate::{
    config::{Secret, Settings, Size, Span, Sync},
    resp::{Reply, integer::parse_integer},
};

/// A parameter of Redis' configuration.
struct Parameter {
    name: &'static str,
    value: Value,
}

/// What a parameter is here.
enum Value {
    /// A setting that can be changed while the gateway runs. `set` gives the reason if a value cannot be.
    Setting { get: fn(&Settings) -> String, set: fn(&mut Settings, &str) -> std::result::Result<(), &'static str> },
    /// A setting that counts when the gateway starts.
    AtStart(fn(&Settings) -> String),
    /// Something that Redis lets one choose and that has one value here. Setting that value is no error.
    Always(&'static str),
}

const fn setting(
    name: &'static str,
    get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> std::result::Result<(), &'static str>,
) -> Parameter {
    Parameter { name, value: Value::Setting { get, set } }
}

const fn at_start(name: &'static str, get: fn(&Settings) -> String) -> Parameter {
    Parameter { name, value: Value::AtStart(get) }
}

const fn always(name: &'static str, value: &'static str) -> Parameter {
    Parameter { name, value: Value::Always(value) }
}

const PARAMETERS: &[Parameter] = &[
    setting(
        "maxclients",
        |settings| settings.server.maxclients.to_string(),
        |settings, text| {
            settings.server.maxclients = number(text, 1, 1_000_000)?;
            Ok(())
        },
    ),
    setting(
        "timeout",
        |settings| seconds(settings.server.idle_timeout),
        |settings, text| {
            settings.server.idle_timeout = span(text)?;
            Ok(())
        },
    ),
    setting(
        "tcp-keepalive",
        |settings| seconds(settings.server.tcp_keepalive),
        |settings, text| {
            settings.server.tcp_keepalive = span(text)?;
            Ok(())
        },
    ),
    setting(
        "requirepass",
        |settings| settings.server.requirepass.reveal().to_owned(),
        |settings, text| {
            settings.server.requirepass = Secret::from(text.to_owned());
            Ok(())
        },
    ),
    setting(
        "proto-max-bulk-len",
        |settings| settings.server.bulk_bytes_max.0.to_string(),
        |settings, text| {
            settings.server.bulk_bytes_max = size(text)?;
            Ok(())
        },
    ),
    setting(
        "client-query-buffer-limit",
        |settings| settings.server.input_buffer_max.0.to_string(),
        |settings, text| {
            settings.server.input_buffer_max = size(text)?;
            Ok(())
        },
    ),
    at_start("bind", |settings| settings.server.bind.join(" ")),
    at_start("port", |settings| settings.server.port.to_string()),
    at_start("unixsocket", |settings| settings.server.unix_socket.display().to_string()),
    at_start("unixsocketperm", |settings| match settings.server.unix_socket_perm.as_str() {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    }),
    at_start("tcp-backlog", |settings| settings.server.backlog.to_string()),
    at_start("databases", |settings| settings.server.databases.to_string()),
    at_start("io-threads", |settings| settings.worker_threads().to_string()),
    at_start("dir", |settings| settings.rocksdb.dir.display().to_string()),
    at_start("appendfsync", |settings| {
        let names = [(Sync::Always, "always"), (Sync::Interval, "everysec"), (Sync::Never, "no")];
        let name = names.into_iter().find(|(sync, _)| *sync == settings.rocksdb.sync).map_or("", |(_, name)| name);
        name.to_owned()
    }),
    always("appendonly", "yes"),
    always("save", ""),
    always("maxmemory", "0"),
    always("maxmemory-policy", "noeviction"),
    always("maxmemory-samples", "5"),
    always("cluster-enabled", "no"),
    always("protected-mode", "no"),
    always("lazyfree-lazy-eviction", "yes"),
    always("lazyfree-lazy-expire", "yes"),
    always("lazyfree-lazy-server-del", "yes"),
    always("lazyfree-lazy-user-del", "yes"),
    always("lazyfree-lazy-user-flush", "yes"),
    always("list-compress-depth", "0"),
    always("list-max-listpack-size", "-2"),
    always("list-max-ziplist-size", "-2"),
    always("hash-max-listpack-entries", "512"),
    always("hash-max-listpack-value", "64"),
    always("hash-max-ziplist-entries", "512"),
    always("hash-max-ziplist-value", "64"),
    always("set-max-intset-entries", "512"),
    always("set-max-listpack-entries", "128"),
    always("set-max-listpack-value", "64"),
    always("zset-max-listpack-entries", "128"),
    always("zset-max-listpack-value", "64"),
    always("zset-max-ziplist-entries", "128"),
    always("zset-max-ziplist-value", "64"),
    always("notify-keyspace-events", ""),
    always("slowlog-log-slower-than", "10000"),
    always("slowlog-max-len", "128"),
    always("latency-monitor-threshold", "0"),
    always("lfu-log-factor", "10"),
    always("lfu-decay-time", "1"),
    always("replica-read-only", "yes"),
    always("slave-read-only", "yes"),
    always("min-replicas-to-write", "0"),
    always("active-expire-effort", "1"),
    always("activedefrag", "no"),
    always("lua-time-limit", "5000"),
    always("busy-reply-threshold", "5000"),
    always("loglevel", "notice"),
    always("logfile", ""),
    always("daemonize", "no"),
    always("rdbcompression", "yes"),
    always("rdbchecksum", "yes"),
    always("dbfilename", "dump.rdb"),
];

fn number(text: &str, least: i64, most: i64) -> std::result::Result<usize, &'static str> {
    let number = parse_integer(text.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    let number =
        Some(number).filter(|number| (least..=most).contains(number)).and_then(|number| number.try_into().ok());
    number.ok_or("argument must be between 1 and 1000000 inclusive")
}

fn size(text: &str) -> std::result::Result<Size, &'static str> {
    let size: Size = text.parse().map_err(|_| "argument must be a memory value")?;
    if size.0 >= 1 << 20 { Ok(size) } else { Err("argument must be between 1048576 and 9223372036854775807 inclusive") }
}

fn span(text: &str) -> std::result::Result<Span, &'static str> {
    let seconds = parse_integer(text.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    let seconds = u32::try_from(seconds).ok().filter(|seconds| i32::try_from(*seconds).is_ok());
    let seconds = seconds.ok_or("argument must be between 0 and 2147483647 inclusive")?;
    Ok(Span(std::time::Duration::from_secs(u64::from(seconds))))
}

fn seconds(span: Span) -> String {
    span.as_duration().as_secs().to_string()
}

impl Parameter {
    fn find(name: &[u8]) -> Option<&'static Self> {
        PARAMETERS.iter().find(|parameter| parameter.name.as_bytes().eq_ignore_ascii_case(name))
    }

    fn show(&self, settings: &Settings) -> String {
        match self.value {
            Value::Setting { get, .. } | Value::AtStart(get) => get(settings),
            Value::Always(value) => value.to_owned(),
        }
    }

    fn change(&self, settings: &mut Settings, text: &str) -> std::result::Result<(), &'static str> {
        match self.value {
            Value::Setting { set, .. } => set(settings, text),
            Value::AtStart(_) => Err("can't set immutable config"),
            Value::Always(value) if value.eq_ignore_ascii_case(text) => Ok(()),
            Value::Always(_) => Err("Respgate has one value for it, which CONFIG GET shows"),
        }
    }
}

/// `CONFIG GET parameter [parameter ...]`
async fn get(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let settings = context.gateway.settings();
    let is_wanted = |parameter: &&Parameter| {
        args.rest().iter().any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), parameter.name.as_bytes()))
    };
    let shown = PARAMETERS.iter().filter(is_wanted);
    let pairs = shown.map(|parameter| (Reply::bulk(parameter.name), Reply::bulk(parameter.show(&settings))));
    Ok(Reply::Map(pairs.collect()))
}

/// `CONFIG SET parameter value [parameter value ...]`
async fn set(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let (pairs, rest) = args.rest().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    let mut changes: Vec<(&Parameter, &Bytes)> = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        let shown = String::from_utf8_lossy(name);
        let Some(parameter) = Parameter::find(name) else {
            let text = format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'");
            return Err(Error::user(text));
        };
        if changes.iter().any(|(other, _)| other.name == parameter.name) {
            return Err(cannot_set(&shown, "duplicate parameter"));
        }
        changes.push((parameter, value));
    }
    context.gateway.change_settings(|settings| {
        for (parameter, value) in changes {
            let text = String::from_utf8_lossy(value);
            parameter.change(settings, &text).map_err(|cause| cannot_set(parameter.name, cause))?;
        }
        Ok::<_, Error>(())
    })?;
    Ok(Reply::OK)
}

fn cannot_set(name: &str, cause: &str) -> Error {
    Error::user(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {cause}"))
}

/// `CONFIG RESETSTAT`
async fn resetstat(context: &mut Context<'_>) -> Result<Reply> {
    context.gateway.statistics.reset();
    Ok(Reply::OK)
}

/// `CONFIG REWRITE`
///
/// The file belongs to whoever deploys the gateway: often it is read-only, shared by several, or made by a tool.
async fn rewrite() -> Result<Reply> {
    Err(Error::text("ERR Respgate does not rewrite its configuration file: change the file, or the environment"))
}

const HELP: &[&str] = &[
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];

const ADMIN: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::ALONE);

const SUBCOMMANDS: &[Command] = &[
    Command::new("get", -3, ADMIN, |context, args| Box::pin(get(context, args))).doc(
        "2.0.0",
        "O(N) when N is the number of configuration parameters provided",
        "Returns the effective values of configuration parameters.",
    ),
    Command::new("help", 2, Flags::LOADING.union(Flags::STALE), |_, _| Box::pin(async { Ok(help("CONFIG", HELP)) }))
        .doc("5.0.0", "O(1)", "Returns helpful text about the different subcommands."),
    Command::new("resetstat", 2, ADMIN, |context, _| Box::pin(resetstat(context))).doc(
        "2.0.0",
        "O(1)",
        "Resets the server's statistics.",
    ),
    Command::new("rewrite", 2, ADMIN, |_, _| Box::pin(rewrite())).doc(
        "2.8.0",
        "O(1)",
        "Persists the effective configuration to file.",
    ),
    Command::new("set", -4, ADMIN, |context, args| Box::pin(set(context, args))).doc(
        "2.0.0",
        "O(N) when N is the number of configuration parameters provided",
        "Sets configuration parameters in-flight.",
    ),
];

pub(super) const COMMANDS: &[Command] = &[Command::with("config", -2, Flags::empty(), Run::Subcommands(SUBCOMMANDS))
    .doc("2.0.0", "Depends on subcommand.", "A container for server configuration commands.")];
