//! INFO: what a gateway tells about itself, under the names that Redis' tools read.

use std::{collections::BTreeSet, fmt::Display};

use respgate_backend_api::Statistics as StoreStatistics;

use super::{Args, Command, Context, Flags, Result, Table};
use crate::{
    encoding::LeaseRecord,
    keyspace::{self, Duty},
    process,
    resp::Reply,
    version::{REDIS_VERSION, RESPGATE_VERSION},
};

/// Lines of one section.
struct Section {
    text: String,
}

impl Section {
    fn new(title: &str) -> Self {
        Self { text: format!("# {title}\r\n") }
    }

    fn field(mut self, name: &str, value: impl Display) -> Self {
        self.text.push_str(&format!("{name}:{value}\r\n"));
        self
    }
}

/// The sections, and whether plain INFO shows them.
const SECTIONS: &[(&str, bool)] = &[
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("cluster", true),
    ("store", true),
    ("background", true),
    ("keyspace", true),
];

/// `INFO [section [section ...]]`
async fn info(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let wanted: Vec<Vec<u8>> = args.rest().iter().map(|section| section.to_ascii_lowercase()).collect();
    let mut sections = Vec::new();
    for (name, is_default) in SECTIONS {
        let is_wanted = wanted.iter().any(|wanted| match wanted.as_slice() {
            b"all" | b"everything" => true,
            b"default" => *is_default,
            wanted => wanted == name.as_bytes(),
        });
        if is_wanted || (wanted.is_empty() && *is_default) {
            sections.push(section(context, name).await?.text);
        }
    }
    Ok(Reply::Verbatim("txt", sections.join("\r\n").into()))
}

async fn section(context: &mut Context<'_>, name: &str) -> Result<Section> {
    Ok(match name {
        "server" => server(context),
        "clients" => clients(context),
        "memory" => memory(context, &context.gateway.keyspace.backend().statistics().await?),
        "persistence" => persistence(context),
        "stats" => stats(context),
        "replication" => replication(context),
        "cpu" => cpu(),
        "commandstats" => command_stats(context),
        "errorstats" => error_stats(context),
        "cluster" => Section::new("Cluster").field("cluster_enabled", 0),
        "store" => store(context, &context.gateway.keyspace.backend().statistics().await?),
        "background" => background(context).await?,
        "keyspace" => databases(context).await?,
        _ => Section::new("Modules"),
    })
}

fn server(context: &Context<'_>) -> Section {
    let gateway = context.gateway;
    let uptime_s = gateway.started_at.elapsed().as_secs();
    Section::new("Server")
        .field("redis_version", REDIS_VERSION)
        .field("redis_git_sha1", "00000000")
        .field("redis_git_dirty", 0)
        .field("redis_build_id", "0")
        .field("redis_mode", "standalone")
        .field("respgate_version", RESPGATE_VERSION)
        .field("os", std::env::consts::OS)
        .field("arch_bits", usize::BITS)
        .field("process_id", std::process::id())
        .field("run_id", &gateway.run_id)
        .field("tcp_port", gateway.settings().server.port)
        .field("server_time_usec", gateway.keyspace.clock().now_us())
        .field("uptime_in_seconds", uptime_s)
        .field("uptime_in_days", uptime_s / 86_400)
        .field("hz", 10)
        .field("configured_hz", 10)
        .field("executable", std::env::current_exe().unwrap_or_default().display())
        .field("config_file", "")
        .field("io_threads_active", 0)
}

fn clients(context: &Context<'_>) -> Section {
    let clients = context.gateway.clients.all();
    let largest = |of: fn(&crate::client::Identity) -> usize| {
        clients.iter().map(|client| of(&client.identity())).max().unwrap_or_default()
    };
    Section::new("Clients")
        .field("connected_clients", clients.len())
        .field("cluster_connections", 0)
        .field("maxclients", context.gateway.settings().server.maxclients)
        .field("client_recent_max_input_buffer", largest(|identity| identity.input_bytes))
        .field("client_recent_max_output_buffer", largest(|identity| identity.output_bytes))
        .field("blocked_clients", 0)
        .field("tracking_clients", 0)
        .field("clients_in_timeout_table", 0)
}

fn memory(context: &Context<'_>, store: &StoreStatistics) -> Section {
    let used = process::resident_bytes();
    let peak = context.gateway.statistics.note_memory(used);
    Section::new("Memory")
        .field("used_memory", used)
        .field("used_memory_human", human(used))
        .field("used_memory_rss", used)
        .field("used_memory_rss_human", human(used))
        .field("used_memory_peak", peak)
        .field("used_memory_peak_human", human(peak))
        .field("used_memory_store", store.memory_bytes)
        .field("used_memory_store_human", human(store.memory_bytes))
        .field("used_memory_lua", 0)
        .field("maxmemory", 0)
        .field("maxmemory_human", "0B")
        .field("maxmemory_policy", "noeviction")
        .field("mem_fragmentation_ratio", "1.00")
        .field("mem_allocator", "jemalloc")
        .field("lazyfree_pending_objects", 0)
}

fn persistence(context: &Context<'_>) -> Section {
    Section::new("Persistence")
        .field("loading", 0)
        .field("async_loading", 0)
        .field("rdb_changes_since_last_save", 0)
        .field("rdb_bgsave_in_progress", 0)
        .field("rdb_last_save_time", context.gateway.keyspace.clock().now_ms() / 1_000)
        .field("rdb_last_bgsave_status", "ok")
        .field("aof_enabled", 1)
        .field("aof_rewrite_in_progress", 0)
        .field("aof_last_bgrewrite_status", "ok")
        .field("aof_last_write_status", "ok")
}

fn stats(context: &Context<'_>) -> Section {
    let statistics = &context.gateway.statistics;
    Section::new("Stats")
        .field("total_connections_received", statistics.connections_received.get())
        .field("total_commands_processed", statistics.commands_processed.get())
        .field("total_net_input_bytes", statistics.bytes_in.get())
        .field("total_net_output_bytes", statistics.bytes_out.get())
        .field("rejected_connections", statistics.connections_rejected.get())
        .field("expired_keys", statistics.expired_swept.get())
        .field("evicted_keys", 0)
        .field("pubsub_channels", 0)
        .field("pubsub_patterns", 0)
        .field("total_error_replies", statistics.error_replies.get())
        .field("units_committed", statistics.units_committed.get())
        .field("unit_conflicts", statistics.unit_conflicts.get())
        .field("unit_lockings", statistics.unit_lockings.get())
        .field("units_given_up", statistics.units_given_up.get())
}

fn replication(context: &Context<'_>) -> Section {
    Section::new("Replication")
        .field("role", "master")
        .field("connected_slaves", 0)
        .field("master_failover_state", "no-failover")
        .field("master_replid", &context.gateway.run_id)
        .field("master_replid2", "0".repeat(40))
        .field("master_repl_offset", 0)
        .field("second_repl_offset", -1)
        .field("repl_backlog_active", 0)
}

fn cpu() -> Section {
    let time = process::cpu_time();
    Section::new("CPU")
        .field("used_cpu_sys", format_args!("{:.6}", time.system))
        .field("used_cpu_user", format_args!("{:.6}", time.user))
        .field("used_cpu_sys_children", "0.000000")
        .field("used_cpu_user_children", "0.000000")
}

fn command_stats(context: &Context<'_>) -> Section {
    let mut section = Section::new("Commandstats");
    for entry in Table::get().entries() {
        let Some(counted) = context.gateway.statistics.command(entry) else { continue };
        let (calls, spent_us) = (counted.calls.get(), counted.microseconds.get());
        let (rejected, failed) = (counted.rejected.get(), counted.failed.get());
        if calls + rejected == 0 {
            continue;
        }
        let per_call = spent_us as f64 / calls.max(1) as f64;
        let value = format!(
            "calls={calls},usec={spent_us},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
        );
        section = section.field(&format!("cmdstat_{}", entry.name), value);
    }
    section
}

fn error_stats(context: &Context<'_>) -> Section {
    let errors = context.gateway.statistics.errors();
    errors.into_iter().fold(Section::new("Errorstats"), |section, (code, count)| {
        section.field(&format!("errorstat_{code}"), format!("count={count}"))
    })
}

fn store(context: &Context<'_>, store: &StoreStatistics) -> Section {
    let section = Section::new("Store")
        .field("store_backend", context.gateway.settings().store.backend.name())
        .field("store_disk_bytes", store.disk_bytes)
        .field("store_memory_bytes", store.memory_bytes);
    store.figures.iter().fold(section, |section, (name, value)| section.field(&format!("store_{name}"), value))
}

async fn background(context: &Context<'_>) -> Result<Section> {
    let (statistics, keyspace) = (&context.gateway.statistics, &context.gateway.keyspace);
    let mut section = Section::new("Background")
        .field("garbage_pending", keyspace.garbage_pending())
        .field("garbage_collected", statistics.garbage_collected.get())
        .field("expired_swept", statistics.expired_swept.get())
        .field("orphans_found", statistics.orphans_found.get())
        .field("orders_mended", statistics.orders_mended.get());
    let now_ms = i64::try_from(keyspace.clock().now_ms()).unwrap_or(i64::MAX);
    let duties = [("expired_sweep", Duty::Expired), ("orphan_sweep", Duty::Orphans), ("order_sweep", Duty::Orders)];
    for (name, duty) in duties {
        let leases = keyspace.leases(duty).await?;
        section = section
            .field(&format!("{name}_position"), sweep_position(&leases))
            .field(&format!("{name}_last_round_age"), last_round_age(&leases, now_ms))
            .field(&format!("{name}_owner"), owners(&leases, now_ms));
    }
    let versions = keyspace.leases(Duty::Versions).await?;
    Ok(section
        .field("versions_last_forgotten_age", last_round_age(&versions, now_ms))
        .field("versions_owner", owners(&versions, now_ms)))
}

/// Where the sweep of each share goes on that is not at its beginning, in hexadecimal digits.
fn sweep_position(leases: &[Option<LeaseRecord>]) -> String {
    let under_way = leases.iter().enumerate().filter_map(|(share, lease)| {
        let position = &lease.as_ref()?.position;
        (!position.is_empty()).then(|| format!("{share}={position:x}"))
    });
    let under_way: Vec<String> = under_way.collect();
    if under_way.is_empty() { "start".to_owned() } else { under_way.join(",") }
}

/// Seconds since all of the store was last swept; -1 if some share never was.
fn last_round_age(leases: &[Option<LeaseRecord>], now_ms: i64) -> i64 {
    keyspace::last_round_age_ms(leases, now_ms).map_or(-1, |age_ms| age_ms / 1_000)
}

/// Who holds leases now, by the numbers that gateways choose when they start.
fn owners(leases: &[Option<LeaseRecord>], now_ms: i64) -> String {
    let held = leases.iter().flatten().filter(|lease| lease.deadline_ms >= now_ms);
    let owners: BTreeSet<String> = held.map(|lease| format!("{:016x}", lease.owner)).collect();
    if owners.is_empty() { "none".to_owned() } else { owners.into_iter().collect::<Vec<_>>().join(",") }
}

/// Counts the keys of every database; in large ones not each time it is asked.
async fn databases(context: &mut Context<'_>) -> Result<Section> {
    let mut section = Section::new("Keyspace");
    for db in 0..context.gateway.settings().server.databases {
        let census = context.unit.recent_census(db).await?;
        if census.keys > 0 {
            let value = format!("keys={},expires={},avg_ttl=0", census.keys, census.expiring);
            section = section.field(&format!("db{db}"), value);
        }
    }
    Ok(section)
}

/// A number of bytes as people read it.
fn human(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.2}{unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes}B"),
    }
}

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "info",
    -1,
    Flags::LOADING.union(Flags::STALE).union(Flags::ALONE).union(Flags::DANGEROUS),
    |context, args| Box::pin(info(context, args)),
)
.doc(
    "1.0.0",
    "O(N) where N is the number of keys, for the keyspace section",
    "Returns information and statistics about the server.",
)];
