//! Hooks that files declare.
//!
//! A declared hook is a spec (`file.py:function`), a command (a list), or a table that says more.
//! Everything about it is checked when its file is read: the fields, the file, the function, its
//! parameters, the condition and the order. Nothing is run. [`Declared`] is how it is called: under
//! its condition, and again if it fails.

mod condition;
mod declared;
mod fields;
mod order;
mod ordered;
mod sized;
mod spec;
mod table;
mod types;
mod when;

pub use declared::Declared;
pub use spec::SpecScope;
pub use table::read_hooks;
pub use types::{
    CardHooks, CommandRef, DeclaredHook, On, Places, PythonRef, Run, ToolHookSet, When,
};
pub use when::Condition;
