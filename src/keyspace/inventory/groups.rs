use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use crate::{
    encoding::{Garbage, Owner, SLOTS},
    keyspace::{Error, Intent, Keyspace, Result, Unit, place::Place},
};

/// How many groups one page holds at most.
const GROUPS_MAX: usize = 128;

/// The most ranges that one page looks into, on a store that spreads keys by slot: many may be empty.
const RANGES_MAX: usize = 256;

/// The records of one kind that one version of a key has, or has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The physical index of the database.
    pub db: u8,
    /// The user key under which the records lie: that of their key, or its origin.
    pub owner: Bytes,
    /// The version.
    pub version: u64,
    /// The records.
    pub records: KeyRange,
}

/// Where a walk over groups goes on. A position stays good whatever changes meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPosition {
    /// The number of the range: by physical database, then by kind of record, then by slot.
    pub range: u32,
    /// The first record that may come next; `None` for the beginning of the range.
    pub from: Option<Bytes>,
}

/// Some groups, in the order of the store.
#[derive(Default)]
pub struct GroupPage {
    /// The groups. There may be none although more pages follow.
    pub groups: Vec<Group>,
    /// Records whose keys lie among the groups' but name no owner.
    pub strange: Vec<Bytes>,
    /// Where the next page begins; `None` after the last page.
    pub next: Option<GroupPosition>,
}

/// What a walk looks for.
#[derive(Clone, Copy)]
enum Wanted {
    /// Elements, scores and members.
    Elements,
    /// Garbage records, one in each group.
    Garbage,
}

impl Wanted {
    /// In how many ranges of a database, or of a slot in it, these records lie.
    fn ranges(self) -> u32 {
        match self {
            Self::Elements => 3,
            Self::Garbage => 1,
        }
    }
}

impl Group {
    /// Whom the records belong to.
    fn owner(&self) -> Owner<'_> {
        Owner { db: self.db, key: &self.owner, version: self.version }
    }
}

impl Keyspace {
    /// Deletes what dead keys have left, and then the garbage records that tell of it, in one unit.
    pub async fn collect(&self, dead: &[(Group, Garbage)]) -> Result<()> {
        let mut unit = self.begin(Intent::Write).await?;
        for (group, kind) in dead {
            for range in self.codec.garbage_ranges(group.db, &group.owner, group.version, *kind) {
                self.backend.delete_range(range).await?;
            }
            unit.delete_record(group.records.start.clone());
        }
        unit.commit().await
    }

    /// Deletes records that are [orphaned](Unit::is_orphaned).
    pub async fn delete_orphans(&self, group: &Group) -> Result<()> {
        self.backend.delete_range(group.records.clone()).await?;
        let mut unit = self.begin(Intent::Write).await?;
        let forwarding = self.codec.forwarding(group.db, &group.owner, group.version);
        // Few were ever renamed: nothing is written for the others.
        if unit.peek(&forwarding).await?.is_some() {
            unit.delete_record(forwarding);
        }
        unit.commit().await
    }
}

impl Unit<'_> {
    /// A page of the elements, scores and members of all keys, alive or dead, in groups. Costs what the page holds:
    /// large groups are skipped.
    pub async fn element_groups(&mut self, position: &GroupPosition) -> Result<GroupPage> {
        self.groups(Wanted::Elements, position).await
    }

    /// A page of the garbage records of all databases.
    pub async fn garbage_groups(&mut self, position: &GroupPosition) -> Result<GroupPage> {
        self.groups(Wanted::Garbage, position).await
    }

    /// True if no key has the records and no garbage record names them. Of a key whose metadata cannot be read nobody
    /// knows what it has, so its records are none.
    pub async fn is_orphaned(&mut self, group: &Group) -> Result<bool> {
        // A snapshot shows each unit whole, so even the youngest version has its key in it.
        const NO_GRACE: i64 = i64::MIN;

        match self.is_orphan(group.owner(), NO_GRACE).await {
            Err(Error::Store(respgate_backend_api::Error::Corrupt(_))) => Ok(false),
            answer => answer,
        }
    }

    async fn groups(&mut self, wanted: Wanted, position: &GroupPosition) -> Result<GroupPage> {
        self.ready_to_read().await?;
        let mut page = GroupPage::default();
        let mut looked_into = 0;
        for number in position.range..256 * wanted.ranges() * u32::from(self.slots()) {
            let Some(mut range) = self.range_of(wanted, number) else { continue };
            if looked_into == RANGES_MAX {
                page.next = Some(GroupPosition { range: number, from: None });
                break;
            }
            looked_into += 1;
            if let Some(from) = position.from.as_ref().filter(|_| number == position.range) {
                range.start = from.clone();
            }
            let limit = GROUPS_MAX - page.groups.len();
            let records = self.scan(&range, Direction::Forward, limit).await?;
            let is_full = records.len() >= limit;
            let rest = self.sort(wanted, records, &mut page);
            if is_full {
                page.next = Some(GroupPosition { range: number, from: Some(rest) });
                break;
            }
        }
        Ok(page)
    }

    /// Adds the groups of `records` to the page. Returns where the first record may be that belongs to none of them.
    fn sort(&self, wanted: Wanted, records: Vec<(Bytes, Bytes)>, page: &mut GroupPage) -> Bytes {
        let codec = self.codec();
        let mut rest = Bytes::new();
        for (record, _) in records {
            if record < rest {
                continue;
            }
            let owner = match wanted {
                Wanted::Elements => codec.decode_owner(&record),
                Wanted::Garbage => codec.decode_garbage_key(&record),
            };
            let Some(Owner { db, key, version }) = owner else {
                rest = [&*record, &[0]].concat().into();
                page.strange.push(record);
                continue;
            };
            let records = KeyRange::prefix(record.slice(..codec.suffix_at(key)));
            rest = records.end.clone();
            page.groups.push(Group { db, owner: record.slice_ref(key), version, records });
        }
        rest
    }

    /// The range with this number; `None` if no database lies there.
    fn range_of(&self, wanted: Wanted, number: u32) -> Option<KeyRange> {
        let by_slot = self.keyspace().capabilities().range_partitioned;
        let (number, slot) = (number / u32::from(self.slots()), (number % u32::from(self.slots())) as u16);
        let db = u8::try_from(number / wanted.ranges()).ok().filter(|db| self.databases.mapped().contains(db))?;
        let place = Place { db, slot: by_slot.then_some(slot) };
        let ranges = match wanted {
            Wanted::Elements => place.elements(self.codec()),
            Wanted::Garbage => vec![place.garbage(self.codec())],
        };
        ranges.into_iter().nth((number % wanted.ranges()) as usize)
    }

    fn slots(&self) -> u16 {
        if self.keyspace().capabilities().range_partitioned { SLOTS } else { 1 }
    }
}
