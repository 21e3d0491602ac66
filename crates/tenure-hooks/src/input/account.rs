//! What was used in a window of time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Into how many parts a window is divided. A request counts for the window, and at most one such
/// part longer.
const PARTS: u32 = 64;

/// How many ends are remembered, so that one that is delivered twice counts once.
const DELIVERIES: usize = 32;

const DOLLARS: &str = "US dollars";
/// Where these are, nobody knows how much was spent.
const UNPRICED: &str = "model calls without a known price (see `unpriced`)";

/// What may be used in a window of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) window: Duration,
    pub(super) requests: Option<u64>,
    pub(super) tokens: Option<u64>,
    /// Billionths of a dollar.
    pub(super) nanos: Option<u64>,
    /// Whether calls without a known price are let pass where money is limited.
    pub(super) unpriced: bool,
}

/// What was used, part by part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Account {
    parts: Vec<Part>,
    #[serde(default)]
    delivered: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    /// The last moment of it, in milliseconds since 1970.
    until: u64,
    requests: u64,
    tokens: u64,
    nanos: u64,
    /// Model calls without a known price.
    #[serde(default)]
    unpriced: u64,
}

/// What a turn has used.
pub(super) struct Spent {
    pub(super) tokens: u64,
    pub(super) nanos: u64,
    pub(super) unpriced: u64,
    /// Which delivery this is.
    pub(super) delivery: String,
}

/// A limit was reached.
#[derive(Debug, PartialEq)]
pub(super) struct Exceeded {
    pub(super) what: &'static str,
    pub(super) limit: String,
    pub(super) window: Duration,
    /// When there is room again, if nothing else is used meanwhile.
    pub(super) after: Duration,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, window, after } = self;
        let (window, after) = (words(*window), words(*after));
        write!(f, "Rate limit exceeded: {limit} {what} in {window}; come back in {after}")
    }
}

/// A time for people: whole seconds, rounded up, but no less than a millisecond.
fn words(time: Duration) -> String {
    let millis = time.as_millis().max(1);
    if millis < 1000 {
        return format!("{millis} ms");
    }
    let seconds = millis.div_ceil(1000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, 0) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().min(u128::from(u64::MAX)) as u64
}

impl Account {
    /// Counts a request, if there is room for it.
    pub(super) fn admit(&mut self, now: Duration, limits: &Limits) -> Result<(), Exceeded> {
        self.forget(now, limits);
        let unpriced = limits.nanos.filter(|_| !limits.unpriced).map(|_| 1);
        let room = [
            self.room(now, limits, "requests", limits.requests, |part| part.requests),
            self.room(now, limits, "tokens", limits.tokens, |part| part.tokens),
            self.room(now, limits, DOLLARS, limits.nanos, |part| part.nanos),
            self.room(now, limits, UNPRICED, unpriced, |part| part.unpriced),
        ];
        // Whoever comes back for one limit should not be sent away by the next.
        let longest = room.into_iter().flatten().max_by_key(|exceeded| exceeded.after);
        match longest {
            Some(exceeded) => Err(exceeded),
            None => {
                self.part(now, limits).requests += 1;
                Ok(())
            }
        }
    }

    /// Counts what a turn has used. It counts once, however often it is delivered.
    pub(super) fn spend(&mut self, now: Duration, limits: &Limits, spent: Spent) {
        let Spent { tokens, nanos, unpriced, delivery } = spent;
        if self.delivered.contains(&delivery) {
            return;
        }
        self.delivered.push(delivery);
        if self.delivered.len() > DELIVERIES {
            self.delivered.remove(0);
        }
        self.forget(now, limits);
        let part = self.part(now, limits);
        part.tokens = part.tokens.saturating_add(tokens);
        part.nanos = part.nanos.saturating_add(nanos);
        part.unpriced = part.unpriced.saturating_add(unpriced);
    }

    /// Whether nothing counts in it any more.
    pub(super) fn is_empty(&self, now: Duration, limits: &Limits) -> bool {
        let since = millis(now.saturating_sub(limits.window));
        self.parts.iter().all(|part| part.until <= since)
    }

    fn forget(&mut self, now: Duration, limits: &Limits) {
        let since = millis(now.saturating_sub(limits.window));
        self.parts.retain(|part| part.until > since);
    }

    /// The part that is under way.
    fn part(&mut self, now: Duration, limits: &Limits) -> &mut Part {
        let now = millis(now);
        if self.parts.last().is_none_or(|part| part.until < now) {
            let until = now + millis(limits.window / PARTS);
            self.parts.push(Part { until, requests: 0, tokens: 0, nanos: 0, unpriced: 0 });
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Why there is no room, if there is none.
    fn room(
        &self,
        now: Duration,
        limits: &Limits,
        what: &'static str,
        limit: Option<u64>,
        used: impl Fn(&Part) -> u64,
    ) -> Option<Exceeded> {
        let limit = limit?;
        let mut total = self.parts.iter().map(&used).fold(0, u64::saturating_add);
        if total < limit {
            return None;
        }
        let mut after = Duration::ZERO;
        for part in &self.parts {
            total -= used(part).min(total);
            after =
                Duration::from_millis(part.until).saturating_add(limits.window).saturating_sub(now);
            if total < limit {
                break;
            }
        }
        let limit = match what {
            UNPRICED => "no".to_owned(),
            DOLLARS => format!("{}", limit as f64 / 1e9),
            _ => limit.to_string(),
        };
        Some(Exceeded { what, limit, window: limits.window, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000_000 + seconds)
    }

    fn limits() -> Limits {
        Limits { window: HOUR, requests: Some(2), tokens: None, nanos: None, unpriced: false }
    }

    fn spent(tokens: u64, delivery: &str) -> Spent {
        Spent { tokens, nanos: 0, unpriced: 0, delivery: delivery.to_owned() }
    }

    #[test]
    fn a_window_slides_and_what_was_denied_does_not_count() {
        let (mut account, limits) = (Account::default(), limits());
        assert_eq!(account.admit(at(0), &limits), Ok(()));
        assert_eq!(account.admit(at(1800), &limits), Ok(()));
        for _ in 0..100 {
            assert!(account.admit(at(1900), &limits).is_err());
        }
        // The first is forgotten an hour after it, and at most a part of an hour later.
        assert!(account.admit(at(3599), &limits).is_err());
        assert_eq!(account.admit(at(3600 + 57), &limits), Ok(()));
        assert!(account.admit(at(3700), &limits).is_err());
    }

    #[test]
    fn it_says_when_to_come_back_and_there_is_room_then() {
        let (mut account, limits) = (Account::default(), limits());
        account.admit(at(0), &limits).unwrap();
        account.admit(at(600), &limits).unwrap();
        let exceeded = account.admit(at(700), &limits).unwrap_err();
        assert_eq!(exceeded.what, "requests");
        assert_eq!(
            exceeded.to_string(),
            "Rate limit exceeded: 2 requests in 1 h; come back in 49 min 17 s"
        );
        let just_before = at(700) + exceeded.after - Duration::from_millis(1);
        assert!(account.clone().admit(just_before, &limits).is_err());
        assert_eq!(account.admit(at(700) + exceeded.after, &limits), Ok(()));
    }

    #[test]
    fn tokens_count_when_they_are_spent_and_once() {
        let mut account = Account::default();
        let limits = Limits { requests: None, tokens: Some(100), ..limits() };
        account.admit(at(0), &limits).unwrap();
        account.spend(at(1), &limits, spent(99, "a"));
        account.spend(at(1), &limits, spent(99, "a"));
        assert_eq!(account.admit(at(2), &limits), Ok(()));
        account.spend(at(3), &limits, spent(1, "b"));
        assert_eq!(account.admit(at(4), &limits).unwrap_err().what, "tokens");
        assert_eq!(account.admit(at(4000), &limits), Ok(()));
    }

    #[test]
    fn money_is_told_in_dollars() {
        let mut account = Account::default();
        let limits = Limits { requests: None, nanos: Some(1_500_000_000), ..limits() };
        account.spend(at(0), &limits, Spent { nanos: 2_000_000_000, ..spent(0, "a") });
        let exceeded = account.admit(at(1), &limits).unwrap_err();
        assert!(exceeded.to_string().contains("1.5 US dollars in 1 h"), "{exceeded}");
    }

    #[test]
    fn a_call_without_a_price_is_denied_where_money_is_limited() {
        let mut account = Account::default();
        let limits = Limits { requests: None, nanos: Some(1), ..limits() };
        account.spend(at(0), &limits, Spent { unpriced: 1, ..spent(5, "a") });
        let said = account.admit(at(1), &limits).unwrap_err().to_string();
        assert!(said.starts_with("Rate limit exceeded: no model calls without a known"), "{said}");
        assert_eq!(account.admit(at(1), &Limits { unpriced: true, ..limits }), Ok(()));
        assert_eq!(account.admit(at(1), &Limits { nanos: None, ..limits }), Ok(()));
        assert_eq!(account.admit(at(3700), &limits), Ok(()), "it is out of the window");
    }

    #[test]
    fn an_account_stays_small() {
        let mut account = Account::default();
        let limits = Limits { requests: Some(u64::MAX), ..limits() };
        for second in 0..20_000 {
            account.admit(at(second), &limits).unwrap();
            account.spend(at(second), &limits, spent(1, &second.to_string()));
        }
        assert!(account.parts.len() <= PARTS as usize + 2, "{}", account.parts.len());
        assert!(account.delivered.len() <= DELIVERIES);
    }
}
