use std::{sync::Arc, time::Instant};

use bytes::BytesMut;

use crate::{
    client::Client,
    command::{self, Entry, Error, Flags, Gateway, Replies, Session, Step, Stream, Table, Transaction},
    resp::{Limits, ProtocolError, Reply, Request, Scanner, writer},
};

/// Turns the requests of one connection into units of work, and their replies into bytes.
///
/// Consecutive requests that are there already make one unit, up to a bound. A command that must run alone ends the
/// unit before it.
pub(super) struct Pipeline {
    gateway: Arc<Gateway>,
    session: Session,
    scanner: Scanner,
    /// Requests admitted but not carried out yet.
    steps: Vec<Step>,
    /// A request that must run alone, after `steps`.
    alone: Option<Step>,
    /// The rest of a reply that is sent page by page, before anything else is carried out.
    stream: Option<Stream>,
    /// What else the client sends is not looked at: the connection closes after the replies.
    is_broken: bool,
}

impl Pipeline {
    pub(super) fn new(client: Arc<Client>, gateway: Arc<Gateway>) -> Self {
        let settings = gateway.settings();
        let limits = Limits { bulk_bytes_max: settings.server.bulk_bytes_max.as_usize(), ..Limits::default() };
        Self {
            session: Session::new(client, &gateway),
            gateway,
            scanner: Scanner::new(limits),
            steps: Vec::new(),
            alone: None,
            stream: None,
            is_broken: false,
        }
    }

    /// True if the connection is to be closed when all replies are out.
    pub(super) fn is_closing(&self) -> bool {
        self.stream.is_none() && (self.session.closing || (self.is_broken && self.steps.is_empty()))
    }

    /// True if a reply has been sent in part.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// Runs one unit of what has been read and appends its replies, or goes on with a reply that is sent page by page.
    /// False if no request is complete.
    pub(super) async fn run_unit(&mut self, input: &mut BytesMut, output: &mut BytesMut) -> bool {
        if self.stream.is_some() {
            self.continue_stream(output).await;
            return true;
        }
        if self.steps.is_empty() {
            match self.alone.take() {
                Some(step) => self.steps.push(step),
                None => self.gather(input),
            }
        }
        if self.steps.is_empty() {
            return false;
        }
        if let Some(name) = self.steps.last().and_then(Step::name) {
            self.session.client.update(|identity| identity.last_command = name);
        }
        let Some(Replies { mut replies, stream }) = self.run_steps().await else { return false };
        if stream.is_some() {
            replies.pop();
        }
        for reply in replies {
            self.send(reply, output);
        }
        if let Some(stream) = stream {
            self.begin_stream(stream, output);
        }
        self.publish(input, output);
        true
    }

    /// Runs the steps that have been gathered. `None` if the client is killed meanwhile: while it waits for a pause to end,
    /// or for what only reads. What writes has begun in the eyes of Redis, and goes on to its end.
    async fn run_steps(&mut self) -> Option<Replies> {
        let (client, writes) = (Arc::clone(&self.session.client), self.writes());
        tokio::select! {
            biased;
            () = self.gateway.pause.wait(writes) => {}
            () = client.killed() => return None,
        }
        tokio::select! {
            biased;
            replies = self.execute() => Some(replies),
            () = client.killed(), if !writes => None,
        }
    }

    /// True if the steps may write, or what EXEC stands for among them.
    fn writes(&self) -> bool {
        let queue = self.session.transaction.as_ref().map_or(&[][..], |transaction| &transaction.queue);
        self.steps.iter().any(|step| {
            step.may_write() || (step.is_transaction() && queue.iter().any(|(entry, _)| entry.command.may_write()))
        })
    }

    async fn execute(&mut self) -> Replies {
        if let [step] = self.steps.as_slice()
            && step.is_transaction()
        {
            self.steps.clear();
            return Replies { replies: vec![self.execute_transaction().await], stream: None };
        }
        command::execute(&self.gateway, &mut self.session, &mut self.steps).await
    }

    async fn execute_transaction(&mut self) -> Reply {
        match self.session.transaction.take() {
            None => Error::EXEC_WITHOUT_MULTI.into_reply(),
            Some(Transaction { refused: true, .. }) => {
                self.session.watched.clear();
                Error::EXEC_ABORTED.into_reply()
            }
            Some(transaction) => command::execute_transaction(&self.gateway, &mut self.session, transaction).await,
        }
    }

    /// Admits complete requests up to the bounds of a unit, or up to one that must run alone.
    fn gather(&mut self, input: &mut BytesMut) {
        let bounds = self.gateway.settings();
        let mut bytes = 0;
        while !self.is_broken
            && self.steps.len() < bounds.unit.pipeline_commands_max
            && bytes < bounds.unit.pipeline_bytes_max.as_usize()
        {
            self.scanner.set_authenticated(self.session.authenticated);
            match self.scanner.next(input) {
                Ok(None) => return,
                Ok(Some(request)) => {
                    bytes += request.bytes;
                    let step = self.admit(request);
                    if step.runs_alone() {
                        if self.steps.is_empty() {
                            self.steps.push(step);
                        } else {
                            self.alone = Some(step);
                        }
                        return;
                    }
                    self.steps.push(step);
                }
                Err(error) => return self.give_up(&error),
            }
        }
    }

    /// Answers bytes that are no request. What follows them cannot be made out, so the connection will close.
    fn give_up(&mut self, error: &ProtocolError) {
        self.steps.push(Step::Answer(Reply::error(format!("ERR {error}"))));
        self.is_broken = true;
    }

    /// Decides what becomes of a request: it is run, queued, or refused.
    fn admit(&mut self, request: Request) -> Step {
        if request.args.first().is_some_and(|name| is_http(name)) {
            tracing::warn!("a client speaks HTTP, perhaps on behalf of a web page: hung up");
            self.is_broken = true;
            return Step::Answer(Reply::None);
        }
        let entry = match Table::get().resolve(&request.args) {
            Ok(entry) => entry,
            Err(error) if request.args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"exec")) => {
                return self.abort(error);
            }
            Err(error) => return self.refuse(None, error),
        };
        let flags = entry.command.flags;
        if !self.session.authenticated && !flags.contains(Flags::NO_AUTH) {
            return self.refuse(Some(entry), Error::NO_AUTH);
        }
        match &mut self.session.transaction {
            Some(_) if flags.contains(Flags::NO_MULTI) => {
                self.refuse(Some(entry), Error::text("ERR Command not allowed inside a transaction"))
            }
            Some(transaction) if !flags.contains(Flags::NOT_QUEUED) => {
                transaction.queue.push((entry, request.args));
                Step::Answer(Reply::status("QUEUED"))
            }
            _ => Step::Run(entry, request.args),
        }
    }

    /// A refused command also spoils the transaction that it would have been part of.
    fn refuse(&mut self, entry: Option<&Entry>, error: Error) -> Step {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.refused = true;
        }
        if let Some(entry) = entry {
            self.gateway.statistics.refused(entry);
        }
        Step::Answer(error.into_reply())
    }

    /// An EXEC with arguments ends the transaction all the same.
    fn abort(&mut self, error: Error) -> Step {
        self.session.transaction = None;
        self.session.watched.clear();
        Step::Answer(Error::exec_aborted(&error).into_reply())
    }

    /// Begins a reply that is sent page by page, if the client wants replies at all.
    fn begin_stream(&mut self, stream: Stream, output: &mut BytesMut) {
        if self.session.reply_mode.filter(Reply::OK) != Reply::None {
            stream.begin(self.session.protocol, output);
            self.stream = Some(stream);
        }
    }

    async fn continue_stream(&mut self, output: &mut BytesMut) {
        let Some(stream) = &mut self.stream else { return };
        match stream.write_page(output).await {
            Ok(true) => {}
            Ok(false) => self.stream = None,
            Err(_) => {
                // The client waits for elements that will not come: only the end of the connection can tell it so.
                tracing::warn!("the store failed in the middle of a reply");
                self.stream = None;
                self.session.closing = true;
            }
        }
    }

    fn send(&mut self, reply: Reply, output: &mut BytesMut) {
        if let Reply::Error(text) = &reply {
            self.gateway.statistics.told_error(text);
        }
        let reply = self.session.reply_mode.filter(reply);
        writer::write(&reply, self.session.protocol, output);
    }

    /// Lets other connections see what this one is doing.
    fn publish(&self, input: &BytesMut, output: &BytesMut) {
        let session = &self.session;
        session.client.update(|identity| {
            identity.db = session.db;
            identity.protocol = session.protocol;
            identity.queued = session.transaction.as_ref().map(|transaction| transaction.queue.len());
            identity.watched = session.watched.len();
            identity.last_active = Instant::now();
            identity.input_bytes = input.len();
            identity.output_bytes = output.len();
        });
    }
}

/// True for the words by which HTTP requests begin or go on. A browser can be made to send Redis commands in the body of
/// a request; it cannot help sending these before them.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
