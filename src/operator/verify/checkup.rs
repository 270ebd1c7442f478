use std::fmt::Display;

use bytes::Bytes;

use super::{Finding, Ledger};
use crate::{
    encoding::{Body, Metadata, ZsetOrder, decode_member, index_of_member},
    keyspace::{Collection, Key, Unit},
    operator::{
        Result,
        job::Job,
        words::{Named, Short},
    },
};

/// The check of one key, whose metadata can be read.
pub(super) struct Checkup<'c, 'j, 'k> {
    pub(super) job: &'c mut Job<'j>,
    pub(super) ledger: &'c mut Ledger,
    pub(super) unit: &'c mut Unit<'k>,
    key: &'c Key,
    pub(super) metadata: Metadata,
    pub(super) records: Collection<'k>,
}

impl<'c, 'j, 'k> Checkup<'c, 'j, 'k> {
    pub(super) fn new(
        job: &'c mut Job<'j>,
        ledger: &'c mut Ledger,
        unit: &'c mut Unit<'k>,
        key: &'c Key,
        metadata: Metadata,
    ) -> Result<Self> {
        let records = unit.collection(key, &metadata)?;
        Ok(Self { job, ledger, unit, key, metadata, records })
    }

    pub(super) async fn run(mut self) -> Result<()> {
        self.check_forwarding().await?;
        match self.metadata.body.clone() {
            Body::String(_) => Ok(()),
            Body::Chunks { bytes, chunk_bytes } => self.check_chunks(bytes, chunk_bytes).await,
            Body::Hash { count } | Body::Set { count } => {
                let elements = self.count_elements().await?;
                self.check_count(count, elements)
            }
            Body::Zset { count, order: ZsetOrder::Index(bounds) } => self.check_zset(count, &bounds).await,
            Body::Zset { count, order: ZsetOrder::Sidecar(_) } => self.check_members(count).await,
            Body::List { count, head, tail } => self.check_list(count, head, tail).await,
        }
    }

    /// A renamed key must be found from where its elements are.
    async fn check_forwarding(&mut self) -> Result<()> {
        let Some(origin) = self.metadata.origin.clone() else { return Ok(()) };
        let db = self.unit.physical(self.key.db)?;
        let forwarding = self.unit.codec().forwarding(db, &origin, self.metadata.version);
        if self.unit.peek(&forwarding).await?.as_ref() != Some(&self.key.name) {
            self.note(format_args!("nothing leads to it from {}, which it was renamed from", Short(&origin)));
            self.ledger.mend(forwarding, Some(self.key.name.clone()));
        }
        Ok(())
    }

    async fn count_elements(&mut self) -> Result<u64> {
        let mut pages = self.unit.pages(self.records.elements()).await?;
        let mut elements = 0;
        while let Some(page) = self.job.next_page(&mut pages).await? {
            elements += page.len() as u64;
        }
        Ok(elements)
    }

    /// Compares the count in the metadata, if there is one, with the number of elements.
    fn check_count(&mut self, count: Option<u32>, elements: u64) -> Result<()> {
        if elements == 0 {
            return self.remove_empty();
        }
        if count.is_none_or(|count| u64::from(count) == elements) {
            return Ok(());
        }
        self.note_count(count.unwrap_or_default(), elements);
        let right = u32::try_from(elements).unwrap_or(u32::MAX);
        match &mut self.metadata.body {
            Body::Hash { count } | Body::Set { count } => *count = Some(right),
            Body::Zset { count, .. } => *count = right,
            Body::String(_) | Body::Chunks { .. } | Body::List { .. } => {}
        }
        self.save_metadata()
    }

    async fn check_chunks(&mut self, bytes: u64, chunk_bytes: u32) -> Result<()> {
        let mut pages = self.unit.pages(self.records.elements()).await?;
        while let Some(page) = self.job.next_page(&mut pages).await? {
            for (record, chunk) in page {
                let suffix = self.records.suffix(record.clone());
                let Ok(number) = <[u8; 4]>::try_from(&*suffix).map(u32::from_be_bytes) else {
                    self.note_strange(&suffix, "chunk number");
                    continue;
                };
                let start = u64::from(number) * u64::from(chunk_bytes);
                let room = bytes.saturating_sub(start).min(chunk_bytes.into()) as usize;
                if room == 0 || chunk.is_empty() {
                    let why = if room == 0 { "lies beyond the end" } else { "is empty" };
                    self.note(format_args!("chunk {number} {why}"));
                    self.ledger.mend(record, None);
                } else if chunk.len() > room {
                    self.note(format_args!("chunk {number} has {} bytes, where {room} belong", chunk.len()));
                    self.ledger.mend(record, Some(chunk.slice(..room)));
                }
            }
            self.ledger.settle(self.job).await?;
        }
        Ok(())
    }

    /// The members of a sorted set of encode-version 1. Their order lies elsewhere, and gateways make it again if need be.
    async fn check_members(&mut self, count: u32) -> Result<()> {
        let kind = self.metadata.garbage();
        let ranges = kind.map(|kind| self.records.ranges(kind)).unwrap_or_default();
        let mut members = 0;
        for range in ranges {
            let mut pages = self.unit.pages(range).await?;
            while let Some(page) = self.job.next_page(&mut pages).await? {
                members += page.len() as u64;
                for (record, value) in page {
                    let index = self.records.suffix(record);
                    let Ok((member, _)) = decode_member(&value) else {
                        self.note_strange(&value, "member");
                        continue;
                    };
                    if index != index_of_member(&member) {
                        self.note_left_alone(format_args!("member {} is indexed as {}", Short(&member), Short(&index)));
                    }
                }
                self.ledger.settle(self.job).await?;
            }
        }
        self.check_count(Some(count), members)
    }

    /// Notes something that a change can mend.
    pub(super) fn note(&mut self, what: impl Display) {
        self.ledger.note(Finding::new(self.line(what)));
    }

    /// Notes something that is left alone.
    pub(super) fn note_left_alone(&mut self, what: impl Display) {
        self.ledger.note(Finding::left_alone(self.line(what)));
    }

    /// Notes an element whose key has an impossible end.
    pub(super) fn note_strange(&mut self, suffix: &[u8], what: &str) {
        self.note_left_alone(format_args!("an element has {} for a {what}", Short(suffix)));
    }

    pub(super) fn note_count(&mut self, count: u32, elements: u64) {
        self.note(format_args!("its count is {count}, but there are {elements} elements"));
    }

    /// A collection without elements does not exist.
    pub(super) fn remove_empty(&mut self) -> Result<()> {
        self.note("it is empty");
        let record = self.metadata_record()?;
        self.ledger.mend(record, None);
        Ok(())
    }

    /// Writes the metadata as it is now.
    pub(super) fn save_metadata(&mut self) -> Result<()> {
        let record = self.metadata_record()?;
        self.ledger.mend(record, Some(self.metadata.encode()));
        Ok(())
    }

    fn metadata_record(&self) -> Result<Bytes> {
        Ok(self.unit.codec().metadata(self.unit.physical(self.key.db)?, &self.key.name))
    }

    fn line(&self, what: impl Display) -> String {
        format!("{} ({}): {what}", Named(self.key), self.metadata.kind().name())
    }
}
