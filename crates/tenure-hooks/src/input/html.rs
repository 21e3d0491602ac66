//! Text without the tags of HTML.

/// How often tags are taken out of what is left: taking one out may put another together.
const PASSES: usize = 8;

/// The text without tags, comments, scripts and styles. What looks like no tag stays: `a < b`.
pub(super) fn stripped(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..PASSES {
        let next = once(&text);
        if next == text {
            return text;
        }
        text = next;
    }
    // Nobody writes that by accident.
    text.replace('<', "")
}

fn once(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // What was not found behind here is not found further on either.
    let mut ends = [true; 4];
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = end_of(tag, &mut ends) else {
            out.push('<');
            rest = &tag[1..];
            continue;
        };
        // Words on both sides of a break do not become one.
        if breaks(tag) && !out.is_empty() && !out.ends_with(char::is_whitespace) {
            out.push('\n');
        }
        rest = &tag[end..];
    }
    out.push_str(rest);
    out
}

/// Where the tag ends that a text begins with, if it begins with one.
fn end_of(tag: &str, ends: &mut [bool; 4]) -> Option<usize> {
    let first = tag[1..].chars().next()?;
    if !(first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?')) {
        return None;
    }
    let mut find = |which: usize, end: &str| {
        let found = if ends[which] { find_ignoring_case(tag, end) } else { None };
        ends[which] = found.is_some();
        found
    };
    if tag.starts_with("<!--")
        && let Some(at) = find(0, "-->")
    {
        return Some(at + 3);
    }
    for (which, name) in [(1, "script"), (2, "style")] {
        if is_called(tag, name)
            && let Some(at) = find(which, &format!("</{name}"))
        {
            let close = tag[at..].find('>').map_or(tag.len(), |end| at + end + 1);
            return Some(close);
        }
    }
    find(3, ">").map(|at| at + 1)
}

fn is_called(tag: &str, name: &str) -> bool {
    let rest = tag.as_bytes().get(1..).unwrap_or_default();
    rest.len() >= name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
        && rest.get(name.len()).is_none_or(|next| !next.is_ascii_alphanumeric())
}

fn find_ignoring_case(text: &str, what: &str) -> Option<usize> {
    let what = what.as_bytes();
    text.as_bytes().windows(what.len()).position(|it| it.eq_ignore_ascii_case(what))
}

fn breaks(tag: &str) -> bool {
    ["br", "p", "/p", "div", "/div", "li", "/li", "tr", "/tr", "h1", "/h1", "h2", "/h2"]
        .iter()
        .any(|name| is_called(tag, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_and_text_stays() {
        assert_eq!(stripped("<b>bold</b> and <i class=\"x\">not</i>"), "bold and not");
        assert_eq!(stripped("one<br>two<p>three</p>"), "one\ntwo\nthree\n");
        assert_eq!(stripped("a < b and c > d, i<3"), "a < b and c > d, i<3");
        assert_eq!(stripped("x<script>alert(1)</script>y<STYLE>p{}</style >z"), "xyz");
        assert_eq!(stripped("x<!-- a > b -->y"), "xy");
    }

    #[test]
    fn tags_that_taking_tags_out_would_make_go_too() {
        assert_eq!(stripped("<<b>script>alert(1)<<b>/script>"), "alert(1)".replace("alert(1)", ""));
        let nested = format!("{}script>", "<".repeat(40) + &"b>".repeat(39));
        assert!(!stripped(&nested).contains("<script"), "{}", stripped(&nested));
    }

    #[test]
    fn much_of_nothing_is_quick() {
        let many = "<!--<a ".repeat(50_000);
        let began = std::time::Instant::now();
        stripped(&many);
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
