//! Doc comments as text for a model.

use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta};

/// Whether the attribute is a doc comment; `#[doc(hidden)]` is not.
pub(crate) fn is_comment(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::NameValue(meta) if meta.path.is_ident("doc"))
}

/// The text of the doc comments among `attributes`. `None` if there is none, or nothing in it.
pub(crate) fn text(attributes: &[Attribute]) -> syn::Result<Option<String>> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_comment(attribute)) {
        let Meta::NameValue(meta) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(ExprLit { lit: Lit::Str(comment), .. }) = &meta.value else {
            return Err(Error::new_spanned(
                &meta.value,
                "this macro can read only a doc comment that is written out",
            ));
        };
        lines.extend(uncommented(&comment.value()));
    }
    Ok(Some(reflow(&lines)).filter(|text| !text.is_empty()))
}

/// The lines of one comment, without the column of stars that block comments often have.
fn uncommented(comment: &str) -> Vec<String> {
    let (first, rest) = comment.split_once('\n').unwrap_or((comment, ""));
    let mut written = rest.lines().map(str::trim).filter(|line| !line.is_empty());
    let starred = written.all(|line| line.starts_with('*'));
    let rest = rest.lines().map(|line| match line.trim_start().strip_prefix('*') {
        Some(text) if starred => text,
        _ => line,
    });
    std::iter::once(first).chain(rest).map(str::to_owned).collect()
}

/// Joins the lines of each paragraph, and keeps apart what Markdown keeps apart.
fn reflow(lines: &[String]) -> String {
    let mut text = String::new();
    let mut fenced = false;
    let mut breaks = 0;
    for line in lines {
        let trimmed = line.trim();
        let fence = trimmed.starts_with("```");
        if trimmed.is_empty() && !fenced {
            breaks = 2;
            continue;
        }
        match breaks {
            _ if text.is_empty() => {}
            2 => text.push_str("\n\n"),
            1 => text.push('\n'),
            _ if fenced || fence || begins_block(trimmed) => text.push('\n'),
            _ => text.push(' '),
        }
        // In code the indentation counts; the one space is the comment's.
        let code = line.strip_prefix(' ').unwrap_or(line).trim_end();
        text.push_str(if fenced && !fence { code } else { trimmed });
        breaks = usize::from(fence);
        fenced ^= fence;
    }
    text.trim().to_owned()
}

/// Whether a line starts something of its own, rather than going on with the paragraph.
fn begins_block(line: &str) -> bool {
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = unnumbered.len() < line.len() && unnumbered.starts_with(". ");
    numbered || ["- ", "* ", "+ ", "#", "|", ">"].iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::{ItemFn, parse_str};

    fn of(source: &str) -> Option<String> {
        let item: ItemFn = parse_str(&format!("{source}\nfn f() {{}}")).expect("a function");
        text(&item.attrs).expect("literal comments")
    }

    #[test]
    fn the_lines_of_a_paragraph_are_joined() {
        for (source, expected) in [
            ("", None),
            ("///", None),
            ("#[doc(hidden)]", None),
            ("/// One.", Some("One.")),
            ("/// One\n///   two.  ", Some("One two.")),
            ("/// One.\n///\n/// Two.\n///", Some("One.\n\nTwo.")),
            ("#[doc = \"One\"]\n#[inline]\n/// two.", Some("One two.")),
            ("/** One\n    two. */", Some("One two.")),
            ("/**\n * One\n * two.\n *\n * Three.\n */", Some("One two.\n\nThree.")),
        ] {
            assert_eq!(of(source).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn lists_tables_and_code_keep_their_lines() {
        for (source, expected) in [
            ("/// Either\n/// - this, or\n///   so\n/// - that", "Either\n- this, or so\n- that"),
            ("/// 1. a\n/// 2. b", "1. a\n2. b"),
            ("/// 12 apples\n/// 3 pears", "12 apples 3 pears"),
            ("/// | a |\n/// |---|", "| a |\n|---|"),
            (
                "/// Like\n/// ```text\n/// a\n///   b\n///\n/// c\n/// ```\n/// this.",
                "Like\n```text\na\n  b\n\nc\n```\nthis.",
            ),
        ] {
            assert_eq!(of(source).as_deref(), Some(expected), "{source}");
        }
    }

    #[test]
    fn a_comment_that_is_not_written_out_is_refused() {
        let item: ItemFn =
            parse_str("#[doc = include_str!(\"a.md\")] fn f() {}").expect("a function");
        assert!(text(&item.attrs).is_err());
    }
}
