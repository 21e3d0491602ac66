//! Patterns as shells have them.

/// Whether nothing is filtered, or one of the patterns fits.
pub(super) fn passes(patterns: Option<&[String]>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
}

/// Whether a pattern fits the whole name: `*` is anything, `?` one character, `[a-z]` one of these
/// and `[!a-z]` one of the others.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut from) = (0, 0);
    // Where the last `*` was, and how much of the name it took.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match one(&pattern[at..], name[from]) {
            Some(length) => {
                at += length;
                from += 1;
            }
            None if pattern.get(at) == Some(&'*') => {
                star = Some((at, from));
                at += 1;
            }
            None => {
                let Some((back, taken)) = star else { return false };
                star = Some((back, taken + 1));
                at = back + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// How much of a pattern fits this one character.
fn one(pattern: &[char], it: char) -> Option<usize> {
    match pattern.first()? {
        '*' => None,
        '?' => Some(1),
        '[' => match set(pattern) {
            Some((length, has)) => has(it).then_some(length),
            // Without an end it stands for itself.
            None => (it == '[').then_some(1),
        },
        other => (*other == it).then_some(1),
    }
}

/// The set that a pattern begins with, and its length.
fn set(pattern: &[char]) -> Option<(usize, impl Fn(char) -> bool)> {
    let negated = pattern.get(1) == Some(&'!');
    let begin = if negated { 2 } else { 1 };
    // A bracket that comes first is one of the set.
    let end = begin + 1 + pattern.get(begin + 1..)?.iter().position(|it| *it == ']')?;
    let members = pattern[begin..end].to_vec();
    let has = move |it: char| {
        let mut at = 0;
        let mut found = false;
        while at < members.len() {
            if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
                found |= (members[at]..=members[at + 2]).contains(&it);
                at += 3;
            } else {
                found |= members[at] == it;
                at += 1;
            }
        }
        found != negated
    };
    Some((end + 1, has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_shells() {
        for (pattern, name, expected) in [
            ("add", "add", true),
            ("add", "addition", false),
            ("Add", "add", false),
            ("math*", "math_add", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("*a*b*c", "xxaxxbxxbxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("file:///*", "file:///etc/passwd", true),
            ("demo://resource/static/document/*.md", "demo://resource/static/document/a.md", true),
            ("get-?um", "get-sum", true),
            ("get-?um", "get-um", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} on {name}");
        }
        assert!(passes(None, "anything"));
        assert!(!passes(Some(&[]), "anything"));
        assert!(passes(Some(&["no".into(), "a*".into()]), "anything"));
    }
}
