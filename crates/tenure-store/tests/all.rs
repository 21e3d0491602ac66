//! The store: what is kept of runs, whatever happens to a process or a file.

mod announced;
mod crash;
mod files;
mod keys;
mod people;
mod runs;
