//! The engine of a chat: its ends, people, workflows inside of workflows, journeys.

mod cancel;
mod ends;
mod inside;
mod journeys;
mod nested;
mod people;
mod strategies;
mod support;
mod talk;
mod ui_tools;
