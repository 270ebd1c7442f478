use std::str;

use bytes::{BufMut, Bytes};

use super::{CRC64, VERSION, Value, encoding};

/// The longest decimal number of 32 bits.
const INTEGER_DIGITS_MAX: usize = "-2147483648".len();

/// The payload of a value, as DUMP replies with it. Redis 7.0 and later restore it.
pub fn dump(value: &Value) -> Vec<u8> {
    let mut payload = Vec::new();
    match value {
        Value::String(string) => {
            payload.put_u8(encoding::STRING);
            put_string(&mut payload, string);
        }
        Value::List(elements) => put_strings(&mut payload, encoding::LIST, elements),
        Value::Set(members) => put_strings(&mut payload, encoding::SET, members),
        Value::Hash(fields) => {
            payload.put_u8(encoding::HASH);
            put_length(&mut payload, fields.len());
            for (field, value) in fields {
                put_string(&mut payload, field);
                put_string(&mut payload, value);
            }
        }
        Value::Zset(members) => {
            payload.put_u8(encoding::ZSET_2);
            put_length(&mut payload, members.len());
            for (member, score) in members {
                put_string(&mut payload, member);
                payload.put_f64_le(*score);
            }
        }
    }
    seal(payload)
}

/// Appends the version and the checksum.
fn seal(mut payload: Vec<u8>) -> Vec<u8> {
    payload.put_u16_le(VERSION);
    let checksum = CRC64.checksum(&payload);
    payload.put_u64_le(checksum);
    payload
}

fn put_strings(payload: &mut Vec<u8>, encoding: u8, strings: &[Bytes]) {
    payload.put_u8(encoding);
    put_length(payload, strings.len());
    strings.iter().for_each(|string| put_string(payload, string));
}

/// A string: its length and its bytes, or a small integer in binary if it reads like one.
fn put_string(payload: &mut Vec<u8>, string: &[u8]) {
    let Some(integer) = canonical_integer(string) else {
        put_length(payload, string.len());
        return payload.put_slice(string);
    };
    if let Ok(integer) = i8::try_from(integer) {
        payload.put_u8(0xc0);
        payload.put_i8(integer);
    } else if let Ok(integer) = i16::try_from(integer) {
        payload.put_u8(0xc1);
        payload.put_i16_le(integer);
    } else {
        payload.put_u8(0xc2);
        payload.put_i32_le(integer);
    }
}

/// The number that prints as exactly this string, if there is one of 32 bits.
fn canonical_integer(string: &[u8]) -> Option<i32> {
    if string.len() > INTEGER_DIGITS_MAX {
        return None;
    }
    let text = str::from_utf8(string).ok()?;
    text.parse().ok().filter(|integer: &i32| integer.to_string() == text)
}

/// A length: the top two bits of the first byte say how many bytes follow. Big-endian, unlike the rest.
fn put_length(payload: &mut Vec<u8>, length: usize) {
    match length {
        0..0x40 => payload.put_u8(length as u8),
        0x40..0x4000 => payload.put_u16(0x4000 | length as u16),
        0x4000..=0xffff_ffff => {
            payload.put_u8(0x80);
            payload.put_u32(length as u32);
        }
        _ => {
            payload.put_u8(0x81);
            payload.put_u64(length as u64);
        }
    }
}
