//! What expressions and templates may look at, as far as their text tells, so that no more than that
//! is made for them.

use crate::words::civil;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The parts of `now`, and for how many seconds each stays as it is.
const CLOCK: [(&str, u64); 11] = [
    ("iso", 1),
    ("date", DAY),
    ("time", 1),
    ("year", DAY),
    ("month", DAY),
    ("day", DAY),
    ("hour", HOUR),
    ("minute", MINUTE),
    ("second", 1),
    ("weekday", DAY),
    ("unix", 1),
];

/// A time in UTC, as seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(u64);

impl From<SystemTime> for Clock {
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }
}

impl Clock {
    /// A part of it, by name.
    fn tell(self, part: &str) -> Value {
        let Self(unix) = self;
        let days = unix / DAY;
        let (year, month, day) = civil(i64::try_from(days).unwrap_or_default());
        let (hour, minute, second) = (unix % DAY / HOUR, unix % HOUR / MINUTE, unix % MINUTE);
        match part {
            "iso" => {
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z").into()
            }
            "date" => format!("{year:04}-{month:02}-{day:02}").into(),
            "time" => format!("{hour:02}:{minute:02}:{second:02}").into(),
            "year" => year.into(),
            "month" => month.into(),
            "day" => day.into(),
            "hour" => hour.into(),
            "minute" => minute.into(),
            "second" => second.into(),
            "weekday" => {
                let first = ["Thursday", "Friday", "Saturday", "Sunday"];
                let week = [&first[..], &["Monday", "Tuesday", "Wednesday"]].concat();
                week[(days % 7) as usize].into()
            }
            _ => unix.into(),
        }
    }
}

/// Never less than what an expression or a template looks at.
#[derive(Debug)]
pub(super) struct Reads {
    names: Vec<&'static str>,
    /// Which parts of `now`.
    now: Vec<&'static str>,
    /// For how many seconds those stay as they are.
    period: u64,
}

impl Reads {
    /// What an expression looks at, of what it gets to see.
    pub(super) fn of_expression(
        text: &str,
        undeclared: &HashSet<String>,
        seen: &[&'static str],
    ) -> Self {
        Self::of(&[text], undeclared, seen)
    }

    /// The same of a template.
    pub(super) fn of_template(
        text: &str,
        undeclared: &HashSet<String>,
        seen: &[&'static str],
    ) -> Self {
        Self::of(&code(text), undeclared, seen)
    }

    /// Goes by the words and not only by the variables that the evaluator finds: it overlooks some,
    /// as in `input[:9]`.
    fn of(code: &[&str], undeclared: &HashSet<String>, seen: &[&'static str]) -> Self {
        let all: Vec<_> = code.iter().flat_map(|code| words(code)).collect();
        let is_read =
            |name: &str| undeclared.contains(name) || all.iter().any(|(word, _)| *word == name);
        let names: Vec<_> = seen.iter().copied().filter(|name| is_read(name)).collect();
        let mut now = Vec::new();
        if names.contains(&"now") {
            let rests = all.iter().filter(|(word, _)| *word == "now").map(|(_, rest)| *rest);
            now = match rests.map(part).collect::<Option<Vec<_>>>() {
                Some(parts) if !parts.is_empty() => parts,
                _ => CLOCK.iter().map(|(name, _)| *name).collect(),
            };
            now.sort_unstable();
            now.dedup();
        }
        let lasting = CLOCK.iter().filter(|(name, _)| now.contains(name)).map(|(_, it)| *it);
        Self { names, period: lasting.min().unwrap_or(1), now }
    }

    /// What is there of it now. The time is told only as closely as anything goes by it, so two
    /// sights that are equal are so to whoever looks.
    pub(super) fn sight(
        &self,
        look: impl Fn(&str) -> Option<Value>,
    ) -> (Vec<Option<Value>>, Clock) {
        let mut clock = Clock(0);
        let look = |name: &&'static str| match *name {
            "now" => {
                clock = SystemTime::now().into();
                Some((clock.0 / self.period).into())
            }
            name => look(name),
        };
        let sight = self.names.iter().map(look).collect();
        (sight, clock)
    }

    /// A sight as an expression or a template gets to see it.
    pub(super) fn values(&self, sight: Vec<Option<Value>>, clock: Clock) -> minijinja::Value {
        let mut values = Map::new();
        for (name, value) in self.names.iter().zip(sight) {
            let value = match *name {
                "now" => Some(self.now.iter().map(|it| (*it, clock.tell(it))).collect()),
                _ => value,
            };
            if let Some(value) = value {
                values.insert((*name).to_owned(), value);
            }
        }
        minijinja::Value::from(minijinja::value::Serde(values))
    }
}

/// The parts of a template that may be code. It is all that follows where that is hard to tell: what
/// is in quotes, or between braces, can look like an end.
fn code(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(start) = opening(rest) {
        let within = &rest[start + 2..];
        let close = match &rest[start..start + 2] {
            "{{" => "}}",
            "{%" => "%}",
            _ => "#}",
        };
        let end = within.find(close).filter(|end| !within[..*end].contains(['{', '}', '"', '\'']));
        let Some(end) = end else {
            parts.push(within);
            break;
        };
        if close != "#}" {
            parts.push(&within[..end]);
        }
        rest = &within[end + 2..];
    }
    parts
}

/// The first place where code, or a comment, begins.
fn opening(text: &str) -> Option<usize> {
    let opens = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    text.match_indices('{').map(|(at, _)| at).find(opens)
}

/// The part of `now` that is named right behind it.
fn part(rest: &str) -> Option<&'static str> {
    let rest = rest.strip_prefix('.')?;
    let (word, after) = words(rest).next()?;
    let is_next = word.len() + after.len() == rest.len();
    CLOCK.iter().find(|(name, _)| is_next && *name == word).map(|(name, _)| *name)
}

/// The words of a code, each with all that follows it.
fn words(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code;
    std::iter::from_fn(move || {
        // A number may end where a name begins.
        let start = rest.find(|c: char| is_word(c) && !c.is_numeric())?;
        let from = &rest[start..];
        let end = from.find(|c: char| !is_word(c)).unwrap_or(from.len());
        rest = &from[end..];
        Some((&from[..end], rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SEEN: &[&str] = &["input", "now", "state", "user"];

    #[test]
    fn a_time_is_told_in_utc() {
        let at = |secs, part| Clock::from(UNIX_EPOCH + Duration::from_secs(secs)).tell(part);
        assert_eq!(at(0, "iso"), "1970-01-01T00:00:00Z");
        assert_eq!(at(0, "weekday"), "Thursday");
        assert_eq!(at(951_782_400, "date"), "2000-02-29");
        assert_eq!(at(951_868_799, "iso"), "2000-02-29T23:59:59Z");
        assert_eq!(at(951_868_799, "time"), "23:59:59");
        assert_eq!(at(1_709_164_800, "date"), "2024-02-29");
        assert_eq!(at(1_709_251_200, "date"), "2024-03-01");
        assert_eq!(at(4_102_444_799, "iso"), "2099-12-31T23:59:59Z");
        assert_eq!(at(1_794_830_400, "weekday"), "Monday");
        assert_eq!(at(1_794_830_400, "unix"), 1_794_830_400);
        let parts = ["year", "month", "day", "hour", "minute", "second"];
        assert_eq!(parts.map(|part| at(951_868_799, part)), [2000, 2, 29, 23, 59, 59]);
    }

    #[test]
    fn a_part_of_the_time_stays_as_long_as_is_said() {
        for (part, period) in CLOCK {
            for begin in [0, 951_782_400, 1_709_164_800] {
                let first = Clock(begin).tell(part);
                assert_eq!(Clock(begin + period - 1).tell(part), first, "{part}");
                assert!(period == DAY || Clock(begin + period).tell(part) != first, "{part}");
            }
        }
    }

    fn template(text: &str) -> Reads {
        Reads::of_template(text, &HashSet::new(), SEEN)
    }

    #[test]
    fn only_what_is_read_counts() {
        for (text, names, period) in [
            ("The user's input now.", &[][..], 1),
            ("Now: {{ now.date }}, now {{ now.weekday }}. {# user #} input", &["now"], DAY),
            ("{{ now.date }} {{ now.hour }}", &["now"], HOUR),
            ("{{ now }} {{ now.date }}", &["now"], 1),
            ("{{ now['date'] }}", &["now"], 1),
            ("{{ now.date }}{% set n = now %}{{ n.second }}", &["now"], 1),
            ("{{ now.dates }}", &["now"], 1),
            ("{{ now. date }}", &["now"], 1),
            ("{{ input[:9] }}", &["input"], 1),
            ("{% filter replace('a', user) %}a{% endfilter %}", &["user"], 1),
            ("{{ '}} {{' ~ user }} input", &["input", "user"], 1),
            ("{{ {'a': {}} ~ user }}", &["user"], 1),
            ("{% raw %}{{ {% endraw %}{{ user }}", &["user"], 1),
            ("{% if 1and state %}{% endif %}", &["state"], 1),
        ] {
            let reads = template(text);
            assert_eq!((&*reads.names, reads.period), (names, period), "{text}");
        }
    }

    #[test]
    fn two_sights_are_equal_if_nothing_that_is_read_has_changed() {
        let reads = template("{{ input }} {{ now.year }}");
        let sight = |input: Value| reads.sight(|name| (name == "input").then(|| input.clone())).0;
        assert_eq!(sight("a".into()), sight("a".into()));
        assert_ne!(sight("a".into()), sight("b".into()));
        assert_ne!(sight(1.into()), sight(1.0.into()));
    }
}
