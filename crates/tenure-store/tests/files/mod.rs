//! The file: what of it survives cuts, flipped bits, full disks and closed folders.

mod closed;
mod fixture;
mod torn;
