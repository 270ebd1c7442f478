use rocksdb::{ColumnFamily, DB};

/// The column families. Each tag of records lives in one of them, so that families can be tuned for how their
/// records are used and a scan meets one kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// `m#`: small records, mostly read and written one at a time.
    Metadata,
    /// `s#` and `i#`: elements, read one at a time and in runs.
    Elements,
    /// `k#`: the score index, scanned, with empty values.
    ScoreIndex,
    /// Every other tag, and the store's own format record.
    System,
}

impl Family {
    pub(crate) const ALL: [Self; 4] = [Self::Metadata, Self::Elements, Self::ScoreIndex, Self::System];

    /// The family of the records to which `key` belongs.
    pub(crate) fn of(key: &[u8]) -> Self {
        match key.first_chunk() {
            Some(b"m#") => Self::Metadata,
            Some(b"s#" | b"i#") => Self::Elements,
            Some(b"k#") => Self::ScoreIndex,
            _ => Self::System,
        }
    }

    /// The name under which RocksDB stores the family. Names are part of the format: they never change.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Elements => "elements",
            Self::ScoreIndex => "score_index",
            // RocksDB always has a family of this name, so it may as well be used.
            Self::System => rocksdb::DEFAULT_COLUMN_FAMILY_NAME,
        }
    }
}

/// The handles of all families: looking one up by name for every operation would cost more than some operations.
pub(crate) struct Families<'db> {
    metadata: &'db ColumnFamily,
    elements: &'db ColumnFamily,
    score_index: &'db ColumnFamily,
    system: &'db ColumnFamily,
}

impl<'db> Families<'db> {
    /// The handles in `db`; `None` if it was opened without one of the families.
    pub(crate) fn of(db: &'db DB) -> Option<Self> {
        Some(Self {
            metadata: db.cf_handle(Family::Metadata.name())?,
            elements: db.cf_handle(Family::Elements.name())?,
            score_index: db.cf_handle(Family::ScoreIndex.name())?,
            system: db.cf_handle(Family::System.name())?,
        })
    }

    pub(crate) fn handle(&self, family: Family) -> &'db ColumnFamily {
        match family {
            Family::Metadata => self.metadata,
            Family::Elements => self.elements,
            Family::ScoreIndex => self.score_index,
            Family::System => self.system,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_the_family_of_its_tag() {
        let families = [
            (&b"m#k"[..], Family::Metadata),
            (b"s#", Family::Elements),
            (b"i#\xff", Family::Elements),
            (b"k#k", Family::ScoreIndex),
            (b"g#k", Family::System),
            (b"m", Family::System),
            (b"", Family::System),
            (b"\0format", Family::System),
        ];
        for (key, family) in families {
            assert_eq!(Family::of(key), family, "{key:?}");
        }
    }
}
