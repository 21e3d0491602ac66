//! The instruction as a body and as a field.
//!
//! A body is trimmed when it is read and its `${VAR}` is never expanded; a field keeps its white
//! space and is expanded. So text can move from one to the other only where both read it alike.

use crate::source::is_history_marker;

/// A dollar sign that expansion leaves behind: the variable is not there, so its default stands.
const DOLLAR: &str = "${DOLLAR:$}";

/// The text of a body, written so that a field gives the same text after expansion.
pub(super) fn field_of_body(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        out.push_str(if is_expandable(&rest[at..]) { DOLLAR } else { "$" });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out
}

/// The text of a field as a body that means the same, if there is one.
pub(super) fn body_of_field(field: &str) -> Option<String> {
    let body = field.replace(DOLLAR, "$");
    (field_of_body(&body) == field && survives(&body)).then_some(body)
}

/// Whether text, put in the body of a Markdown card, is read back as it is.
pub(super) fn survives(text: &str) -> bool {
    !text.is_empty()
        && text.trim().len() == text.len()
        && !text.contains("\r\n")
        && !text.starts_with('\u{feff}')
        && text.lines().next().is_none_or(|first| first.trim_end() != "---SYSTEM")
        && !text.split('\n').any(is_history_marker)
}

/// Whether text that starts with `${` is a variable with or without a default.
fn is_expandable(text: &str) -> bool {
    let inner = &text[2..];
    let Some(end) = inner.find('}') else { return false };
    let name = inner[..end].split(':').next().unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|found| found.is_ascii_alphanumeric() || found == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_in_a_body_is_kept_from_expansion_and_comes_back() {
        for body in ["use ${HOME} and ${X:y}", "$${A}", "${} ${1} ${", "${A:${B}}", "a $ b"] {
            let field = field_of_body(body);
            assert_eq!(body_of_field(&field).as_deref(), Some(body), "{field}");
        }
        assert_eq!(field_of_body("x ${HOME}"), "x ${DOLLAR:$}{HOME}");
        assert_eq!(field_of_body("${1} ${"), "${1} ${");
    }

    #[test]
    fn a_field_with_a_variable_stays_a_field() {
        assert_eq!(body_of_field("key ${SECRET}"), None);
        assert_eq!(body_of_field("${DOLLAR:$} alone"), None);
    }

    #[test]
    fn text_that_a_body_would_change_stays_a_field() {
        for text in [
            "",
            " a",
            "a\n",
            "a ",
            "---SYSTEM\na",
            "a\n---USER\nb",
            "a\n ---RESOURCE \n",
            "a\r\nb",
            "---SYSTEM",
            "\u{a0}a",
        ] {
            assert_eq!(body_of_field(text), None, "{text:?}");
        }
        assert_eq!(body_of_field("a\n---SYSTEM\n---\nb").as_deref(), Some("a\n---SYSTEM\n---\nb"));
    }
}
