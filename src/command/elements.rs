//! The elements that the commands of a unit will ask for one by one, read in one call to the store.

use bytes::Bytes;
use respgate_backend_api as backend;

use super::{Context, Error, Result, Step};
use crate::{
    encoding::Type,
    keyspace,
    types::{self, element_records},
};

/// Where a command names elements of its first key.
#[derive(Clone, Copy)]
pub struct ElementSpec {
    /// The type that the key must have.
    kind: Type,
    positions: Positions,
    /// True if the command looks at the elements only where the key's encoding counts them.
    to_count: bool,
}

/// Places among the arguments, of which the first is the command's name.
#[derive(Clone, Copy)]
enum Positions {
    At(usize),
    /// From here on, every so many.
    From(usize, usize),
    /// Every second one from the last on, but none before this.
    BackTo(usize),
}

impl ElementSpec {
    /// One element, after the key.
    pub const fn one(kind: Type) -> Self {
        Self::new(kind, Positions::At(2))
    }

    /// One element, at this place.
    pub const fn at(kind: Type, position: usize) -> Self {
        Self::new(kind, Positions::At(position))
    }

    /// All arguments after the key.
    pub const fn all(kind: Type) -> Self {
        Self::new(kind, Positions::From(2, 1))
    }

    /// Fields, each with a value behind it.
    pub const fn fields(kind: Type) -> Self {
        Self::new(kind, Positions::From(2, 2))
    }

    /// Members, each with a score before it, after any options. These may be taken for members; they are not found then.
    pub const fn scored(kind: Type) -> Self {
        Self::new(kind, Positions::BackTo(3))
    }

    /// The same for a command that looks at the elements only to count them.
    pub const fn to_count(self) -> Self {
        Self { to_count: true, ..self }
    }

    const fn new(kind: Type, positions: Positions) -> Self {
        Self { kind, positions, to_count: false }
    }

    fn among<'a>(&self, args: &'a [Bytes]) -> Vec<&'a Bytes> {
        match self.positions {
            Positions::At(at) => args.get(at).into_iter().collect(),
            Positions::From(first, step) => args.iter().skip(first).step_by(step).collect(),
            Positions::BackTo(first) => args.iter().skip(first).rev().step_by(2).collect(),
        }
    }
}

/// Reads elements that the first of `steps` will ask for, before these are carried out. Gives how many steps are covered.
///
/// None as long as all that the unit has read was in memory. Then few at first, and more as long as they turn out to be
/// short; so a unit does not hold much that it may never need.
pub(super) async fn read_ahead(context: &mut Context<'_>, steps: &[Step]) -> Result<usize> {
    /// A command that names more elements asks for them in one call itself.
    const NAMES_MAX: usize = 64;

    if !context.unit.has_waited() {
        return Ok(1);
    }
    let limit = usize::try_from(context.unit.ahead()).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(steps.len());
    }
    let (mut wanted, mut covered, mut askers, mut count) = (Vec::<Wanted<'_>>::new(), 0, 0, 0);
    for step in steps {
        if let Some(one) = Wanted::by(step).filter(|one| one.names.len() <= NAMES_MAX) {
            askers += 1;
            count += one.names.len();
            match wanted.last_mut() {
                Some(last) if last.goes_with(&one) => last.names.extend(one.names),
                _ => wanted.push(one),
            }
        }
        covered += 1;
        if count >= limit {
            break;
        }
    }
    if askers < 2 {
        return Ok(covered);
    }
    let mut records = Vec::with_capacity(count);
    for Wanted { key, spec, names } in wanted {
        let key = context.key(key);
        match element_records(&mut context.unit, &key, spec.kind, spec.to_count, &names).await {
            Ok(found) => records.extend(found),
            Err(types::Error::Keyspace(keyspace::Error::Store(error)))
                if !matches!(error, backend::Error::Corrupt(_)) =>
            {
                return Err(Error::Store(error));
            }
            // The command will say so, unless what is there is overwritten before.
            Err(_) => {}
        }
    }
    context.unit.read_ahead_each(records).await?;
    Ok(covered)
}

/// Elements of one key.
struct Wanted<'a> {
    key: &'a Bytes,
    spec: ElementSpec,
    names: Vec<&'a Bytes>,
}

impl<'a> Wanted<'a> {
    fn by(step: &'a Step) -> Option<Self> {
        let (entry, args) = step.command()?;
        let spec = entry.command.elements?;
        Some(Self { key: entry.command.keys_among(args).next()?, spec, names: spec.among(args) })
    }

    fn goes_with(&self, other: &Self) -> bool {
        self.key == other.key && self.spec.kind == other.spec.kind && self.spec.to_count == other.spec.to_count
    }
}
