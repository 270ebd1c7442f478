use std::{
    mem,
    time::{Duration, Instant},
};

use bytes::Bytes;
use respgate_backend_api as backend;

use super::{
    Args, Context, Entry, Error, Flags, Gateway, Result, Run, Session, Step, Stream, Transaction, elements, gate::Gate,
    session::Watched,
};
use crate::{
    keyspace::{Intent, Key, LatchGuards, Scope, Unit},
    resp::Reply,
};

/// What one unit of work is to do.
#[derive(Clone, Copy)]
struct Plan<'a> {
    steps: &'a [Step],
    /// Keys that must not have changed since they were watched.
    watched: &'a [Watched],
    /// The unit ends early when its replies exceed this.
    reply_bytes_max: usize,
    /// True if the unit may also end early with a reply that is sent page by page.
    may_stream: bool,
    /// How often the unit may be run again after a conflict.
    conflicts_max: u32,
    /// True if the steps are those of different clients.
    is_shared: bool,
    /// True if the latches are held already.
    is_latched: bool,
}

/// What a unit answers.
#[derive(Default)]
pub struct Replies {
    /// The replies, in the order of the steps.
    pub replies: Vec<Reply>,
    /// What is to be sent in place of the last reply.
    pub stream: Option<Stream>,
}

impl Replies {
    pub(super) fn only(replies: Vec<Reply>) -> Self {
        Self { replies, stream: None }
    }
}

impl<'a> Plan<'a> {
    fn pipeline(gateway: &Gateway, steps: &'a [Step]) -> Self {
        let unit = &gateway.settings().unit;
        let (reply_bytes_max, conflicts_max) = (unit.reply_bytes_max.as_usize(), unit.conflict_retries_max);
        Self {
            steps,
            watched: &[],
            reply_bytes_max,
            may_stream: true,
            conflicts_max,
            is_shared: false,
            is_latched: false,
        }
    }

    /// A transaction is never cut short.
    fn transaction(gateway: &Gateway, steps: &'a [Step], watched: &'a [Watched]) -> Self {
        Self { watched, reply_bytes_max: usize::MAX, may_stream: false, ..Self::pipeline(gateway, steps) }
    }
}

/// Runs steps of a pipeline as one unit of work and gives their replies, in order, of which there may be fewer than steps.
///
/// A unit that keeps meeting conflicts, or a record that cannot be read, or is more than the store takes at once, is split
/// into one unit a step; nobody promised that a pipeline is atomic.
pub(super) async fn run_unit(gateway: &Gateway, session: &mut Session, steps: &[Step]) -> Replies {
    let reply_bytes_max = gateway.settings().unit.reply_bytes_max.as_usize();
    run_unit_within(gateway, session, steps, reply_bytes_max).await
}

/// The same with another limit to the bytes of the replies.
pub(super) async fn run_unit_within(
    gateway: &Gateway,
    session: &mut Session,
    steps: &[Step],
    reply_bytes_max: usize,
) -> Replies {
    let plan = Plan { reply_bytes_max, ..Plan::pipeline(gateway, steps) };
    match run_until_committed(gateway, session, plan).await {
        Ok(replies) => replies.unwrap_or_default(),
        Err(error) if steps.len() > 1 && error.may_split() => {
            run_one_by_one(gateway, session, steps, reply_bytes_max).await
        }
        Err(error) => refuse_all(steps, &error),
    }
}

/// Runs steps of several pipelines as one unit of work. `None` if nothing has been done, because each had better be a unit of
/// its own.
pub(super) async fn run_shared_unit(
    gateway: &Gateway,
    session: &mut Session,
    steps: &[Step],
    gate: Gate,
) -> Option<Replies> {
    let conflicts_max = gate.conflicts_max(gateway);
    let mut plan = Plan { conflicts_max, is_shared: true, ..Plan::pipeline(gateway, steps) };
    // They have nothing to do with each other, so nobody shall wait for the latches of another.
    let _latches = match gate {
        Gate::Commit { .. } => {
            plan.is_latched = true;
            let names: Vec<&[u8]> = steps.iter().flat_map(Step::keys).map(|name| &**name).collect();
            Some(gateway.keyspace.latches().try_acquire(&names)?)
        }
        _ => None,
    };
    match run_until_committed(gateway, session, plan).await {
        Ok(replies) => Some(replies.unwrap_or_default()),
        Err(error) if gate.parts_after(&error) => None,
        Err(error) => Some(refuse_all(steps, &error)),
    }
}

fn refuse_all(steps: &[Step], error: &Error) -> Replies {
    Replies::only(steps.iter().map(|step| step.refused(error)).collect())
}

/// Runs the queued commands of MULTI as one unit of work and gives EXEC's reply.
pub async fn execute_transaction(gateway: &Gateway, session: &mut Session, transaction: Transaction) -> Reply {
    let watched = mem::take(&mut session.watched);
    let steps: Vec<Step> = transaction.queue.into_iter().map(|(entry, args)| Step::Run(entry, args)).collect();
    match run_until_committed(gateway, session, Plan::transaction(gateway, &steps, &watched)).await {
        Ok(Some(Replies { replies, .. })) => Reply::Array(replies),
        Ok(None) => Reply::NullArray,
        Err(error) => error.into_reply(),
    }
}

async fn run_one_by_one(gateway: &Gateway, session: &mut Session, steps: &[Step], reply_bytes_max: usize) -> Replies {
    let mut answered = Replies::default();
    let mut reply_bytes = 0;
    for step in steps {
        let plan = Plan { reply_bytes_max, ..Plan::pipeline(gateway, std::slice::from_ref(step)) };
        let Replies { replies, stream } = match run_until_committed(gateway, session, plan).await {
            Ok(replies) => replies.unwrap_or_default(),
            Err(error) => Replies::only(vec![step.refused(&error)]),
        };
        reply_bytes += replies.iter().map(Reply::bytes).sum::<usize>();
        answered.replies.extend(replies);
        answered.stream = stream;
        if reply_bytes > reply_bytes_max || answered.stream.is_some() {
            break;
        }
    }
    answered
}

/// What one attempt to run a unit leaves to the next one.
#[derive(Default)]
struct Attempts {
    conflicts: u32,
    /// What the last attempt relied on, once there was a conflict.
    guards: Vec<Bytes>,
}

impl Attempts {
    /// Begins the unit: when waiting and hoping has not helped, with what it relies on locked beforehand.
    async fn begin<'g>(&self, gateway: &'g Gateway, intent: Intent) -> Result<Unit<'g>> {
        /// So many conflicts are rare, and locks that a gateway leaves behind when it dies live long.
        const LOCKS_AFTER: u32 = 6;

        if intent == Intent::Write && self.conflicts >= LOCKS_AFTER && !self.guards.is_empty() {
            gateway.statistics.unit_lockings.add(1);
            return Ok(gateway.keyspace.begin_locking(&self.guards).await?);
        }
        let mut unit = gateway.keyspace.begin(intent).await?;
        if self.conflicts > 0 {
            // What was found before the unit had a moment of its own was changed in between; it need not be so again.
            unit.ready_to_read().await?;
        }
        Ok(unit)
    }
}

/// Runs a unit, again after each conflict, with randomised exponential backoff.
async fn run_until_committed(gateway: &Gateway, session: &mut Session, plan: Plan<'_>) -> Result<Option<Replies>> {
    let (db, protocol) = (session.db, session.protocol);
    let mut attempts = Attempts::default();
    loop {
        let outcome = run_once(gateway, session, plan, &mut attempts).await;
        let may_retry = attempts.conflicts < plan.conflicts_max;
        match outcome {
            Err(Error::Store(backend::Error::Conflict)) if may_retry => {
                gateway.statistics.unit_conflicts.add(1);
                // Who only reads has a moment of its own the next time, and need not wait for anybody.
                if attempts.conflicts > 0 || plan.steps.iter().any(Step::may_write) {
                    tokio::time::sleep(backoff(gateway, attempts.conflicts)).await;
                }
            }
            Err(error @ Error::Store(backend::Error::Conflict)) => {
                gateway.statistics.units_given_up.add(1);
                return Err(error);
            }
            Err(Error::Unannounced { wait_ms }) if may_retry => gateway.keyspace.announce_change(wait_ms).await?,
            outcome => return outcome,
        }
        (session.db, session.protocol) = (db, protocol);
        attempts.conflicts += 1;
    }
}

/// How long to wait after this many conflicts: up to 1 ms after the first, and twice as long after each further one,
/// but no longer than 100 ms.
fn backoff(gateway: &Gateway, conflicts: u32) -> Duration {
    let at_most_us = (1_000_u64 << conflicts.min(7)).min(100_000);
    Duration::from_micros(gateway.keyspace.random().below(at_most_us))
}

/// Runs a unit. `None` if a watched key has changed, so that nothing was run.
async fn run_once(
    gateway: &Gateway,
    session: &mut Session,
    plan: Plan<'_>,
    attempts: &mut Attempts,
) -> Result<Option<Replies>> {
    /// A unit that only reads takes latches after so many conflicts, so that those who write let it through.
    const LATCHED_FROM: u32 = 2;

    let Plan { steps, watched, .. } = plan;
    let writes = attempts.conflicts >= LATCHED_FROM || steps.iter().any(Step::may_write);
    let takes_latches = writes && !plan.is_latched;
    let _latches = if takes_latches { Some(acquire_latches(gateway, steps, watched).await) } else { None };
    let unit = if watched.is_empty() && !steps.iter().any(Step::needs_store) {
        gateway.keyspace.begin_idle()
    } else if let Some(unit) = glance(gateway, session, plan, attempts).await? {
        unit
    } else {
        attempts.begin(gateway, if writes { Intent::Write } else { Intent::Read }).await?
    };
    let mut context = Context { gateway, session, unit, may_stream: plan.may_stream, stream: None };
    for watched in watched {
        if watched.is_changed(&mut context.unit).await? {
            return Ok(None);
        }
    }
    if steps.len() > 1 {
        read_ahead(&mut context, steps).await?;
    }
    let mut replies = Vec::with_capacity(steps.len());
    let mut reply_bytes = 0;
    let mut clock = Instant::now();
    let mut foreseen = 0;
    for (at, step) in steps.iter().enumerate() {
        if at == foreseen && steps.len() > 1 {
            foreseen += elements::read_ahead(&mut context, steps.get(at..).unwrap_or_default()).await?;
        }
        let protocol = context.session.protocol;
        let reply = match step {
            Step::Run(entry, args) => run_command(&mut context, entry, args, &mut clock).await?,
            Step::Answer(reply) => reply.clone(),
        };
        if context.session.protocol != protocol {
            // A HELLO in a transaction: what came before it is said as it would have been then.
            replies = replies.into_iter().map(|reply| Reply::In(protocol, Box::new(reply))).collect();
        }
        reply_bytes += reply.bytes();
        replies.push(reply);
        if reply_bytes > plan.reply_bytes_max || context.stream.is_some() {
            break;
        }
    }
    let Context { unit, stream, .. } = context;
    if attempts.conflicts > 0 {
        attempts.guards = unit.guards().to_vec();
    }
    unit.commit().await?;
    gateway.statistics.units_committed.add(1);
    Ok(Some(Replies { replies, stream }))
}

/// The unit for steps that read one key each, and need not see the same moment: there is one, or each is another client's.
async fn glance<'g>(
    gateway: &'g Gateway,
    session: &Session,
    plan: Plan<'_>,
    attempts: &Attempts,
) -> Result<Option<Unit<'g>>> {
    let Plan { steps, watched, is_shared, .. } = plan;
    if !gateway.keyspace.capabilities().shared
        || attempts.conflicts > 0
        || !watched.is_empty()
        || !(steps.len() == 1 || is_shared)
    {
        return Ok(None);
    }
    let keys: Option<Vec<Key>> =
        steps.iter().map(|step| Some(Key { db: session.db, name: step.only_read()? })).collect();
    match keys {
        Some(keys) => Ok(gateway.keyspace.glance(&keys).await?),
        None => Ok(None),
    }
}

/// Runs one command of a unit. Only a failure of the store, which is the failure of the whole unit, is an error.
///
/// `clock` says when the command begins, and is moved on to when it ends.
async fn run_command(context: &mut Context<'_>, entry: &Entry, args: &[Bytes], clock: &mut Instant) -> Result<Reply> {
    let handler = match entry.command.run {
        Run::Handler(handler) => Some(handler),
        Run::Subcommands(_) => entry.command.bare,
        Run::Transaction => None,
    };
    let Some(handler) = handler else { return Ok(Error::wrong_arity(&entry.name).into_reply()) };
    let words = 1 + usize::from(entry.name.len() > entry.command.name.len());
    context.unit.begin_command();
    let result = handler(context, Args::new(args, words)).await;
    let failed = result.is_err();
    let began = mem::replace(clock, Instant::now());
    context.gateway.statistics.ran(entry, clock.duration_since(began), failed);
    if failed {
        context.unit.undo_command();
    }
    match result {
        Err(error @ (Error::Store(_) | Error::Unannounced { .. })) => Err(error),
        Err(error) => Ok(error.into_reply()),
        Ok(reply) => Ok(reply),
    }
}

/// Takes the latches of every key that the unit may touch.
async fn acquire_latches<'g>(gateway: &'g Gateway, steps: &[Step], watched: &[Watched]) -> LatchGuards<'g> {
    let latches = gateway.keyspace.latches();
    if steps.iter().filter_map(Step::command).any(|(entry, _)| entry.command.flags.contains(Flags::EVERYTHING)) {
        return latches.acquire(Scope::Everything).await;
    }
    let mut names: Vec<&[u8]> = watched.iter().map(|watched| &*watched.key().name).collect();
    for (entry, args) in steps.iter().filter_map(Step::command) {
        names.extend(entry.command.keys_among(args).map(|name| &**name));
    }
    latches.acquire(Scope::Keys(&names)).await
}

/// Reads the metadata that the commands of a pipeline will ask for, in one call to the store.
async fn read_ahead(context: &mut Context<'_>, steps: &[Step]) -> Result<()> {
    let mut keys = Vec::new();
    for (entry, args) in steps.iter().filter_map(Step::command) {
        if !entry.command.flags.contains(Flags::BLIND) {
            keys.extend(entry.command.keys_among(args).map(|name| context.key(name)));
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    Ok(context.unit.read_ahead(&keys).await?)
}
