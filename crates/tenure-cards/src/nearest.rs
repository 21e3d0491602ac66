//! What somebody meant who wrote something else.

/// The candidate that `word` is most likely a slip for.
///
/// Two or three wrong letters count as a slip, and so does another first word: `after_tool_call`
/// and `on_tool` both mean `wrap_tool_call`.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= word.chars().count() / 3 || same_subject(word, candidate)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether two names differ in their first word only, or in how much follows.
fn same_subject(a: &str, b: &str) -> bool {
    let (Some((_, a)), Some((_, b))) = (a.split_once('_'), b.split_once('_')) else {
        return false;
    };
    let extends = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    !a.is_empty() && !b.is_empty() && (extends(a, b) || extends(b, a))
}

/// How many letters to add, drop or change to get from one to the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "", 2),
            ("kitten", "sitting", 3),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let points =
            ["on_start", "on_shutdown", "before_model", "wrap_model_call", "wrap_tool_call"];
        for (word, expected) in [
            ("on_strat", Some("on_start")),
            ("onstart", Some("on_start")),
            ("on_shut_down", Some("on_shutdown")),
            ("before_models", Some("before_model")),
            ("before_model_call", Some("before_model")),
            ("wrap_model", Some("wrap_model_call")),
            ("after_tool_call", Some("wrap_tool_call")),
            ("on_tool", Some("wrap_tool_call")),
            ("before_start", Some("on_start")),
            ("log", None),
            ("on_", None),
            ("format_line", None),
        ] {
            assert_eq!(nearest(word, points), expected, "{word}");
        }
    }
}
