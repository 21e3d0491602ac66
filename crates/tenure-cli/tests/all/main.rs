//! The program as its users meet it: the real binary, real files, real processes.

mod asks;
mod basics;
mod chat;
mod chat_stops;
mod check;
mod demo;
mod explain;
mod filters;
mod flows;
mod help;
mod init;
mod look;
mod nothing_runs;
mod progress;
mod reach;
mod run;
mod secrets;
mod signals;
mod support;
mod survive;
mod trust;
mod watch;
mod workflow;
mod workflow_look;
mod workflow_slips;
mod yes;
