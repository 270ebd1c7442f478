use bytes::Bytes;

use super::Checkup;
use crate::{encoding::Body, operator::Result};

/// Where the elements of a list are, and where they belong.
struct Places {
    /// The position that comes next if none is missing.
    due: u64,
    /// How many positions were missing so far.
    missing: u64,
}

impl Checkup<'_, '_, '_> {
    /// All positions from head up to but without tail have elements, and no others. Gaps are closed from behind.
    pub(super) async fn check_list(&mut self, count: u32, head: u64, tail: u64) -> Result<()> {
        if tail < head {
            self.note_left_alone(format_args!("its tail, {tail}, is before its head, {head}"));
            return Ok(());
        }
        let mut places = Places { due: head, missing: 0 };
        let mut pages = self.unit.pages(self.records.elements()).await?;
        while let Some(page) = self.job.next_page(&mut pages).await? {
            for (record, element) in page {
                let suffix = self.records.suffix(record.clone());
                let Ok(position) = <[u8; 8]>::try_from(&*suffix).map(u64::from_be_bytes) else {
                    self.note_strange(&suffix, "position");
                    continue;
                };
                if (head..tail).contains(&position) {
                    self.place(&mut places, position, record, element);
                } else {
                    self.note(format_args!("an element is at {position}, outside of {head} to {tail}"));
                    self.ledger.mend(record, None);
                }
            }
            self.ledger.settle(self.job).await?;
        }
        self.note_missing(&mut places, tail);
        let elements = tail - head - places.missing;
        if elements == 0 {
            return self.remove_empty();
        }
        let is_counted = u64::from(count) == elements;
        if !is_counted {
            self.note_count(count, elements);
        }
        if !is_counted || places.missing > 0 {
            let count = u32::try_from(elements).unwrap_or(u32::MAX);
            self.metadata.body = Body::List { count, head, tail: head + elements };
            self.save_metadata()?;
        }
        Ok(())
    }

    /// Moves the element at `position` to where it belongs, once the gaps before it are closed.
    fn place(&mut self, places: &mut Places, position: u64, record: Bytes, element: Bytes) {
        self.note_missing(places, position);
        places.due = position + 1;
        if places.missing > 0 {
            self.ledger.mend(record, None);
            let place = self.records.element(&(position - places.missing).to_be_bytes());
            self.ledger.mend(place, Some(element));
        }
    }

    /// Notes that there is nothing from the position that is due up to but without `position`.
    fn note_missing(&mut self, places: &mut Places, position: u64) {
        if position > places.due {
            self.note(format_args!("nothing is at {} to {position}", places.due));
            places.missing += position - places.due;
            places.due = position;
        }
    }
}
