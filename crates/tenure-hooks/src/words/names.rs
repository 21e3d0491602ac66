//! Names of tools with wildcards.

/// Whether a name fits a pattern, in which `*` stands for any text and `?` for one letter.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut here) = (0, 0);
    // Where the last `*` was, and how far it reached.
    let mut star: Option<(usize, usize)> = None;
    while here < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[here] => {
                at += 1;
                here += 1;
            }
            _ => match star {
                Some((place, reached)) => {
                    star = Some((place, reached + 1));
                    (at, here) = (place + 1, reached + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, is_it) in [
            ("*", "anything", true),
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("delete_*", "delete_user", true),
            ("delete_*", "undelete_user", false),
            ("*_user", "delete_user", true),
            ("a*b*c", "a--b--b-c", true),
            ("a*b*c", "a--b--b-", false),
            ("gr?y", "grey", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, name), is_it, "{pattern} {name}");
        }
    }
}
