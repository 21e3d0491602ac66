//! Time limits that carry a unit.

use crate::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time limit: more than zero, and written with a unit.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::hook::Limit;
///
/// assert_eq!("1.5s".parse::<Limit>()?.duration(), Duration::from_millis(1500));
/// assert!("30".parse::<Limit>().is_err(), "a limit needs a unit");
/// assert!(Limit::new(Duration::ZERO).is_err());
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(Duration);

impl Limit {
    /// A limit of this length.
    pub fn new(duration: Duration) -> Result<Self, Error> {
        if duration.is_zero() {
            return Err(Error::invalid(
                "a limit must be more than zero; leave it out to take the default",
            ));
        }
        Ok(Self(duration))
    }

    /// A limit of so many seconds. Zero, negative and not-a-number are refused.
    pub fn seconds(seconds: f64) -> Result<Self, Error> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if !duration.is_zero() => Ok(Self(duration)),
            _ => Err(Error::invalid(format!(
                "a limit of {seconds} seconds is not possible; give a number more than zero"
            ))),
        }
    }

    /// How long it is.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Limit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => {
                return Err(Error::invalid(format!(
                    "the limit `{text}` has no unit; write for example `{text}s` or `{text}ms`"
                )));
            }
            other => {
                return Err(Error::invalid(format!(
                    "`{other}` is not a unit of time; use ms, s, m or h"
                )));
            }
        };
        let number: f64 = number.trim().parse().map_err(|_| {
            Error::invalid(format!("`{text}` is not a limit; write for example `30s` or `500ms`"))
        })?;
        Self::seconds(number * scale)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_needs_a_unit_and_must_be_more_than_zero() {
        for (text, expected) in [
            ("500ms", Ok(Duration::from_millis(500))),
            ("30s", Ok(Duration::from_secs(30))),
            ("2m", Ok(Duration::from_secs(120))),
            ("1h", Ok(Duration::from_secs(3600))),
            ("30", Err("no unit")),
            ("0s", Err("not possible")),
            ("-5s", Err("not possible")),
            ("5 parsecs", Err("not a unit")),
            ("s", Err("not a limit")),
        ] {
            match (text.parse::<Limit>(), expected) {
                (Ok(limit), Ok(duration)) => assert_eq!(limit.duration(), duration, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
