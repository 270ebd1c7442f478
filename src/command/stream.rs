//! Replies that are too large to be held: they are sent page by page, once the unit that they belong to has ended.

use bytes::BytesMut;

use super::{Context, Result};
use crate::{
    keyspace::Key,
    resp::{Protocol, writer},
    types::{Elements, hash, set},
};

/// A reply whose elements are read while they are sent, in the snapshot of a unit that has ended.
pub struct Stream {
    elements: Elements,
    part: Part,
    announced: u64,
}

/// What is told of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Fields and values, as a map.
    Pairs,
    /// Fields.
    Fields,
    /// Values.
    Values,
    /// Members, as a set.
    Members,
}

impl Context<'_> {
    /// Has this part of a large collection sent page by page, if that can be done. The command's own reply is none then.
    pub(super) async fn stream(&mut self, key: &Key, part: Part) -> Result<bool> {
        if !self.may_stream {
            return Ok(false);
        }
        let elements = match part {
            Part::Pairs | Part::Fields | Part::Values => hash::stream(&mut self.unit, key).await?,
            Part::Members => set::stream(&mut self.unit, key).await?,
        };
        let Some(elements) = elements else { return Ok(false) };
        self.stream = Some(Stream { announced: elements.left(), elements, part });
        Ok(true)
    }
}

impl Stream {
    /// Appends the beginning of the reply.
    pub fn begin(&self, protocol: Protocol, out: &mut BytesMut) {
        let length = usize::try_from(self.announced).unwrap_or(usize::MAX);
        match self.part {
            Part::Pairs => writer::write_map_header(length, protocol, out),
            Part::Fields | Part::Values => writer::write_array_header(length, out),
            Part::Members => writer::write_set_header(length, protocol, out),
        }
    }

    /// Appends the next elements. False after the last one.
    ///
    /// # Errors
    /// Those of the store. The reply is broken then, and so is the connection.
    pub async fn write_page(&mut self, out: &mut BytesMut) -> Result<bool> {
        for (field, value) in self.elements.next().await? {
            if self.part != Part::Values {
                writer::write_bulk(&field, out);
            }
            if matches!(self.part, Part::Pairs | Part::Values) {
                writer::write_bulk(&value, out);
            }
        }
        Ok(self.elements.left() > 0)
    }
}
