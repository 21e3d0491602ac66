//! What has to hold after any number of lives.

mod effects;
mod record;
mod view;

use crate::crash::case::{Case, Life, Ran};
use crate::crash::ledger::Line;
use crate::crash::subject::{Recorded, Scenario};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::Outcome;
use view::View;

/// Something that does not hold, in words.
pub(crate) type Finding = String;

/// What the undisturbed run of each scenario came to.
pub(crate) struct Baselines(BTreeMap<Scenario, Baseline>);

struct Baseline {
    recorded: Recorded,
    lines: Vec<Line>,
    took: Duration,
}

impl Baselines {
    /// Takes the cases that nobody was killed in.
    pub(crate) fn of(ran: impl IntoIterator<Item = (Scenario, Ran)>) -> Self {
        let baseline = |(scenario, ran): (Scenario, Ran)| {
            let took = ran.took;
            assert_eq!(ran.problems, Vec::<String>::new(), "{scenario} without a kill");
            let recorded = ran.after.runs.get(&scenario).expect("the run is on record").clone();
            let lines = ran.lives.into_iter().flat_map(|life| life.lines).collect();
            (scenario, Baseline { recorded, lines, took })
        };
        Self(ran.into_iter().map(baseline).collect())
    }

    /// How long the longest of them took.
    pub(crate) fn span(&self) -> Duration {
        self.0.values().map(|baseline| baseline.took).max().unwrap_or_default()
    }

    /// How many steps they have, and how many executions of tools.
    pub(crate) fn size(&self) -> (usize, usize) {
        let steps = |it: &Baseline| {
            it.recorded.entries.iter().filter(|entry| entry.of == "step.recorded").count()
        };
        let is_tool = |line: &&Line| matches!(line.deed, crate::crash::ledger::Deed::Tool { .. });
        let tools = |it: &Baseline| it.lines.iter().filter(is_tool).count();
        (self.0.values().map(steps).sum(), self.0.values().map(tools).sum())
    }

    /// Everything that does not hold in a case.
    pub(crate) fn check(&self, case: &Case, ran: &Ran) -> Vec<Finding> {
        let mut found = ran.problems.clone();
        found.extend(ran.after.damage.iter().map(|it| format!("the file is damaged: {it}")));
        if !ran.problems.is_empty() {
            return found;
        }
        for scenario in &case.scenarios {
            let Some(after) = ran.after.runs.get(scenario) else {
                // It is given up before it was ever started.
                if case.gives_up.is_none() {
                    found.push(format!("{scenario}: there is no run"));
                }
                continue;
            };
            let baseline = &self.0[scenario];
            let run = Run {
                scenario: *scenario,
                lives: &ran.lives,
                after,
                baseline: &baseline.recorded,
                undisturbed_lines: &baseline.lines,
                given_up: ran.given_up(case, *scenario),
            };
            found.extend(run.check().into_iter().map(|it| format!("{scenario}: {it}")));
        }
        found
    }
}

/// One run of a case.
struct Run<'a> {
    scenario: Scenario,
    lives: &'a [Life],
    after: &'a Recorded,
    baseline: &'a Recorded,
    undisturbed_lines: &'a [Line],
    /// How its outcome is called, if a life did not go on with it.
    given_up: Option<Outcome>,
}

impl<'a> Run<'a> {
    fn undisturbed(&self) -> View<'a> {
        View::of(self.scenario.run(), self.baseline)
    }

    fn check(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let view = View::of(self.scenario.run(), self.after);
        record::is_over(self, &mut found);
        record::only_grows(self, &mut found);
        record::steps_are_recorded_once(&view, &mut found);
        record::scopes_end_once(self, &view, &mut found);
        record::came_to_the_same(self, &view, &mut found);
        record::begins_have_ends(&view, &mut found);
        effects::nothing_recorded_is_done_again(self, &mut found);
        effects::tools_keep_their_promise(self, &mut found);
        effects::ends_are_delivered(self, &view, &mut found);
        effects::given_up_is_given_up(self, &mut found);
        found
    }
}
