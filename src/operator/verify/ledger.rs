use std::{fmt::Display, mem};

use bytes::Bytes;
use respgate_backend_api::Write;

use crate::{
    keyspace::Intent,
    operator::{
        Outcome, Result,
        job::Job,
        words::{Short, count},
    },
};

/// Something that is not as it should be.
pub(super) struct Finding {
    what: String,
    can_be_mended: bool,
}

impl Finding {
    /// One that can be mended.
    pub(super) fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), can_be_mended: true }
    }

    /// One that only an operator can judge.
    pub(super) fn left_alone(what: impl Display) -> Self {
        Self { what: what.to_string(), can_be_mended: false }
    }
}

/// What a check has found, and what mends it.
pub(super) struct Ledger {
    /// True if what is found is to be mended.
    pub(super) repairs: bool,
    pub(super) keys: u64,
    findings: u64,
    mended: u64,
    /// Those that are not settled yet.
    open: Vec<Finding>,
    /// What mends them.
    mends: Vec<Write>,
}

impl Ledger {
    pub(super) fn new(repairs: bool) -> Self {
        Self { repairs, keys: 0, findings: 0, mended: 0, open: Vec::new(), mends: Vec::new() }
    }

    pub(super) fn note(&mut self, finding: Finding) {
        self.open.push(finding);
    }

    /// Notes records whose keys cannot be read.
    pub(super) fn note_strange(&mut self, records: &[Bytes]) {
        for record in records {
            self.note(Finding::left_alone(format_args!("record {}: its key names no owner", Short(record))));
        }
    }

    /// Adds a change that mends what has been noted; the last one for a record counts.
    pub(super) fn mend(&mut self, record: Bytes, value: Option<Bytes>) {
        if self.repairs {
            self.mends.push((record, value));
        }
    }

    /// Mends what has been noted, and then says what that was.
    pub(super) async fn settle(&mut self, job: &mut Job<'_>) -> Result<()> {
        if !self.mends.is_empty() {
            let mut unit = job.keyspace.begin(Intent::Write).await?;
            for (record, value) in self.mends.drain(..) {
                match value {
                    Some(value) => unit.put_record(record, value),
                    None => unit.delete_record(record),
                }
            }
            unit.commit().await?;
        }
        for Finding { what, can_be_mended } in mem::take(&mut self.open) {
            let is_mended = self.repairs && can_be_mended;
            self.findings += 1;
            self.mended += u64::from(is_mended);
            job.say(format_args!("{what}{}", if is_mended { "; mended" } else { "" }))?;
        }
        Ok(())
    }

    /// Sums up.
    pub(super) fn close(self, job: &mut Job<'_>) -> Result<Outcome> {
        let keys = count(self.keys, "key", "keys");
        let records = count(job.seen(), "record", "records");
        let findings = count(self.findings, "finding", "findings");
        let mended = if self.repairs { format!(", {} mended", self.mended) } else { String::new() };
        job.say(format_args!("{keys} and {records} checked: {findings}{mended}"))?;
        Ok(if self.findings == self.mended { Outcome::Done } else { Outcome::Found })
    }
}
