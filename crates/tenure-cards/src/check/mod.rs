//! Loading files and folders, and checking the cards together.
//!
//! Everything that can be wrong is found here, before anything runs, in all files at once. Nothing
//! is executed: Python is parsed, programs are looked at, addresses are not opened.

mod files;
mod grants;
mod home;
mod key_owners;
mod load;
mod scripts;
mod servers;
mod together;
mod variables;

pub use load::{CardLoader, LoadOptions, Loaded, load};
