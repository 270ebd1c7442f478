use std::collections::BTreeMap;

use bytes::Bytes;
use rand::{RngExt, rngs::SmallRng};

use super::{DATABASES, Entry};
use crate::{
    encoding::rdb::Value,
    keyspace::{Key, Unit},
    types::{
        Result, hash,
        key::{self, IfExists},
        list::{self, End},
        set, string,
        zset::{self, AddOptions},
    },
};

/// A command that changes something.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// SET, which does not look at what it replaces.
    Set(Key, Bytes, Option<i64>),
    /// DEL and RESTORE.
    Restore(Key, Value, Option<i64>),
    /// HSET, SADD, RPUSH or ZADD of one element with a value or score.
    Add(Key, Bytes, u8),
    /// HDEL, SREM, LPOP or ZREM.
    Remove(Key, Bytes),
    Delete(Key),
    /// RENAME within a database.
    Rename(Key, Bytes),
    Copy(Key, Key),
    Move(Key),
    Expire(Key, i64),
    Persist(Key),
    Flush(u8),
    Swap,
}

type Entries = BTreeMap<(u8, Bytes), Entry>;

impl Step {
    pub(super) fn random(random: &mut SmallRng, now_ms: i64) -> Self {
        let key = key(random);
        match random.random_range(0..100) {
            0..8 => Self::Set(key, text(random), expiry(random, now_ms)),
            8..25 => Self::Restore(key, value(random), expiry(random, now_ms)),
            25..45 => Self::Add(key, element(random), random.random()),
            45..65 => Self::Remove(key, element(random)),
            65..72 => Self::Delete(key),
            72..82 => Self::Rename(key, name(random)),
            82..86 => Self::Copy(key, self::key(random)),
            86..89 => Self::Move(key),
            89..95 => Self::Expire(key, now_ms + random.random_range(-10..500)),
            95..97 => Self::Persist(key),
            97..99 => Self::Flush(key.db),
            _ => Self::Swap,
        }
    }

    pub(super) async fn run(&self, unit: &mut Unit<'_>) -> Result<()> {
        match self {
            Self::Set(key, text, expires_at_ms) => string::set(unit, key, text.clone(), *expires_at_ms)?,
            Self::Restore(key, value, expires_at_ms) => {
                key::delete(unit, std::slice::from_ref(key)).await?;
                key::restore(unit, key, value.clone(), *expires_at_ms).await?;
            }
            Self::Add(key, element, score) => match key::value(unit, key).await? {
                Some(Value::Hash(_)) => {
                    hash::set(unit, key, &[(element.clone(), Bytes::copy_from_slice(&[*score]))]).await?;
                }
                Some(Value::Set(_)) => {
                    set::add(unit, key, std::slice::from_ref(element)).await?;
                }
                Some(Value::List(_)) => {
                    list::push(unit, key, End::Tail, std::slice::from_ref(element)).await?;
                }
                Some(Value::Zset(_)) => {
                    let member = (element.clone(), f64::from(*score));
                    zset::add(unit, key, &[member], AddOptions::default()).await?;
                }
                Some(Value::String(_)) | None => {}
            },
            Self::Remove(key, element) => match key::value(unit, key).await? {
                Some(Value::Hash(_)) => {
                    hash::delete(unit, key, std::slice::from_ref(element)).await?;
                }
                Some(Value::Set(_)) => {
                    set::remove(unit, key, std::slice::from_ref(element)).await?;
                }
                Some(Value::List(_)) => {
                    list::pop(unit, key, End::Head, 1).await?;
                }
                Some(Value::Zset(_)) => {
                    zset::remove(unit, key, std::slice::from_ref(element)).await?;
                }
                Some(Value::String(_)) | None => {}
            },
            Self::Delete(key) => {
                key::delete(unit, std::slice::from_ref(key)).await?;
            }
            Self::Rename(key, name) => {
                let to = Key { db: key.db, name: name.clone() };
                if key::kind(unit, key).await?.is_some() {
                    key::rename(unit, key, &to, IfExists::Replace).await?;
                }
            }
            Self::Copy(from, to) => {
                if from != to {
                    key::copy(unit, from, to, IfExists::Replace).await?;
                }
            }
            Self::Move(key) => {
                key::move_to(unit, key, 1 - key.db).await?;
            }
            Self::Expire(key, at_ms) => {
                key::expire(unit, key, *at_ms, key::Condition::default()).await?;
            }
            Self::Persist(key) => {
                key::persist(unit, key).await?;
            }
            Self::Flush(db) => unit.flush_databases([*db]).await?,
            Self::Swap => unit.swap_databases(0, 1)?,
        }
        Ok(())
    }

    pub(super) fn apply_to_model(&self, entries: &mut Entries) {
        let id = |key: &Key| (key.db, key.name.clone());
        match self {
            Self::Set(key, text, expires_at_ms) => {
                entries.insert(id(key), (Value::String(text.clone()), *expires_at_ms));
            }
            Self::Restore(key, value, expires_at_ms) => {
                entries.insert(id(key), (value.clone(), *expires_at_ms));
            }
            Self::Add(key, element, score) => {
                if let Some((value, _)) = entries.get_mut(&id(key)) {
                    add(value, element, *score);
                }
            }
            Self::Remove(key, element) => {
                if let Some((value, _)) = entries.get_mut(&id(key)) {
                    remove(value, element);
                    if is_empty(value) {
                        entries.remove(&id(key));
                    }
                }
            }
            Self::Delete(key) => {
                entries.remove(&id(key));
            }
            Self::Rename(key, name) => {
                if let Some(entry) = entries.remove(&id(key)) {
                    entries.insert((key.db, name.clone()), entry);
                }
            }
            Self::Copy(from, to) => {
                if let Some(entry) = entries.get(&id(from)).cloned() {
                    entries.insert(id(to), entry);
                }
            }
            Self::Move(key) => {
                let to = (1 - key.db, key.name.clone());
                if !entries.contains_key(&to)
                    && let Some(entry) = entries.remove(&id(key))
                {
                    entries.insert(to, entry);
                }
            }
            Self::Expire(key, at_ms) => {
                if let Some((_, expires_at_ms)) = entries.get_mut(&id(key)) {
                    *expires_at_ms = Some(*at_ms);
                }
            }
            Self::Persist(key) => {
                if let Some((_, expires_at_ms)) = entries.get_mut(&id(key)) {
                    *expires_at_ms = None;
                }
            }
            Self::Flush(flushed) => entries.retain(|(db, _), _| db != flushed),
            Self::Swap => {
                let swapped = std::mem::take(entries).into_iter().map(|((db, name), entry)| ((1 - db, name), entry));
                *entries = swapped.collect();
            }
        }
    }
}

fn add(value: &mut Value, element: &Bytes, score: u8) {
    match value {
        Value::String(_) => {}
        Value::Hash(pairs) => {
            pairs.retain(|(field, _)| field != element);
            pairs.push((element.clone(), Bytes::copy_from_slice(&[score])));
            pairs.sort();
        }
        Value::Set(members) => {
            members.push(element.clone());
            members.sort();
            members.dedup();
        }
        Value::List(elements) => elements.push(element.clone()),
        Value::Zset(members) => {
            members.retain(|(member, _)| member != element);
            members.push((element.clone(), f64::from(score)));
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
    }
}

fn remove(value: &mut Value, element: &Bytes) {
    match value {
        Value::String(_) => {}
        Value::Hash(pairs) => pairs.retain(|(field, _)| field != element),
        Value::Set(members) => members.retain(|member| member != element),
        Value::List(elements) => drop(elements.remove(0)),
        Value::Zset(members) => members.retain(|(member, _)| member != element),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(_) => false,
        Value::Hash(pairs) => pairs.is_empty(),
        Value::Set(elements) | Value::List(elements) => elements.is_empty(),
        Value::Zset(members) => members.is_empty(),
    }
}

fn name(random: &mut SmallRng) -> Bytes {
    format!("k{}", random.random_range(0..6)).into()
}

fn key(random: &mut SmallRng) -> Key {
    Key { db: random.random_range(0..DATABASES), name: name(random) }
}

fn element(random: &mut SmallRng) -> Bytes {
    element_number(random.random_range(0..8))
}

/// Some are longer than what is its own index in a sorted set.
fn element_number(number: u8) -> Bytes {
    if number.is_multiple_of(3) { format!("{number:02}: and so on for some bytes") } else { format!("{number:02}") }
        .into()
}

fn text(random: &mut SmallRng) -> Bytes {
    vec![b'x'; random.random_range(0..30_000) / random.random_range(1..1_000)].into()
}

fn value(random: &mut SmallRng) -> Value {
    let count = random.random_range(1..8);
    let names = (0..count).map(element_number);
    match random.random_range(0..5) {
        0 => Value::String(text(random)),
        1 => Value::Hash(names.map(|name| (name.clone(), name)).collect()),
        2 => Value::Set(names.collect()),
        3 => Value::List(names.collect()),
        _ => Value::Zset(names.map(|name| (name, 1.5)).collect()),
    }
}

fn expiry(random: &mut SmallRng, now_ms: i64) -> Option<i64> {
    random.random_bool(0.3).then(|| now_ms + random.random_range(1..500))
}
