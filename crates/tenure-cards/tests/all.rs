//! Cards: loaded, built, composed, run and resumed.

mod build;
mod compose;
mod loading;
mod matrix;
mod resume;
mod support;
mod team;
