//! What somebody meant who wrote something else.

use crate::limit::MAX_SUGGESTED;

/// The candidate that `word` is most likely a slip for.
///
/// Two or three wrong letters count as a slip, and so does another first word: `after_tool_call`
/// and `on_tool` both mean `wrap_tool_call`.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A text of this length is no typing mistake, and the cost grows with both.
    let fits = |word: &str| word.len() <= MAX_SUGGESTED;
    let candidates = candidates.into_iter().filter(|candidate| fits(word) && fits(candidate));
    let slips = word.chars().count() / 3;
    let is_near = |candidate: &&str| {
        candidate.chars().count().abs_diff(word.chars().count()) <= slips
            || same_subject(word, candidate)
    };
    candidates
        .filter(is_near)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= slips || same_subject(word, candidate))
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

/// How many letters to add, drop, change or swap with their neighbour to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
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
            ("modle", "model", 1),
            ("wehn", "when", 1),
            ("ca", "abc", 3),
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
