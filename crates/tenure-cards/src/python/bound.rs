//! How deeply a Python file may be nested.
//!
//! The parser calls itself for each level of an expression, and so does whoever drops its tree. A
//! file is measured before it is parsed, so that no file can exhaust the stack.

use crate::limit::{MAX_PYTHON_BRACKETS, MAX_PYTHON_DEPTH, MAX_PYTHON_INDENTS};
use rustpython_ruff_python_ast::token::TokenKind;
use rustpython_ruff_python_parser::{Mode, lexer};

/// Up to this depth the caller's own stack is enough.
const SHALLOW: usize = 250;

/// How a file can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    /// On the caller's stack.
    Shallow,
    /// On a thread with a stack of its own.
    Deep,
    /// Not at all.
    TooDeep,
}

/// Measures `source` without parsing it. The measure is an upper bound: each token that is not
/// separated by a comma or a line from the one before it may be one level deeper.
pub(super) fn nesting(source: &str) -> Nesting {
    let mut lexer = lexer::lex(source, Mode::Module);
    let mut open: Vec<usize> = vec![0];
    let (mut sum, mut deepest, mut indents) = (0usize, 0usize, 0usize);
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => break,
            TokenKind::Newline | TokenKind::Semi => {
                open.clear();
                open.push(0);
                sum = 0;
            }
            TokenKind::Comma => {
                if let Some(last) = open.last_mut() {
                    sum -= *last;
                    *last = 0;
                }
            }
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                open.push(1);
                sum += 1;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                if open.len() > 1 {
                    sum -= open.pop().unwrap_or(0);
                }
                // A chain of calls, `a()()()`, nests as well.
                if let Some(last) = open.last_mut() {
                    *last += 1;
                    sum += 1;
                }
            }
            TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            _ => {
                if let Some(last) = open.last_mut() {
                    *last += 1;
                    sum += 1;
                }
            }
        }
        deepest = deepest.max(sum);
        if deepest > MAX_PYTHON_DEPTH
            || open.len() > MAX_PYTHON_BRACKETS
            || indents > MAX_PYTHON_INDENTS
        {
            return Nesting::TooDeep;
        }
    }
    if deepest > SHALLOW { Nesting::Deep } else { Nesting::Shallow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_files_are_shallow_and_hostile_ones_are_refused() {
        let long_list = format!("x = [{}]\n", "1, ".repeat(50_000));
        let sum = format!("x = {}1\n", "1 + ".repeat(500));
        for (source, expected) in [
            ("def f(ctx):\n    return ctx\n", Nesting::Shallow),
            (long_list.as_str(), Nesting::Shallow),
            (sum.as_str(), Nesting::Deep),
            ("(".repeat(300).as_str(), Nesting::TooDeep),
            ("- ".repeat(100_000).as_str(), Nesting::TooDeep),
            (format!("a{}", "()".repeat(100_000)).as_str(), Nesting::TooDeep),
            (format!("a{}", ".b".repeat(100_000)).as_str(), Nesting::TooDeep),
        ] {
            assert_eq!(nesting(source), expected, "{:.20}", source);
        }
    }
}
