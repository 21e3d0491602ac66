//! Critics, and adaptation.

mod adapt;
mod adapt_applied;
mod adapt_options;
mod critic;
mod critic_failure;
mod critic_options;
mod critic_panel;
mod support;
