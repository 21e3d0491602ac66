//! What hooks, turns, steps and clones promise, as behaviour.

mod acceptance;
mod cancels;
mod chats;
mod clones;
mod drive;
mod foreign;
mod limits;
mod lives;
mod order;
mod ownership;
mod parks;
mod policy;
mod ready;
mod sources;
mod steps;
mod support;
mod survive;
mod tower;
mod typed;
mod unobserved;
mod writes;
