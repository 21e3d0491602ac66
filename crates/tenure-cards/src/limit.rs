//! The limits on files that are read before anybody trusts them.
//!
//! Every reader of this crate, and of those above it, takes its bounds from here: a file made to hurt costs a
//! diagnostic and no more. What goes beyond a limit is reported with the place, what was found, the limit and what to
//! do; the codes are T0103 (size), T0119 (count), T0120 (depth) and T0125 (everything else). Expressions and templates
//! of hooks are measured by [`tenure_hooks::limit`].

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;
/// The most nodes a file may have after its aliases are expanded.
pub const MAX_NODES: usize = 100_000;
/// The deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;
/// The most bytes of text the expanded tree may hold.
pub const MAX_TEXT: usize = 4 * MAX_FILE;
/// The most bytes of an instruction with its templates filled in.
pub const MAX_INSTRUCTION: usize = 4 * MAX_FILE;

/// The most agents that one field of a card names.
pub const MAX_AGENTS: usize = 1000;
/// The most bytes of a value that a condition makes.
pub const MAX_CONDITION_VALUE: usize = MAX_FILE;

/// The most faults of one kind that are reported of one file.
pub const MAX_SAME_FAULTS: usize = 100;
/// The most characters of a message, of its label or of its help.
pub const MAX_MESSAGE: usize = 4000;
/// The most names that a message lists.
pub const MAX_LISTED: usize = 200;
/// The longest word for which another one is suggested, in characters.
pub const MAX_SUGGESTED: usize = 80;

/// The most brackets of a Python file that are open at the same time, as in CPython.
pub const MAX_PYTHON_BRACKETS: usize = 200;
/// The most levels of indentation of a Python file, as in CPython.
pub const MAX_PYTHON_INDENTS: usize = 100;
/// The most tokens of a Python file on the way from the outermost expression to the innermost.
pub const MAX_PYTHON_DEPTH: usize = 4000;

/// The most importable files that are read.
pub const MAX_IMPORTABLE: usize = 5000;
/// The most files and folders that are looked at for importable ones.
pub const MAX_LOOKED_AT: usize = 200_000;
/// The most of them that links lead to outside of the project.
pub const MAX_OUTSIDE: usize = 2000;
