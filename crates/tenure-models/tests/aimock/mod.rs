//! Providers against aimock, a mock of the providers' servers that other people wrote.
//!
//! Every test runs the real program, which `scripts/setup` installs; there is no test here without
//! it. What a server of our own has to do wrong in one exact way is tested elsewhere.

mod agents;
mod chaos;
mod cuts;
mod journal;
mod server;
mod wires;
