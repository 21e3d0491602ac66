//! Filters that take nothing of what a server offers.

use super::McpSelection;
use super::filter::fits;
use super::status::Lists;
use std::fmt;
use std::sync::Arc;

/// Something that servers offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpOffer {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Prompts.
    Prompts,
}

impl McpOffer {
    const fn one(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::Prompts => "prompt",
        }
    }
}

/// A pattern that matches nothing of what a server offers. Its text says so in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpUnmatched {
    /// Whose offer it is.
    pub server: Arc<str>,
    /// What it was held against.
    pub offer: McpOffer,
    /// The pattern, as it was written.
    pub pattern: String,
    /// How many there are, none of which it matches.
    pub of: usize,
    /// The name that may have been meant.
    pub nearest: Option<String>,
}

impl fmt::Display for McpUnmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, offer, pattern, of, nearest } = self;
        let one = offer.one();
        match of {
            0 => write!(f, "`{pattern}` matches nothing: `{server}` has no {one}s")?,
            1 => write!(f, "`{pattern}` does not match the one {one} of `{server}`")?,
            of => write!(f, "`{pattern}` matches none of the {of} {one}s of `{server}`")?,
        }
        match nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// The patterns of a selection that match nothing. None while it is not known what there is.
pub(super) fn unmatched(wanted: &McpSelection, lists: &Lists) -> Vec<McpUnmatched> {
    let mut found = Vec::new();
    if !lists.is_known {
        return found;
    }
    let tools: Vec<&str> = lists.tools.iter().map(|it| &*it.name).collect();
    let resources: Vec<&str> = lists.resources.iter().map(|it| &*it.uri).collect();
    let prompts: Vec<&str> = lists.prompts.iter().map(|it| &*it.name).collect();
    let mut hold = |patterns: &Option<Vec<String>>, offer: McpOffer, names: &[&str]| {
        for pattern in patterns.iter().flatten() {
            if !names.iter().any(|name| fits(pattern, name)) {
                found.push(McpUnmatched {
                    server: wanted.server.clone(),
                    offer,
                    pattern: pattern.clone(),
                    of: names.len(),
                    nearest: nearest(pattern, names).map(str::to_owned),
                });
            }
        }
    };
    hold(&wanted.tools, McpOffer::Tools, &tools);
    // A server need not list what it can be asked for, and a list that failed is empty too.
    if !resources.is_empty() {
        hold(&wanted.resources, McpOffer::Resources, &resources);
    }
    if !prompts.is_empty() {
        hold(&wanted.prompts, McpOffer::Prompts, &prompts);
    }
    found
}

/// More of a name is not compared.
const LONGEST: usize = 200;

/// The name that a pattern is most likely a slip for.
fn nearest<'a>(pattern: &str, names: &[&'a str]) -> Option<&'a str> {
    let may = pattern.chars().count() / 3;
    let compared = names.iter().filter(|name| name.len() <= LONGEST && pattern.len() <= LONGEST);
    let near = compared.map(|name| (distance(pattern, name), *name));
    near.filter(|(distance, _)| *distance <= may).min_by_key(|it| it.0).map(|it| it.1)
}

/// How many letters to add, drop or change to get from one to the other. Case does not count.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().map(|it| it.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().map(|it| it.to_ascii_lowercase()).enumerate() {
        let mut across = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = across + usize::from(from != *to);
            across = row[j + 1];
            row[j + 1] = change.min(across + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::McpPrompt;
    use crate::mcp::status::ToolFacts;
    use tenure_core::tool::Effect;

    fn lists(tools: &[&str], prompts: &[&str]) -> Lists {
        let tool = |name: &&str| ToolFacts {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: serde_json::json!({}),
            effect: Effect::AtMostOnce,
        };
        let prompt = |name: &&str| McpPrompt {
            server: "web".into(),
            name: (*name).to_owned(),
            description: None,
            arguments: Vec::new(),
        };
        Lists {
            is_known: true,
            tools: tools.iter().map(tool).collect(),
            prompts: prompts.iter().map(prompt).collect(),
            resources: Arc::default(),
        }
    }

    fn said(wanted: &McpSelection, lists: &Lists) -> Vec<String> {
        unmatched(wanted, lists).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_named_with_what_may_be_meant() {
        let all = lists(&["echo", "fetch"], &["review"]);
        let mut wanted = McpSelection::all("web").tools(["eccho", "f*", "Echo", "zebra"]);
        wanted.prompts = Some(vec!["reviews".into()]);
        wanted.resources = Some(vec!["docs://*".into()]);
        assert_eq!(
            said(&wanted, &all),
            [
                "`eccho` matches none of the 2 tools of `web`; did you mean `echo`?",
                "`Echo` matches none of the 2 tools of `web`; did you mean `echo`?",
                "`zebra` matches none of the 2 tools of `web`",
                "`reviews` does not match the one prompt of `web`; did you mean `review`?",
            ]
        );
        let nothing = said(&wanted, &lists(&[], &[]));
        assert_eq!(nothing[0], "`eccho` matches nothing: `web` has no tools");
        assert_eq!(said(&McpSelection::all("web"), &all), [""; 0]);
        assert_eq!(said(&wanted, &Lists::default()), [""; 0], "nobody knows what there is");
    }

    #[test]
    fn the_distance_counts_edits() {
        for (a, b, expected) in
            [("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3), ("Same", "same", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
