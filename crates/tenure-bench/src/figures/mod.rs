//! The figures, one file for each thing that is measured.

mod chats;
mod clones;
pub(crate) mod concurrent;
mod confined;
mod files;
mod growth;
mod hooks;
pub(crate) mod instances;
mod journal;
mod mcp;
mod network;
mod python;
mod ready;
mod turns;
mod wire;

use crate::measure::Bench;
use crate::report::Figure;
use std::error::Error;

/// Figures that are taken together, because they share contenders.
pub(crate) struct Group {
    pub(crate) names: &'static [&'static str],
    pub(crate) measure: fn(&Bench) -> Measured,
}

pub(crate) type Measured = Result<Vec<Figure>, Box<dyn Error>>;

/// The lifecycle.
pub(crate) const GROUPS: [Group; 9] = [
    Group { names: &["step_ratio", "turn_ratio"], measure: turns::measure },
    Group { names: &["hook_point_ratio"], measure: hooks::points },
    Group { names: &["wrap_ratio"], measure: hooks::wraps },
    Group { names: &["idle_hooks_pct"], measure: hooks::idle },
    Group {
        names: &["instance_ratio", "instance_life_ratio", "instance_bytes"],
        measure: instances::measure,
    },
    Group { names: &["clone_ratio"], measure: clones::measure },
    Group { names: &["growth_ratio"], measure: growth::measure },
    Group { names: &["concurrent_ratio"], measure: concurrent::measure },
    Group { names: &["http_one_hook_pct", "http_five_hooks_pct"], measure: network::measure },
];

/// Hooks in other processes, and what is made of files.
pub(crate) const HOSTS: [Group; 4] = [
    Group { names: &["python_hook_ratio"], measure: python::round_trips },
    Group { names: &["worker_replace_ratio"], measure: python::replacement },
    Group { names: &["confined_true_ms", "confined_command_ratio"], measure: confined::commands },
    Group { names: &["load_ratio"], measure: files::loading },
];

/// Models and tools on the other side of a wire.
pub(crate) const MODELS: [Group; 2] = [
    Group { names: &["wire_ratio"], measure: wire::measure },
    Group { names: &["mcp_ratio"], measure: mcp::measure },
];

/// Runs that survive.
pub(crate) const STORE: [Group; 5] = [
    Group { names: &["append_ratio_1", "append_ratio_64"], measure: journal::append },
    Group { names: &["off_ratio"], measure: journal::off },
    Group { names: &["resume_ratio"], measure: journal::resume },
    Group { names: &["store_growth_ratio"], measure: journal::growth },
    Group { names: &["disk_growth_ratio"], measure: journal::disk },
];

/// The ready-made hooks.
pub(crate) const HOOKS: [Group; 1] = [Group { names: &ready::NAMES, measure: ready::measure }];

/// Workflows: chats of several agents.
pub(crate) const FLOW: [Group; 2] = [
    Group { names: &["chat_turn_ratio", "chat_growth_ratio"], measure: chats::turns },
    Group { names: &["chats_ratio"], measure: chats::together },
];
