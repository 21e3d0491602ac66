//! Who speaks when: patterns, handoffs, limits, and what is guaranteed around every turn.

mod auto;
mod golden;
mod limits;
mod matrix;
mod patterns;
mod rules;
mod same;
mod support;
