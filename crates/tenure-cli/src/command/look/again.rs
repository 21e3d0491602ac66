//! `tenure replay` and `tenure restart`.

use super::super::asked::View;
use super::super::ground::{After, Ground};
use super::super::recorded::{self, Done, Keeper, Life, Prepared};
use super::place::Place;
use crate::args::{Replay, Restart, Yes};
use crate::exit::Exit;
use crate::terminal::style::{BAD, DIM, GOOD, paint};
use crate::terminal::text::{clean_block, plural};
use crate::terminal::{EventLines, Progress, Screen, print_json, print_plain, sink};
use anyhow::Result;
use serde_json::json;
use tenure_core::Outcome;
use tenure_core::engine::RunInfo;
use tenure_core::step::{StepKey, WhenWaiting};
use tenure_store::{Difference, Resume, RunLog};

pub(crate) fn replay(args: &Replay) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let info = place.run(&args.run)?;
    // What the run says is on record; here it is only whether it would say the same.
    let view = View { json: false, quiet: true, trust: args.trust, yes: Yes::default() };
    let of_record = place.of_record(&args.of)?;
    let prepared = match Prepared::of(&of_record, &info, &view)? {
        Ok(prepared) => prepared,
        Err(exit) => return Ok(exit),
    };
    let log = place.store.replay(info.id)?;
    let recorded = prepared.recorded().clone();
    let option = of_record.option();
    let life = Life::new(log.clone(), place.store.clone(), option, recorded, WhenWaiting::Park);
    let ground = Ground::new(&Screen::new(Progress::Nothing, EventLines::Nothing))?;
    let done = prepared.drive(&ground, After::Nothing, life);
    let stopped = ground.stopped();
    ground.leave();
    let done = done?;
    if let Some(exit) = stopped {
        return Ok(exit);
    }
    let steps = steps(&place, &info)?;
    let found = Found::of(&info, &log, &done);
    found.tell(args, &info, steps)?;
    Ok(if found.is_same() { Exit::Ok } else { Exit::Failed })
}

/// How many steps are on record.
fn steps(place: &Place, info: &RunInfo) -> Result<usize> {
    let mut steps = 0;
    place.each(info.id, 0, |entry| {
        steps += usize::from(entry.of == "step.recorded");
        Ok(())
    })?;
    Ok(steps)
}

/// What a replay has shown.
enum Found {
    /// Every step is as it was recorded.
    Same,
    /// So it is up to where the record ends, and this would come next.
    SameSoFar(StepKey),
    Differs(Box<Difference>),
    /// The run was over, and now something else would come.
    Goes(StepKey),
    /// It ended well, and now it does not.
    Fails(String),
}

impl Found {
    fn of(info: &RunInfo, log: &RunLog, done: &Done) -> Self {
        if let Some(difference) = log.difference() {
            return Self::Differs(Box::new(difference));
        }
        // A run that was cut off stopped wherever it was.
        let came_to_its_end = info.outcome.is_some_and(|outcome| {
            !matches!(outcome, Outcome::Cancelled | Outcome::Abandoned | Outcome::TimedOut)
        });
        if let Some(step) = log.end_of_record() {
            return if came_to_its_end { Self::Goes(step) } else { Self::SameSoFar(step) };
        }
        let said = done.kept().and_then(|kept| kept.said.clone());
        match said {
            Some(said) if info.outcome == Some(Outcome::Ok) => Self::Fails(said),
            _ => Self::Same,
        }
    }

    fn is_same(&self) -> bool {
        matches!(self, Self::Same | Self::SameSoFar(_))
    }

    fn tell(&self, args: &Replay, info: &RunInfo, steps: usize) -> Result<()> {
        let name = crate::terminal::text::clean_line(&info.name);
        let counted = plural(steps, "step");
        let (result, words) = match self {
            Self::Same => ("same", format!("no difference in {counted}")),
            Self::SameSoFar(step) => {
                ("same", format!("no difference in {counted}; the record ends before {step}"))
            }
            Self::Differs(difference) => ("differs", difference.to_string()),
            Self::Goes(step) => (
                "differs",
                format!(
                    "after {counted} the run was over; now it goes on with {step}, which is not \
                         on record"
                ),
            ),
            Self::Fails(why) => ("differs", format!("the run ended well, and now it fails: {why}")),
        };
        if args.json {
            let difference = match self {
                Self::Differs(difference) => serde_json::to_value(difference)?,
                _ => serde_json::Value::Null,
            };
            print_json(json!({
                "result": result, "run": info.id, "steps": steps, "message": words,
                "difference": difference,
            }));
            return Ok(());
        }
        let style = if self.is_same() { GOOD } else { BAD };
        let label = paint(style, format_args!("{result}:"));
        sink::print_text(&format!("{label} {name} {} · {}", info.id, clean_block(&words)))?;
        Ok(())
    }
}

pub(crate) fn restart(args: &Restart) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let info = place.run(&args.run)?;
    let of_record = place.of_record(&args.of)?;
    let view =
        View { json: args.json, quiet: args.quiet, trust: args.trust, yes: args.yes.clone() };
    let prepared = match Prepared::of(&of_record, &info, &view)? {
        Ok(prepared) => prepared,
        Err(exit) => return Ok(exit),
    };
    let keeper = Keeper::open_existing(of_record, "tenure restart")?;
    let ground = Ground::new(&Screen::new(Progress::Nothing, EventLines::Nothing))?;
    let exit = (|| {
        let run = keeper.fork(&ground, info.id, &args.from)?;
        if !args.quiet {
            let note =
                format!("run {run} begins with the record of {}, up to {}", info.id, args.from);
            print_plain(&paint(DIM, note));
        }
        let life = keeper.resume(&ground, run, Resume::GoOn, prepared.recorded().clone())?;
        prepared.drive(&ground, After::Nothing, life)?.tell(&view)
    })();
    ground.leave();
    exit
}

impl Place {
    /// The same place, for whoever drives runs.
    fn of_record(&self, of: &crate::args::OfStore) -> Result<recorded::Place> {
        let (store, adopt_store) = (of.store.clone(), of.adopt_store);
        let recording = crate::args::Recording { store, no_store: false, adopt_store };
        recorded::Place::of_record(&recording, &self.root)
    }
}
