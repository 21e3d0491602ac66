//! Clones: detached instances, forks, and agents as tools.

mod concurrent;
mod endings;
mod guards;
mod options;
