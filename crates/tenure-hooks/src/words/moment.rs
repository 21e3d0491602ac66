//! Moments as people and programs read them.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) millis: u64,
}

/// What is before 1970 is 1970.
impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { millis: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Moment {
    pub(crate) fn now() -> Self {
        SystemTime::now().into()
    }

    /// Whole seconds since 1970.
    pub(crate) fn seconds(self) -> u64 {
        self.millis / 1000
    }

    /// As in `2026-02-28`.
    pub(crate) fn date(self) -> String {
        let (year, month, day) = civil((self.millis / 86_400_000) as i64);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// As in `23-59-59`, which can be part of a file's name everywhere.
    pub(crate) fn clock(self) -> String {
        let (hour, minute, second) = self.hms();
        format!("{hour:02}-{minute:02}-{second:02}")
    }

    /// In RFC 3339, with milliseconds.
    pub(crate) fn rfc3339(self) -> String {
        let (hour, minute, second) = self.hms();
        let millis = self.millis % 1000;
        format!("{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", self.date())
    }

    fn hms(self) -> (u64, u64, u64) {
        let rest = self.millis / 1000 % 86_400;
        (rest / 3600, rest / 60 % 60, rest % 60)
    }
}

/// The date of a day counted from 1970-01-01, after Howard Hinnant's `civil_from_days`.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_what_the_calendar_says() {
        let shown = |seconds: u64| Moment { millis: seconds * 1000 + 7 }.rfc3339();
        assert_eq!(shown(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(shown(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(shown(4_102_444_799), "2099-12-31T23:59:59.007Z");
        assert_eq!(Moment { millis: 4_102_444_799_000 }.clock(), "23-59-59");
    }
}
