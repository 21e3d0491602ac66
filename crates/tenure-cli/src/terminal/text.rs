//! Text on its way to a terminal.
//!
//! Whatever a model, a hook, a card or a person's file says is foreign: it must not be able to move
//! the cursor, change colours or hide what is on the screen.

use std::time::Duration;
use tenure_cards::diagnostic::is_hidden;

/// Foreign text as one line: no control characters, no escape sequences, no line breaks.
pub(crate) fn clean_line(text: &str) -> String {
    let plain = anstream::adapter::strip_str(text).to_string();
    let mut shown = String::with_capacity(plain.len());
    for c in plain.trim_end_matches(['\n', '\r']).chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c => show(c, &mut shown),
        }
    }
    shown
}

/// Adds a character of foreign text. What only steers is left out; what could carry a text of its own is shown.
fn show(c: char, shown: &mut String) {
    if is_smuggled(c) {
        shown.extend(c.escape_default());
    } else if !is_hidden(c) {
        shown.push(c);
    }
}

/// Foreign text in full, on one line: what cannot be printed safely is escaped, so that nothing of
/// it is hidden. For whatever a person agrees to.
pub(crate) fn exact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Foreign text that keeps its lines and tabs, and nothing else that steers a terminal.
pub(crate) fn clean_block(text: &str) -> String {
    // The escape sequences are found line by line, so that an unfinished one ends with its line.
    let lines = text.split('\n').map(|line| {
        let plain = anstream::adapter::strip_str(line).to_string();
        let mut shown = String::with_capacity(plain.len());
        for c in plain.chars() {
            match c {
                '\t' => shown.push(c),
                c => show(c, &mut shown),
            }
        }
        shown
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether it is drawn as nothing, and no word of any language needs it: what is spelt with it is meant for machines.
fn is_smuggled(c: char) -> bool {
    let is_known = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    is_hidden(c) && !c.is_control() && !is_known
}

/// `text` in at most `width` columns, with an ellipsis where it was cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let Some(left) = room.checked_sub(cells(c)) else { break };
        room = left;
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// `text` in lines of at most `width` columns: broken between words where that is possible, and
/// where it has line breaks of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for whole in text.lines() {
        let mut line = String::new();
        let mut used = 0;
        for word in whole.split_whitespace() {
            let needed = columns_of(word);
            if used > 0 && used + 1 + needed <= width {
                line.push(' ');
                used += 1;
            } else if used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for c in word.chars() {
                let taken = cells(c);
                if used + taken > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(c);
                used += taken;
            }
        }
        lines.push(line);
    }
    lines
}

/// How many columns of a terminal the text takes, its colours left out.
pub(crate) fn columns_of(text: &str) -> usize {
    let count = |text: &str| text.chars().map(cells).sum();
    // Most lines have no colours, and looking for them takes longer than counting.
    if text.contains('\x1b') {
        count(&anstream::adapter::strip_str(text).to_string())
    } else {
        count(text)
    }
}

/// How many columns a character takes: two in the scripts of East Asia and for pictures, none where
/// it is drawn over the one before it.
fn cells(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// A duration as people read it: `58ms`, `1.24s`, `2m 03s`.
pub(crate) fn human(time: Duration) -> String {
    let millis = time.as_millis();
    match millis {
        0 if time.as_micros() > 0 => "<1ms".to_owned(),
        0..1000 => format!("{millis}ms"),
        1000..60_000 => format!("{:.2}s", time.as_secs_f64()),
        _ => format!("{}m {:02}s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

/// A time that goes on, so that it changes no more often than people read: `0.3s`, `12.4s`, `2m 03s`.
pub(crate) fn running(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1}s", time.as_millis() as f64 / 1e3),
        60..3600 => human(time),
        seconds => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A count as people read it: `18 233`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// A path as a shell takes it, for commands that people copy.
pub(crate) fn for_shell(path: &std::path::Path) -> String {
    let text = clean_line(&path.to_string_lossy());
    let plain = |c: char| c.is_alphanumeric() || "-_./=:+,@%~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// `1 hook`, `2 hooks`.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_counted_in_words_that_exist() {
        assert_eq!(plural(1, "model address"), "1 model address");
        assert_eq!(plural(2, "model address"), "2 model addresses");
        assert_eq!(plural(0, "card"), "0 cards");
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        let foreign = "a\x1b[31mred\x1b[0m\x1b]0;title\x07 b\rc\x08\x7f\u{9b}2J\u{202e}z\u{200b}\n";
        let shown = clean_line(foreign);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{200b}'), "{shown:?}");
        assert!(shown.starts_with("ared"), "{shown:?}");
    }

    #[test]
    fn what_is_agreed_to_is_shown_in_full() {
        let hidden = "sh -c 'true #\x1b]0;\nrm -rf . #\x07'\u{202e}";
        assert_eq!(exact(hidden), r"sh -c 'true #\u{1b}]0;\nrm -rf . #\u{7}'\u{202e}");
        assert_eq!(exact("grün 🙂"), "grün 🙂");
    }

    #[test]
    fn text_that_cannot_be_seen_is_shown() {
        // Tags spell ASCII, variation selectors spell bytes, and neither is drawn.
        let smuggled = "ls\u{e0041}\u{e007f}\u{e0101}\u{ad}\u{34f}\u{61c}\u{3164}\u{180e}\u{fffa}.";
        let expected =
            "ls\\u{e0041}\\u{e007f}\\u{e0101}\\u{ad}\\u{34f}\\u{61c}\\u{3164}\\u{180e}\\u{fffa}.";
        assert_eq!(exact(smuggled), expected);
        assert_eq!(clean_line(smuggled), expected);
        assert_eq!(clean_block(&format!("one\n{smuggled}")), format!("one\n{expected}"));
        // The one that makes a picture of a sign is part of many words of today.
        assert_eq!(exact("❤\u{fe0f}"), "❤\u{fe0f}");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(clean_block("one\n\ttwo\x1b[2J\n"), "one\n\ttwo\n");
    }

    #[test]
    fn text_that_is_too_long_says_so() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abcdef", 0), "");
        assert_eq!(fit("漢字かな", 8), "漢字かな");
        assert_eq!(fit("漢字かな", 6), "漢字…");
        assert_eq!(columns_of("\x1b[1me\u{301}🙂\x1b[0m"), 3);
    }

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(wrap("one two  three\nfour", 7), ["one two", "three", "four"]);
        assert_eq!(wrap("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(wrap("漢字かな", 5), ["漢字", "かな"]);
        assert_eq!(wrap("one\n\ntwo", 7), ["one", "", "two"]);
        assert_eq!(wrap("", 7), [""; 0]);
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_stumble() {
        let shown = |path: &str| for_shell(std::path::Path::new(path));
        assert_eq!(shown("agents/team"), "agents/team");
        assert_eq!(shown("my agents"), "'my agents'");
        assert_eq!(shown("it's"), "'it'\\''s'");
    }

    #[test]
    fn times_and_counts_are_short() {
        assert_eq!(human(Duration::from_micros(12)), "<1ms");
        assert_eq!(human(Duration::from_millis(58)), "58ms");
        assert_eq!(human(Duration::from_millis(1240)), "1.24s");
        assert_eq!(human(Duration::from_secs(123)), "2m 03s");
        assert_eq!(count(7), "7");
        assert_eq!(count(18_233), "18 233");
        assert_eq!(count(1_000_000), "1 000 000");
    }
}
