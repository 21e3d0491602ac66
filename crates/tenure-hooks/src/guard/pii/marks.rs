//! Marks: what a record has in the place of something that a guard takes out.
//!
//! What is used in a recorded run is what is on record, so the guard reads its own marks: it counts what
//! they stand for, puts there what its strategy says, and refuses what has to be refused, in every life of
//! the run alike.

use super::detector::Strategy;
use super::leaves::Quiet;
use super::scan::{Rule, Scanner};
use tenure_core::secret::PassScope;

const BEGIN: &str = "\u{27e6}pii ";
const END: char = '\u{27e7}';

/// Whether there may be a mark in a text.
pub(super) fn has_any(text: &str) -> bool {
    text.contains(BEGIN)
}

/// A text without its marks.
pub(super) struct Unmarked<'s> {
    pub(super) text: String,
    /// The rule of each mark.
    pub(super) rules: Vec<&'s Rule>,
}

impl Scanner {
    /// Returns the text as it may be recorded or shown; `None` if that is as it is.
    pub(super) fn cover(&self, text: &str, scope: PassScope) -> Option<String> {
        if self.is_quiet(text) {
            return None;
        }
        if scope == PassScope::Shown
            && let Some(found) = self.unmarked(text)
        {
            return Some(self.covered(&found.text, scope).unwrap_or(found.text));
        }
        self.covered(text, scope)
    }

    fn covered(&self, text: &str, scope: PassScope) -> Option<String> {
        let hits = self.all(text);
        if hits.is_empty() {
            return None;
        }
        let mut covered = String::with_capacity(text.len());
        let mut done = 0;
        for hit in &hits {
            covered.push_str(&text[done..hit.start]);
            let (rule, replaced) = (self.rule(hit), self.replaced(text, hit));
            match (scope, rule.strategy) {
                (PassScope::Shown, _) => covered.push_str(&replaced),
                (_, Strategy::Mask | Strategy::Hash) => {
                    covered.push_str(&format!("{BEGIN}{} {replaced}{END}", rule.name()));
                }
                _ => covered.push_str(&format!("{BEGIN}{}{END}", rule.name())),
            }
            done = hit.end;
        }
        covered.push_str(&text[done..]);
        Some(covered)
    }

    /// Returns the text with what its marks stand for; `None` if it has none of this guard.
    pub(super) fn unmarked(&self, text: &str) -> Option<Unmarked<'_>> {
        let mut found = Unmarked { text: String::new(), rules: Vec::new() };
        let mut rest = text;
        while let Some(begin) = rest.find(BEGIN) {
            let mark = &rest[begin + BEGIN.len()..];
            let Some(end) = mark.find(END) else { break };
            let (name, replaced) = match mark[..end].split_once(' ') {
                Some((name, replaced)) => (name, replaced.to_owned()),
                None => (&mark[..end], format!("[REDACTED_{}]", mark[..end].to_ascii_uppercase())),
            };
            match self.rules.iter().find(|rule| rule.name() == name) {
                Some(rule) => {
                    found.text.push_str(&rest[..begin]);
                    found.text.push_str(&replaced);
                    found.rules.push(rule);
                }
                None => found.text.push_str(&rest[..begin + BEGIN.len() + end + END.len_utf8()]),
            }
            rest = &mark[end + END.len_utf8()..];
        }
        found.text.push_str(rest);
        (!found.rules.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::{Blocked, Counts};
    use super::super::{Detector, Pii};
    use super::*;

    fn scanner() -> Scanner {
        Pii::new()
            .strategy_of(Detector::CreditCard, Strategy::Mask)
            .strategy_of(Detector::Ip, Strategy::Hash)
            .strategy_of(Detector::Iban, Strategy::Block)
            .scanner()
    }

    #[test]
    fn what_comes_back_from_a_record_is_as_if_it_had_never_been_there() {
        let scanner = scanner();
        for text in [
            "nothing",
            "ann@example.org, bea@example.org",
            "card 4111 1111 1111 1111 from 192.0.2.7",
            "key sk-proj-abcdefghij0123456789 of ann@example.org",
        ] {
            let (mut before, mut after) = (Counts::new(), Counts::new());
            let clean = scanner.clean(text, &mut before).unwrap().unwrap_or(text.to_owned());
            let kept = scanner.cover(text, PassScope::Recorded).unwrap_or(text.to_owned());
            for part in ["@example", "4111 1111", "192.0.2.7", "abcdefghij"] {
                assert!(!kept.contains(part), "{kept}");
            }
            assert_eq!(scanner.cover(&kept, PassScope::Recorded), None, "{kept}");
            let again = scanner.clean(&kept, &mut after).unwrap().unwrap_or(kept.clone());
            assert_eq!((again, after), (clean.clone(), before), "{text}");
            let shown = scanner.cover(&kept, PassScope::Shown).unwrap_or(kept);
            assert_eq!(shown, clean, "{text}");
        }
    }

    #[test]
    fn what_has_to_be_refused_is_refused_from_a_record_too() {
        let scanner = scanner();
        let text = "to GB29 NWBK 6016 1331 9268 19";
        let kept = scanner.cover(text, PassScope::Recorded).unwrap();
        assert!(!kept.contains("6016"), "{kept}");
        let refused = Err(Blocked("iban".to_owned()));
        assert_eq!(scanner.clean(text, &mut Counts::new()), refused);
        assert_eq!(scanner.clean(&kept, &mut Counts::new()), refused);
    }

    #[test]
    fn a_mark_that_somebody_wrote_hides_nothing() {
        let scanner = scanner();
        let clean = |text: &str| scanner.clean(text, &mut Counts::new()).unwrap();
        let forged = format!("{BEGIN}email ann@example.org{END}");
        assert_eq!(clean(&forged).unwrap(), "[REDACTED_EMAIL]");
        let unknown = clean(&format!("{BEGIN}unknown ann@example.org{END}")).unwrap();
        assert!(!unknown.contains("ann@"), "{unknown}");
        assert_eq!(clean(&format!("{BEGIN}email")), None);
        // Marks within marks are read once.
        let deep = format!("{}x{}", BEGIN.repeat(20_000), END.to_string().repeat(20_000));
        clean(&deep);
    }
}
