//! Ids: unique for ever, and cheap to make.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A number that no other process has: time in the upper half, randomness in the lower.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let random = RandomState::new().build_hasher().finish();
        (since.as_secs() << 32) | (random & 0xffff_ffff)
    })
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Writes an id as `{:016x}-{:x}` would. It stands in every event and record, so it is quick.
fn show(process: u64, number: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [b'-'; 33];
    let digit = |half: u64| b"0123456789abcdef"[(half & 15) as usize];
    for (at, place) in text[..16].iter_mut().enumerate() {
        *place = digit(process >> (60 - 4 * at));
    }
    let digits = (64 - (number | 1).leading_zeros() as usize).div_ceil(4);
    for (at, place) in text[17..17 + digits].iter_mut().rev().enumerate() {
        *place = digit(number >> (4 * at));
    }
    f.write_str(std::str::from_utf8(&text[..17 + digits]).unwrap_or_default())
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            process: u64,
            number: u64,
        }

        impl $name {
            /// A new one.
            #[inline]
            pub fn unique() -> Self {
                Self { process: process(), number: NEXT.fetch_add(1, Ordering::Relaxed) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(self.process, self.number, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::Error;

            fn from_str(text: &str) -> Result<Self, crate::Error> {
                text.split_once('-')
                    .and_then(|(process, number)| Some(Self {
                        process: u64::from_str_radix(process, 16).ok()?,
                        number: u64::from_str_radix(number, 16).ok()?,
                    }))
                    .ok_or_else(|| crate::Error::invalid(format!("`{text}` is not an id")))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// The id of one live agent. No two instances ever have the same, in any process.
    InstanceId;
    /// The id of one turn.
    RunId;
    /// The id of everything that belongs to one request, over all agents it touches.
    TraceId;
}

#[cfg(test)]
mod tests {
    use super::RunId;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        for number in [0, 1, 0xf, 0x10, 0xabc_def0, u64::MAX >> 1, u64::MAX] {
            for process in [0, 7, u64::MAX] {
                let id = RunId { process, number };
                assert_eq!(id.to_string(), format!("{process:016x}-{number:x}"));
                assert_eq!(id.to_string().parse::<RunId>().expect("it is an id"), id);
            }
        }
    }
}
