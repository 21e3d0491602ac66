//! Going on with runs that did not finish, and giving them up.

use super::super::asked::View;
use super::super::ground::{After, Ground};
use super::kept::{asks, how_to_answer};
use super::{Done, Keeper, Kept, Place, Prepared};
use crate::args::{Run, Which};
use crate::exit::{Exit, Stop};
use crate::terminal::question::is_anybody_there;
use crate::terminal::size::width;
use crate::terminal::style::{DIM, WARN, paint};
use crate::terminal::text::{clean_block, clean_line, plural, wrap};
use crate::terminal::{EventLines, Progress, Screen, print_json, print_plain};
use anyhow::{Result, anyhow};
use serde_json::json;
use std::path::Path;
use std::time::SystemTime;
use tenure_cards::project::OnStart;
use tenure_core::Error;
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_store::{AskInfo, AskQuery, AskStatus, Resume};

/// `tenure run --resume` and `--abandon`.
pub(crate) fn resume(args: &Run) -> Result<Exit> {
    let (which, mode) = match (args.earlier.abandons(), args.earlier.resumes()) {
        (Some(which), _) => (which, Resume::Abandon),
        (None, which) => (which.unwrap_or(Which::All), Resume::GoOn),
    };
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    let place = Place::of_record(&args.recording, path)?;
    let what = if mode == Resume::Abandon { "tenure run --abandon" } else { "tenure run --resume" };
    let keeper = Keeper::open_existing(place, what)?;
    let view = View::of(args);
    match which {
        Which::One(named) => one(&keeper, &keeper.find(named)?, mode, &view),
        Which::All => all(&keeper, mode, &view),
    }
}

fn one(keeper: &Keeper, info: &RunInfo, mode: Resume, view: &View) -> Result<Exit> {
    if info.status == RunStatus::Ended {
        let outcome = info.outcome.map_or("unknown", |outcome| outcome.as_str());
        return Err(Stop::usage(format!(
            "run {} is over (outcome {outcome}); begin a new one from one of its steps with `tenure \
             restart {0} --from STEP`",
            info.id
        ))
        .into());
    }
    let task = match task(keeper, info, mode, view)? {
        Ok(task) => task,
        Err(exit) => return Ok(exit),
    };
    let ground = Ground::new(&silent())?;
    let exit = task.go(keeper, &ground, After::Nothing, mode, view);
    ground.leave();
    exit
}

/// Every one that can go on, one after the other, the oldest first.
fn all(keeper: &Keeper, mode: Resume, view: &View) -> Result<Exit> {
    let runs = keeper.unfinished()?;
    if runs.is_empty() {
        note(view, "every run that is on record is over");
        return Ok(Exit::Ok);
    }
    let (mut exit, mut tasks) = (Exit::Ok, Vec::new());
    for info in runs {
        match stands(keeper, &info, mode)? {
            Stands::GoesOn => match task(keeper, &info, mode, view)? {
                Ok(task) => tasks.push(task),
                Err(code) => exit = worse(exit, code),
            },
            Stands::Parked => {
                exit = worse(exit, Exit::Failed);
                left(keeper, info, Vec::new(), view);
            }
            Stands::Waits(open) => {
                exit = worse(exit, Exit::Waiting);
                left(keeper, info, open, view);
            }
        }
    }
    if tasks.is_empty() {
        return Ok(exit);
    }
    let ground = Ground::new(&silent())?;
    let last = tasks.len() - 1;
    for (at, task) in tasks.into_iter().enumerate() {
        let after = if at == last { After::Nothing } else { After::More };
        note(view, &task.headline(mode));
        exit = worse(exit, task.go(keeper, &ground, after, mode, view)?);
        if let Some(stopped) = ground.stopped() {
            exit = stopped;
            break;
        }
    }
    ground.leave();
    Ok(exit)
}

/// What is done with earlier runs before a new one, as the project wants it.
pub(crate) struct Earlier {
    tasks: Vec<Task>,
    mode: Resume,
}

/// Looks for earlier runs that did not finish, and says so. What is to be done with them is done by
/// [`Earlier::settle`]. Nothing that goes wrong with them keeps the new run from beginning.
pub(crate) fn before_run(keeper: &Keeper, view: &View) -> Result<Earlier> {
    let mode = match keeper.place().settings.on_start {
        OnStart::Resume => Resume::GoOn,
        OnStart::Abandon => Resume::Abandon,
        _ => {
            tell_unfinished(keeper, view)?;
            return Ok(Earlier { tasks: Vec::new(), mode: Resume::GoOn });
        }
    };
    let aside = aside(view);
    let mut tasks = Vec::new();
    for info in keeper.unfinished()? {
        // Who waits for a person did not stop by accident.
        let goes_on = match stands(keeper, &info, Resume::GoOn)? {
            Stands::GoesOn => true,
            Stands::Parked => mode == Resume::Abandon,
            Stands::Waits(_) => false,
        };
        if !goes_on {
            continue;
        }
        match task(keeper, &info, mode, &aside) {
            Ok(Ok(task)) => tasks.push(task),
            Ok(Err(_)) => warn(&format!("run {} ({}) was left as it is", info.id, name(&info))),
            Err(error) => warn(&format!("run {} ({}): {error:#}", info.id, name(&info))),
        }
    }
    Ok(Earlier { tasks, mode })
}

impl Earlier {
    /// Does with them what the project wants. What they say is on record; here is only how they
    /// ended.
    pub(crate) fn settle(self, keeper: &Keeper, ground: &Ground, view: &View) -> Result<()> {
        for task in self.tasks {
            if ground.stopped().is_some() {
                return Ok(());
            }
            note(view, &task.headline(self.mode));
            let (id, name) = (task.info.id, name(&task.info));
            match task.drive(keeper, ground, After::More, self.mode) {
                Ok(Went::Done(done)) => {
                    let kept = done.kept();
                    let why = kept.and_then(Kept::why).map(|why| clean_line(&why));
                    let outcome = kept.and_then(|kept| kept.info.outcome);
                    let how = outcome.map(|outcome| format!("over: {outcome}")).or(why);
                    note(view, &format!("run {id} ({name}) is {}", how.unwrap_or_default()));
                }
                Ok(Went::GivenUp(info)) => {
                    given_up(&info, view);
                }
                Err(error) => warn(&format!("run {id} ({name}): {error:#}")),
            }
        }
        Ok(())
    }
}

/// Earlier runs are shown by their ends only: standard output belongs to the new one.
fn aside(view: &View) -> View {
    View { json: false, quiet: true, trust: view.trust, yes: view.yes.clone() }
}

/// Says how many runs did not finish.
fn tell_unfinished(keeper: &Keeper, view: &View) -> Result<()> {
    let runs = keeper.unfinished()?;
    let of = |status| runs.iter().filter(|info| info.status == status).count();
    let (waiting, parked) = (of(RunStatus::Waiting), of(RunStatus::Parked));
    let mut parts = Vec::new();
    if waiting > 0 {
        parts.push(format!("{waiting} waiting for a person"));
    }
    if parked > 0 {
        parts.push(format!("{parked} parked"));
    }
    if !runs.is_empty() {
        let option = keeper.place().option();
        let parts =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        note(
            view,
            &format!(
                "{} did not finish{parts}: go on with `tenure run --resume{option}`, or give up with \
                 `tenure run --abandon{option}`",
                plural(runs.len(), "earlier run")
            ),
        );
    }
    Ok(())
}

/// Where a run stands that nobody drives.
enum Stands {
    GoesOn,
    Parked,
    /// For the answers to these.
    Waits(Vec<AskInfo>),
}

fn stands(keeper: &Keeper, info: &RunInfo, mode: Resume) -> Result<Stands> {
    // Of one that somebody wants ended, there is an end to be delivered.
    if mode != Resume::GoOn || !keeper.store().wanted(info.id)?.is_empty() {
        return Ok(Stands::GoesOn);
    }
    match info.status {
        RunStatus::Parked => return Ok(Stands::Parked),
        RunStatus::Waiting if !is_anybody_there() => {}
        _ => return Ok(Stands::GoesOn),
    }
    let all = keeper.store().asks(&AskQuery::all().run(info.id))?;
    let (open, decided): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|ask| ask.status == AskStatus::Open);
    let now = SystemTime::now();
    let newest = open.iter().map(|ask| ask.created).max();
    // An answer that came before the last question was put is not what it waits for.
    let has_come = |ask: &AskInfo| newest.is_none_or(|newest| ask.decided >= Some(newest));
    let goes_on = open.is_empty()
        || decided.iter().any(has_come)
        || open.iter().any(|ask| ask.expires.is_some_and(|expires| expires <= now));
    Ok(if goes_on { Stands::GoesOn } else { Stands::Waits(open) })
}

/// One run to be gone on with or given up.
struct Task {
    info: RunInfo,
    /// None if its files are gone or not right any more, and it is given up all the same.
    prepared: Option<Prepared>,
}

fn task(keeper: &Keeper, info: &RunInfo, mode: Resume, view: &View) -> Result<Result<Task, Exit>> {
    let aside = View { quiet: true, json: false, ..view.clone() };
    let gives_up = mode == Resume::Abandon;
    let prepared = Prepared::of(keeper.place(), info, if gives_up { &aside } else { view });
    let info = info.clone();
    match prepared {
        Ok(Ok(prepared)) => Ok(Ok(Task { info, prepared: Some(prepared) })),
        Ok(Err(_)) if gives_up => Ok(Ok(Task { info, prepared: None })),
        Ok(Err(exit)) => Ok(Err(exit)),
        // What is not trusted is not executed, and what would be skipped then is for a person to say.
        Err(error) if gives_up && Stop::exit_of(&error) != Exit::Untrusted => {
            warn(&format!("{error:#}"));
            Ok(Ok(Task { info, prepared: None }))
        }
        Err(error) => Err(error),
    }
}

impl Task {
    /// What is about to be done, for people.
    fn headline(&self, mode: Resume) -> String {
        let verb = if mode == Resume::Abandon { "giving up" } else { "going on with" };
        format!("{verb} run {} ({})", self.info.id, name(&self.info))
    }

    /// Does it, and tells how it went.
    fn go(
        self,
        keeper: &Keeper,
        ground: &Ground,
        after: After,
        mode: Resume,
        view: &View,
    ) -> Result<Exit> {
        match self.drive(keeper, ground, after, mode)? {
            Went::Done(done) => done.tell(view),
            Went::GivenUp(info) => Ok(given_up(&info, view)),
        }
    }

    fn drive(self, keeper: &Keeper, ground: &Ground, after: After, mode: Resume) -> Result<Went> {
        let Some(prepared) = self.prepared else { return self.give_up(keeper, ground) };
        let life = keeper.resume(ground, self.info.id, mode, prepared.recorded().clone())?;
        let done = prepared.drive(ground, after, life)?;
        Ok(match (mode, done.kept()) {
            (Resume::Abandon, Some(kept)) if kept.info.status == RunStatus::Ended => {
                Went::GivenUp(Box::new(kept.info.clone()))
            }
            _ => Went::Done(Box::new(done)),
        })
    }

    /// Ends it on record, where there is no code left to call.
    fn give_up(self, keeper: &Keeper, ground: &Ground) -> Result<Went> {
        warn(&format!(
            "run {} is ended on record; what it is of cannot be run any more, so no hook is told",
            self.info.id
        ));
        let recorded = super::Recorded::now(super::super::asked::Asked::default());
        let life = keeper.resume(ground, self.info.id, Resume::Abandon, recorded)?;
        let kept = ground.wait(life.finish(Err(Error::abandoned())));
        match &kept.trouble {
            Some(trouble) => Err(anyhow!("{trouble}")),
            None => Ok(Went::GivenUp(Box::new(kept.info))),
        }
    }
}

/// What became of a task.
enum Went {
    Done(Box<Done>),
    /// It is over, as was wanted.
    GivenUp(Box<RunInfo>),
}

fn given_up(info: &RunInfo, view: &View) -> Exit {
    let outcome = info.outcome.map_or("unknown", |outcome| outcome.as_str());
    if view.json {
        print_json(json!({ "type": "run", "run": info.id, "name": info.name, "outcome": outcome }));
    }
    note(view, &format!("run {} ({}) is over: {outcome}", info.id, name(info)));
    Exit::Ok
}

/// Says why a run is left as it is, and what to do. Also where nothing but answers is wanted:
/// otherwise there is nothing but a code that says so.
fn left(keeper: &Keeper, info: RunInfo, open: Vec<AskInfo>, view: &View) {
    let option = keeper.place().option();
    let text = match info.status {
        RunStatus::Parked => parked(&info, &option),
        _ => waits(&info, &open, &option),
    };
    let kept = Kept { info, asks: open, said: None, trouble: None, option };
    print_plain(&format!("{} {text}", paint(WARN, kept.head())));
    if view.json {
        print_json(kept.result());
    }
}

fn parked(info: &RunInfo, option: &str) -> String {
    let why = info.error.as_deref().unwrap_or("it cannot go on");
    let when = match why.contains("code has changed") {
        true => "when the code is as it was again",
        false => "when that is mended",
    };
    let head = format!("run {} ({}) is parked: {}", info.id, name(info), clean_block(why));
    let mut lines = wrap(&head, width().saturating_sub("parked: ".len()));
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "  "));
    // In lines of their own: who copies a command wants it in one piece.
    let id = info.id;
    lines.push(format!("  go on:   tenure run --resume {id}{option}   ({when})"));
    lines.push(format!("  give up: tenure run --abandon {id}{option}"));
    lines.join("\n")
}

fn waits(info: &RunInfo, open: &[AskInfo], option: &str) -> String {
    let mut lines = vec![format!("run {} ({}) waits for a person", info.id, name(info))];
    for ask in open {
        lines.push(format!("  {}", asks(ask)));
        lines.push(format!("  {}", how_to_answer(ask, option)));
    }
    lines.push(format!("  go on:  tenure run --resume {}{option}", info.id));
    lines.join("\n")
}

fn name(info: &RunInfo) -> String {
    clean_line(&info.name)
}

/// The first thing that went wrong counts; that somebody waits is the least of it.
fn worse(before: Exit, now: Exit) -> Exit {
    match (before, now) {
        (Exit::Ok, now) => now,
        (Exit::Waiting, now) if now != Exit::Ok => now,
        (before, _) => before,
    }
}

/// A screen for what signals have to say before there is a run.
fn silent() -> Screen {
    Screen::new(Progress::Nothing, EventLines::Nothing)
}

fn note(view: &View, text: &str) {
    if !view.quiet {
        print_plain(&paint(DIM, text));
    }
}

fn warn(text: &str) {
    print_plain(&format!("{} {text}", paint(WARN, "warning:")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_counts_and_waiting_is_the_least() {
        assert_eq!(worse(Exit::Ok, Exit::Waiting), Exit::Waiting);
        assert_eq!(worse(Exit::Waiting, Exit::Ok), Exit::Waiting);
        assert_eq!(worse(Exit::Waiting, Exit::Denied), Exit::Denied);
        assert_eq!(worse(Exit::Denied, Exit::Failed), Exit::Denied);
        assert_eq!(worse(Exit::Ok, Exit::Ok), Exit::Ok);
    }
}
