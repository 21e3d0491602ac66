//! What becomes of each field of a card.

mod composed;
mod declared;
mod explained;
mod fields;
mod models;
mod refused;
mod servers;
mod trusted;
