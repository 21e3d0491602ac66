//! Markdown without its marks.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// The text of Markdown: what a person would read out of it.
pub(super) fn plain(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut text = Text::default();
    for event in Parser::new_ext(markdown, options) {
        text.take(event);
    }
    text.out.trim_end().to_owned()
}

#[derive(Default)]
struct Text {
    out: String,
    /// The line breaks that are due before anything else is written.
    due: usize,
    /// The number of the next item of each list that is open, if its items have numbers.
    lists: Vec<Option<u64>>,
    /// What the item that has just begun is marked with.
    marker: Option<String>,
    /// Where the links that are open go to, and where their texts begin.
    links: Vec<(String, usize)>,
    /// Whether a row has cells already.
    in_row: bool,
}

impl Text {
    fn owe(&mut self, breaks: usize) {
        self.due = self.due.max(breaks);
    }

    /// Begins a block of its own; the first one of an item stays on its line.
    fn block(&mut self) {
        if self.marker.is_none() {
            self.owe(2);
        }
    }

    fn write(&mut self, text: &str) {
        if self.due > 0 || self.out.is_empty() {
            if !self.out.is_empty() {
                self.out.extend(std::iter::repeat_n('\n', self.due));
            }
            self.due = 0;
            let depth = self.lists.len() - usize::from(self.marker.is_some());
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
        if let Some(marker) = self.marker.take() {
            self.out.push_str(&marker);
        }
        self.out.push_str(text);
    }

    fn lines(&mut self, text: &str) {
        for (at, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            if at > 0 {
                // More than one in a row is meant.
                self.due += 1;
            }
            if !line.is_empty() {
                self.write(line);
            }
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.lines_of(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.write(&text);
            }
            Event::SoftBreak | Event::HardBreak => self.owe(1),
            Event::InlineHtml(html) if html.to_ascii_lowercase().starts_with("<br") => self.owe(1),
            Event::Html(_) | Event::InlineHtml(_) => {}
            Event::Rule => self.owe(2),
            Event::TaskListMarker(done) => self.write(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.write(&format!("[{name}]")),
        }
    }

    fn lines_of(&mut self, text: &str) {
        match text.contains('\n') {
            true => {
                self.lines(text);
                if text.ends_with('\n') {
                    self.due += 1;
                }
            }
            false => self.write(text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::BlockQuote(_) => {
                self.block();
            }
            Tag::Table(_) => self.block(),
            Tag::List(first) => {
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => {
                self.owe(1);
                self.marker = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number += 1;
                        marker
                    }
                    _ => "- ".to_owned(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                self.owe(1);
                self.in_row = false;
            }
            Tag::TableCell => {
                if self.in_row {
                    self.write("\t");
                }
                self.in_row = true;
            }
            Tag::Link { link_type, dest_url, .. } => {
                // The text of such a link is where it goes.
                let is_bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
                let url = if is_bare { String::new() } else { dest_url.into_string() };
                self.links.push((url, self.out.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.out.len()))
            }
            Tag::FootnoteDefinition(name) => {
                self.block();
                self.write(&format!("[{name}] "));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::BlockQuote(_)
            | TagEnd::Table
            | TagEnd::FootnoteDefinition => {
                self.due = 0;
                self.owe(2);
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => {
                if self.marker.is_some() {
                    self.write("");
                }
                self.owe(1);
            }
            TagEnd::Link | TagEnd::Image => {
                let Some((url, from)) = self.links.pop() else { return };
                let said = self.out.get(from..).unwrap_or_default().trim().to_owned();
                match (said.is_empty(), url.is_empty() || said == url) {
                    (true, false) => self.write(&url),
                    (false, false) => self.write(&format!(" ({url})")),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;
    use proptest::prelude::*;

    #[test]
    fn every_mark_goes_and_every_word_stays() {
        for (markdown, expected) in [
            ("# A *big* title\n\ntext", "A big title\n\ntext"),
            ("Title\n=====\ntext", "Title\n\ntext"),
            ("**bold**, _so_, ***both***, ~~gone~~", "bold, so, both, gone"),
            ("snake_case and 2 * 3 * 4", "snake_case and 2 * 3 * 4"),
            (r"\*not\* emphasis", "*not* emphasis"),
            ("[a link](https://x.test/a_b)", "a link (https://x.test/a_b)"),
            ("<https://x.test>", "https://x.test"),
            ("[one][r]\n\n[r]: https://x.test", "one (https://x.test)"),
            ("![a cat](cat.png)", "a cat (cat.png)"),
            ("use `a*b*c`", "use a*b*c"),
            ("- a\n- b\n  - c\n  - d\n- e", "- a\n- b\n  - c\n  - d\n- e"),
            ("3. a\n4. b", "3. a\n4. b"),
            ("- [x] done\n- [ ] open", "- [x] done\n- [ ] open"),
            ("> quoted\n> twice", "quoted\ntwice"),
            ("a\n\n---\n\nb", "a\n\nb"),
            ("```rust\nfn a() {\n\n    b\n}\n```\nend", "fn a() {\n\n    b\n}\n\nend"),
            ("```\nnever *closed*", "never *closed*"),
            ("| a | b |\n|---|---|\n| 1 | **2** |", "a\tb\n1\t2"),
            ("one<br>two <b>three</b>", "one\ntwo three"),
            ("&lt;tag&gt; &amp;", "<tag> &"),
            ("", ""),
        ] {
            assert_eq!(plain(markdown), expected, "{markdown}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_stay_as_they_are(words in "[a-z]{1,8}( [a-z]{1,8}){0,5}(\n\n[a-z]{1,8}){0,3}") {
            prop_assert_eq!(plain(&words), words);
        }

        #[test]
        fn nothing_makes_it_panic(text in "[-#*_`>|\\[\\]()!<a \\n0-9.~&;\\\\]{0,80}") {
            let _ = plain(&text);
        }
    }
}
