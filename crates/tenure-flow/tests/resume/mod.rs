//! Chats that are recorded: they go on where another process stopped.

mod cuts;
mod duration;
mod mortal;
mod parked;
mod python;
mod told;
mod world;
