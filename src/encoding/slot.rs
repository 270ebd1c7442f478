use std::sync::LazyLock;

use crc::{CRC_16_XMODEM, Crc};
use md5::{Digest, Md5};

/// How many slots keys are spread over, as in Redis Cluster.
pub const SLOTS: u16 = 16384;

const PREFIX_BYTES: usize = 8;

static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// Every slot's prefix: 128 KiB, so that a key costs a look-up instead of an MD5.
static PREFIXES: LazyLock<Vec<[u8; PREFIX_BYTES]>> = LazyLock::new(|| (0..SLOTS).map(digest).collect());

/// Every slot, in the order of their prefixes.
static ORDER: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut slots: Vec<u16> = (0..SLOTS).collect();
    slots.sort_unstable_by_key(|&slot| slot_prefix(slot));
    slots
});

/// The slot of a user key: CRC16/XMODEM modulo 16384, of the hash tag where the key has one.
///
/// The rule is Redis Cluster's: if the key holds a `{` and, after it, a `}` with something in between, only what lies
/// between the first `{` and the first `}` after it counts.
pub fn slot(user_key: &[u8]) -> u16 {
    CRC16.checksum(hash_tag(user_key).unwrap_or(user_key)) % SLOTS
}

/// What stands before every key of a slot on a range-partitioned store: the first 8 bytes of the MD5 of the slot's
/// decimal digits.
///
/// A slot is a small number and its neighbours would share a region; its digest spreads them over the key space.
pub fn slot_prefix(slot: u16) -> [u8; PREFIX_BYTES] {
    PREFIXES.get(usize::from(slot)).copied().unwrap_or_else(|| digest(slot))
}

/// All slots in the order in which their records lie in a range-partitioned store.
pub fn slots_in_order() -> &'static [u16] {
    &ORDER
}

/// How many slots lie before `slot` in a range-partitioned store.
pub fn slot_rank(slot: u16) -> u16 {
    rank_of_record(&slot_prefix(slot))
}

/// How many slots lie wholly before `record` in a range-partitioned store.
pub fn rank_of_record(record: &[u8]) -> u16 {
    let before = slots_in_order()
        .partition_point(|&slot| !record.starts_with(&slot_prefix(slot)) && slot_prefix(slot)[..] < *record);
    u16::try_from(before).unwrap_or(SLOTS)
}

fn hash_tag(user_key: &[u8]) -> Option<&[u8]> {
    let open = user_key.iter().position(|&byte| byte == b'{')?;
    let after = user_key.get(open + 1..)?;
    let close = after.iter().position(|&byte| byte == b'}')?;
    after.get(..close).filter(|tag| !tag.is_empty())
}

fn digest(slot: u16) -> [u8; PREFIX_BYTES] {
    let md5: [u8; 16] = Md5::digest(slot.to_string()).into();
    let mut prefix = [0; PREFIX_BYTES];
    prefix.iter_mut().zip(md5).for_each(|(to, from)| *to = from);
    prefix
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn golden_slots() {
        // What CLUSTER KEYSLOT of Redis 7.0 answers.
        let slots: [(&str, u16); 12] = [
            ("", 0),
            ("foo", 12182),
            ("123456789", 12739),
            ("user1000", 3443),
            ("{user1000}.following", 3443),
            ("{bar", 4015),
            ("foo{{bar}}zap", 4015),
            ("bar", 5061),
            ("foo{bar}{zap}", 5061),
            ("foo{}{bar}", 8363),
            ("}{a}", 15495),
            ("{}a", 10875),
        ];
        for (key, expected) in slots {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn golden_prefixes() {
        assert_eq!(slot_prefix(0).map(u32::from), [0xcf, 0xcd, 0x20, 0x84, 0x95, 0xd5, 0x65, 0xef]);
        assert_eq!(slot_prefix(1).map(u32::from), [0xc4, 0xca, 0x42, 0x38, 0xa0, 0xb9, 0x23, 0x82]);
        assert_eq!(slot_prefix(16383).map(u32::from), [0x09, 0xa7, 0xd8, 0xe1, 0x7b, 0xe9, 0xc3, 0x4a]);
        assert_eq!(slot_prefix(slot(b"foo")).map(u32::from), [0xa3, 0x64, 0x70, 0xcf, 0x1f, 0x8e, 0x5a, 0xaf]);
    }

    #[test]
    fn ranks_number_the_slots_as_their_prefixes_are_ordered() {
        let prefixes: Vec<_> = slots_in_order().iter().map(|&slot| slot_prefix(slot)).collect();
        assert!(prefixes.is_sorted() && prefixes.len() == usize::from(SLOTS));
        for (rank, &slot) in (0..).zip(slots_in_order()) {
            assert_eq!(slot_rank(slot), rank);
            assert_eq!(rank_of_record(&[&slot_prefix(slot)[..], b"m#"].concat()), rank);
        }
        assert_eq!((rank_of_record(b""), rank_of_record(&[0xff; 9])), (0, SLOTS));
    }

    #[test]
    fn no_two_slots_share_a_prefix_and_none_looks_like_a_record_without_one() {
        let prefixes: HashSet<_> = (0..SLOTS).map(slot_prefix).collect();
        assert_eq!(prefixes.len(), usize::from(SLOTS));
        assert!(!prefixes.iter().any(|prefix| [b"d#", b"o#", b"w#"].iter().any(|&tag| prefix.starts_with(tag))));
    }
}
