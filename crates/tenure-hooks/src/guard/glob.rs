//! Names and texts by pattern: `read_*`, `data/**`.

use regex_automata::meta::Regex;

/// A pattern. `?` is one character, `*` any number of them, and everything else stands for itself.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Equal,
    Any,
    /// What it begins with is compared first, since that is what patterns of names differ in.
    Matches {
        head: String,
        regex: Regex,
    },
}

impl Glob {
    /// A pattern of names, where `*` passes over everything.
    pub(crate) fn of_names(text: &str) -> Result<Self, String> {
        Self::new(text, ".", ".*")
    }

    /// A pattern of texts that may be paths: `*` stops at a `/`, and `**` does not.
    pub(crate) fn of_texts(text: &str) -> Result<Self, String> {
        Self::new(text, "[^/]", "[^/]*")
    }

    fn new(text: &str, one: &str, many: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the pattern is empty; `*` stands for everything".to_owned());
        }
        let how = match text {
            "*" if many == ".*" => How::Any,
            "**" => How::Any,
            _ if !text.contains(['*', '?']) => How::Equal,
            _ => {
                let regex = Regex::new(&regex_of(text, one, many))
                    .map_err(|error| format!("`{text}` is too large: {error}"))?;
                let head = text.split(['*', '?']).next().unwrap_or_default().to_owned();
                How::Matches { head, regex }
            }
        };
        Ok(Self { text: text.to_owned(), how })
    }

    /// Whether it is about this text, all of it.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match &self.how {
            How::Equal => self.text == text,
            How::Any => true,
            How::Matches { head, regex } => text.starts_with(head) && regex.is_match(text),
        }
    }

    /// The pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

fn regex_of(text: &str, one: &str, many: &str) -> String {
    let mut regex = String::from(r"(?s)\A");
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' if rest.next_if_eq(&'*').is_some() => regex.push_str(".*"),
            '*' => regex.push_str(many),
            '?' => regex.push_str(one),
            other if other.is_alphanumeric() || other == '_' => regex.push(other),
            other => regex.push_str(&format!("\\x{{{:x}}}", u32::from(other))),
        }
    }
    regex.push_str(r"\z");
    regex
}

/// Which tools a hook is about: those of its patterns, save the excepted ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    only: Vec<Glob>,
    except: Vec<Glob>,
    broken: Option<String>,
}

impl Tools {
    /// Adds tools that it is about. Without any it is about all of them.
    pub(crate) fn only(&mut self, tool: &str) {
        match Glob::of_names(tool) {
            Ok(glob) => self.only.push(glob),
            Err(why) => self.broken = Some(why),
        }
    }

    /// Adds tools that it is not about, whatever else is said.
    pub(crate) fn except(&mut self, tool: &str) {
        match Glob::of_names(tool) {
            Ok(glob) => self.except.push(glob),
            Err(why) => self.broken = Some(why),
        }
    }

    /// Whether it is about this tool. Patterns that cannot be read are about every tool: what uses
    /// this keeps tools from being called.
    pub(crate) fn concern(&self, tool: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool));
        self.broken.is_some() || (self.only.is_empty() || any(&self.only)) && !any(&self.except)
    }

    /// What is wrong with the patterns.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_whole_text_and_nothing_but_stars_and_question_marks_is_special() {
        let is = |glob: &str, text: &str| Glob::of_texts(glob).unwrap().matches(text);
        assert!(is("data/*.txt", "data/a.txt"));
        assert!(!is("data/*.txt", "data/b/a.txt"));
        assert!(!is("data/*.txt", "data/a.txt\n"));
        assert!(!is("data/*.txt", "x/data/a.txt"));
        assert!(!is("data/*.txt", "data/axtxt"));
        assert!(is("data/**", "data/b/a.txt"));
        assert!(is("a?c", "a\u{e9}c"));
        assert!(is("[a](b)*", "[a](b)c"));
        assert!(is("line*", "line\nbreak"));
        assert!(Glob::of_names("mcp_*").unwrap().matches("mcp_a/b"));
        assert!(Glob::of_names("").is_err());
    }

    #[test]
    fn tools_are_those_named_without_the_excepted_ones() {
        let mut tools = Tools::default();
        assert!(tools.concern("anything"));
        tools.except("read_*");
        assert!(tools.concern("write_file"));
        assert!(!tools.concern("read_file"));
        tools.only("*_file");
        assert!(!tools.concern("shell"));
        tools.only("");
        assert!(tools.concern("read_file"), "what cannot be read lets nothing through");
    }
}
