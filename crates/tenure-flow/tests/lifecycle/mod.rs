//! Lifecycle tools and message hooks in chats of real agents, with real Python.

mod commands;
mod context;
mod declared;
mod faults;
mod life;
mod messages;
mod order;
mod rust;
mod support;
