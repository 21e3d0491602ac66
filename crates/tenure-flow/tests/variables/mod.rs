//! Context variables and structured outputs: where values come from, who may write them, who reads
//! them, and in which form agents answer.

mod auto;
mod bounded;
mod computed;
mod data;
mod exposure;
mod outputs;
mod provided;
mod refused;
mod rules;
mod sources;
mod support;
mod triggers;
