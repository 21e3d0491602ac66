//! Hooks that see a request before any model does.

mod load_context;
mod quota;
mod route;
mod sanitise;
mod support;
mod validate;
