//! Tool servers: real ones, and one of ours that misbehaves.

mod calls;
mod everything;
mod files;
mod http;
mod life;
mod lists;
mod protocols;
mod questions;
mod starts;
mod support;
