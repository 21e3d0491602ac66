//! The tests of the lifecycle, in one program: they link once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod guarantees;
mod semantics;
