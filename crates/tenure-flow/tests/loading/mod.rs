//! Loading folders of workflows: what is wrong with broken ones, and what good ones mean.

mod again;
mod broken;
mod fuzz;
mod good;
mod public;
mod support;
