//! What a docstring says of a function and of its parameters.

use std::collections::BTreeMap;

/// A docstring taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Docstring {
    /// What the function does: everything before the first section.
    pub(super) summary: String,
    /// What is said of each parameter.
    pub(super) parameters: BTreeMap<String, String>,
}

const SECTIONS: [&str; 15] = [
    "args",
    "arguments",
    "attributes",
    "parameters",
    "params",
    "returns",
    "return",
    "yields",
    "raises",
    "examples",
    "example",
    "note",
    "notes",
    "see also",
    "warnings",
];

/// Reads Google, numpy and reST docstrings.
pub(super) fn read(text: &str) -> Docstring {
    let lines = dedent(text);
    let mut found = Docstring::default();
    let mut summary = Vec::new();
    let mut at = 0;
    let mut in_summary = true;
    while at < lines.len() {
        let line = lines[at].as_str();
        if let Some((name, said)) = rest_parameter(line) {
            in_summary = false;
            let mut said = said.to_owned();
            at += 1;
            while at < lines.len() && indent(&lines[at]) > 0 {
                join(&mut said, lines[at].trim());
                at += 1;
            }
            found.parameters.insert(name.to_owned(), said);
            continue;
        }
        if line.trim_start().starts_with(':') && line.trim_start()[1..].contains(':') {
            in_summary = false;
            at += 1;
            continue;
        }
        if let Some(section) = section(&lines, at) {
            in_summary = false;
            let is_parameters = ["args", "arguments", "attributes", "parameters", "params"]
                .contains(&section.name.to_lowercase().as_str());
            at = section.body;
            if is_parameters {
                at = parameters(&lines, at, section.style, &mut found.parameters);
            }
            continue;
        }
        if in_summary {
            summary.push(line.trim_end());
        }
        at += 1;
    }
    found.summary = summary.join("\n").trim().to_owned();
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Google,
    Numpy,
}

struct Section<'a> {
    name: &'a str,
    body: usize,
    style: Style,
}

fn section(lines: &[String], at: usize) -> Option<Section<'_>> {
    let line = lines[at].trim();
    let known = |name: &str| SECTIONS.contains(&name.to_lowercase().as_str());
    if let Some(name) = line.strip_suffix(':').filter(|name| known(name)) {
        return Some(Section { name, body: at + 1, style: Style::Google });
    }
    let ruled = lines
        .get(at + 1)
        .map(|next| next.trim())
        .is_some_and(|next| next.len() >= 3 && next.chars().all(|c| c == '-'));
    (ruled && known(line)).then_some(Section { name: line, body: at + 2, style: Style::Numpy })
}

fn parameters(
    lines: &[String],
    mut at: usize,
    style: Style,
    found: &mut BTreeMap<String, String>,
) -> usize {
    let Some(first) = lines[at..].iter().find(|line| !line.trim().is_empty()) else {
        return lines.len();
    };
    let level = indent(first);
    if style == Style::Google && level == 0 {
        return at;
    }
    let mut current: Option<String> = None;
    while at < lines.len() {
        let line = &lines[at];
        if line.trim().is_empty() {
            at += 1;
            continue;
        }
        if indent(line) < level || section(lines, at).is_some() {
            break;
        }
        if indent(line) > level {
            if let Some(said) = current.as_ref().and_then(|name| found.get_mut(name)) {
                join(said, line.trim());
            }
        } else {
            let (head, said) = match style {
                Style::Google => line.trim().split_once(':').unwrap_or((line.trim(), "")),
                Style::Numpy => (line.trim(), ""),
            };
            let end = head.find([' ', '(', ':', ',']).unwrap_or(head.len());
            let name = head[..end].trim_start_matches('*').to_owned();
            found.insert(name.clone(), said.trim().to_owned());
            current = Some(name);
        }
        at += 1;
    }
    at
}

/// `:param name: text` and `:param type name: text`.
fn rest_parameter(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().strip_prefix(":param ")?;
    let (head, said) = line.split_once(':')?;
    Some((head.split_whitespace().last()?, said.trim()))
}

fn join(said: &mut String, more: &str) {
    if !said.is_empty() {
        said.push(' ');
    }
    said.push_str(more);
}

fn indent(line: &str) -> usize {
    if line.trim().is_empty() { 0 } else { line.len() - line.trim_start().len() }
}

/// The lines without the indentation that all but the first have in common.
fn dedent(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(|line| line.replace('\t', "    ")).collect();
    let margin = lines
        .iter()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent(line))
        .min()
        .unwrap_or(0);
    let cut = |(at, line): (usize, &String)| match at {
        0 => line.trim_start().to_owned(),
        _ => line.get(margin..).unwrap_or_default().to_owned(),
    };
    lines.iter().enumerate().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_styles_say_the_same() {
        let google = "Adds.\n\n    More.\n\n    Args:\n        a (int): the first\n            number\n        b: the second\n\n    Returns:\n        int: the sum\n    ";
        let numpy = "Adds.\n\n    More.\n\n    Parameters\n    ----------\n    a : int\n        the first\n        number\n    b\n        the second\n\n    Returns\n    -------\n    int\n        the sum\n    ";
        let rest = "Adds.\n\n    More.\n\n    :param int a: the first\n        number\n    :param b: the second\n    :returns: the sum\n    ";
        let expected = Docstring {
            summary: "Adds.\n\nMore.".into(),
            parameters: [("a", "the first number"), ("b", "the second")]
                .map(|(name, said)| (name.to_owned(), said.to_owned()))
                .into(),
        };
        for text in [google, numpy, rest] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_docstring_without_sections_is_all_summary() {
        assert_eq!(read("One line.").summary, "One line.");
        assert_eq!(read("Takes a: b\n    and more").summary, "Takes a: b\nand more");
        assert_eq!(read("").summary, "");
        assert_eq!(read("Args:").parameters, BTreeMap::new());
    }
}
