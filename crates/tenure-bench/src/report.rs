//! A figure, and how it is printed.

use serde_json::{Map, Value, json};

pub(crate) struct Figure {
    pub(crate) name: &'static str,
    value: f64,
    unit: &'static str,
    limit: Limit,
    raw: Vec<(&'static str, f64)>,
    /// What has to be done whoever does it, where that is most of it.
    inherent: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    Below(f64),
}

impl Figure {
    /// How often the second goes into the first.
    pub(crate) fn ratio(
        name: &'static str,
        limit: f64,
        ours: (&'static str, f64),
        theirs: (&'static str, f64),
    ) -> Self {
        Self {
            name,
            value: ours.1 / theirs.1,
            unit: "ratio",
            limit: Limit::AtMost(limit),
            raw: vec![ours, theirs],
            inherent: None,
        }
    }

    /// How much more the first is than the second, in percent.
    pub(crate) fn percent(
        name: &'static str,
        limit: f64,
        more: (&'static str, f64),
        less: (&'static str, f64),
    ) -> Self {
        Self {
            name,
            value: (more.1 / less.1 - 1.0) * 100.0,
            unit: "percent",
            limit: Limit::AtMost(limit),
            raw: vec![more, less],
            inherent: None,
        }
    }

    /// The milliseconds that the first takes longer than the second, both in nanoseconds.
    pub(crate) fn milliseconds_more(
        name: &'static str,
        limit: f64,
        more: (&'static str, f64),
        less: (&'static str, f64),
    ) -> Self {
        Self {
            name,
            value: (more.1 - less.1) / 1e6,
            unit: "ms",
            limit: Limit::AtMost(limit),
            raw: vec![more, less],
            inherent: None,
        }
    }

    pub(crate) fn bytes(name: &'static str, limit: f64, value: f64) -> Self {
        Self {
            name,
            value,
            unit: "bytes",
            limit: Limit::AtMost(limit),
            raw: Vec::new(),
            inherent: None,
        }
    }

    /// The limit itself is too much already.
    pub(crate) fn strictly(mut self) -> Self {
        let (Limit::AtMost(limit) | Limit::Below(limit)) = self.limit;
        self.limit = Limit::Below(limit);
        self
    }

    /// Adds to what is shown beside the value.
    pub(crate) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.raw.push((name, value));
        self
    }

    /// Says what has to be done whoever does it.
    pub(crate) fn inherent(mut self, work: &'static str) -> Self {
        self.inherent = Some(work);
        self
    }

    pub(crate) fn passes(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.value <= limit,
            Limit::Below(limit) => self.value < limit,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let (Limit::AtMost(limit) | Limit::Below(limit)) = self.limit;
        let raw: Map<String, Value> =
            self.raw.iter().map(|(name, value)| ((*name).to_owned(), rounded(*value))).collect();
        let mut figure = json!({
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "limit": limit,
            "pass": self.passes(),
            "raw": raw,
        });
        if let Some(work) = self.inherent {
            figure["inherent"] = work.into();
        }
        figure
    }

    pub(crate) fn to_row(&self) -> String {
        let limit = match self.limit {
            Limit::AtMost(limit) => format!("<= {limit}"),
            Limit::Below(limit) => format!("< {limit}"),
        };
        let raw: Vec<_> =
            self.raw.iter().map(|(name, value)| format!("{name} {value:.1}")).collect();
        format!(
            "{:<28} {:>9.3} {:<8} {:<8} {:<5} {}",
            self.name,
            self.value,
            self.unit,
            limit,
            if self.passes() { "ok" } else { "FAIL" },
            raw.join(", ") + &self.inherent.map(|work| format!("; {work}")).unwrap_or_default()
        )
    }
}

fn rounded(value: f64) -> Value {
    json!((value * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_exactly_unless_it_is_strict() {
        let figure = || Figure::ratio("x", 2.0, ("a_ns", 4.0), ("b_ns", 2.0));
        assert!(figure().passes());
        assert!(!figure().strictly().passes());
        assert_eq!(
            figure().with("c", 1.0).to_json(),
            json!({
                "name": "x", "value": 2.0, "unit": "ratio", "limit": 2.0, "pass": true,
                "raw": { "a_ns": 4.0, "b_ns": 2.0, "c": 1.0 },
            })
        );
    }
}
