//! A hash for ids.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes with a few instructions. What is hashed are ids of ours and names of groups: nobody tries
/// to make them collide.
pub(super) type Folding = BuildHasherDefault<Fold>;

/// See [`Folding`].
#[derive(Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // Tables take the place from the low bits, which a product mixes least.
        self.0 ^ (self.0 >> 32)
    }
}
