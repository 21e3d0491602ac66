//! One turn: a request in, a report out.
//!
//! There is one loop (`turn_loop`) for blocking and streaming runs, for fresh and resumed ones,
//! for top-level agents and clones (G6). It runs in the caller's future; if that is dropped, the
//! guard moves the end work to the agent's tracker (G1).

mod batch;
mod ends;
mod guard;
mod input;
mod model;
mod output;
mod points;
mod recorded_call;
mod report;
mod stream;
mod tools;
mod turn;
mod turn_loop;

pub use batch::BatchState;
pub use batch::Body;
pub(crate) use batch::Waiting;
pub(crate) use guard::{claim, drive};
pub use input::Input;
pub(crate) use model::{call_beside, model_leaf};
pub(crate) use output::OutputCheck;
pub(crate) use recorded_call::recorded_part;
pub use report::{TurnEnd, TurnReport};
pub use stream::{Piece, TurnStream};
pub(crate) use tools::tool_leaf;
pub(crate) use turn::{Turn, TurnOptions};
