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
                write!(f, "{:016x}-{:x}", self.process, self.number)
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
