//! `tenure cancel` and `tenure kill`.

use super::place::Place;
use super::words::standing;
use crate::args::StopRun;
use crate::exit::Exit;
use crate::terminal::style::{GOOD, WARN, paint};
use crate::terminal::{print_json, print_plain, sink};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::{Duration, Instant};
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_core::{Error, Outcome};
use tenure_store::{Resume, StoreErrorKind, Wish};

/// So long it is waited to see what came of it.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn cancel(args: &StopRun) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let info = place.run(&args.run)?;
    let run = info.id;
    if info.status == RunStatus::Ended || !place.store.request(run, Wish::Cancel)? {
        return Ok(over(args, &place.info(run)?));
    }
    if !info.driven {
        let short = place.short(run);
        let words = format!(
            "nobody drives it: it is cancelled when it is taken up again, which `tenure run --resume \
             {short}` does now"
        );
        say(args, &info, "recorded", &words)?;
        return Ok(Exit::Ok);
    }
    let info = settled(&place, &info)?;
    match info.outcome {
        Some(Outcome::Cancelled) => say(args, &info, "cancelled", "its end hooks have run")?,
        Some(outcome) => {
            say(args, &info, "ended", &format!("it came to its end first: {outcome}"))?
        }
        None => say(args, &info, "asked", &format!("{} ends it now, in order", driver(&place)))?,
    }
    Ok(Exit::Ok)
}

pub(crate) fn kill(args: &StopRun) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let info = place.run(&args.run)?;
    let run = info.id;
    if info.status == RunStatus::Ended {
        return Ok(over(args, &info));
    }
    if !info.driven {
        return abandon(args, &place, &info);
    }
    if !place.store.request(run, Wish::Kill)? {
        return Ok(over(args, &place.info(run)?));
    }
    let info = settled(&place, &info)?;
    match info.outcome {
        Some(Outcome::Abandoned) => say(args, &info, "abandoned", "its hooks were not waited for")?,
        Some(outcome) => {
            say(args, &info, "ended", &format!("it came to its end first: {outcome}"))?
        }
        None => say(args, &info, "asked", &format!("{} was told to let go of it", driver(&place)))?,
    }
    Ok(Exit::Ok)
}

/// Records the end of a run that nobody drives.
fn abandon(args: &StopRun, place: &Place, info: &RunInfo) -> Result<Exit> {
    let driver = match place.store.drive("tenure kill") {
        Ok(driver) => driver,
        Err(error) if error.kind() == StoreErrorKind::Driven => {
            place.store.request(info.id, Wish::Kill)?;
            let words = format!(
                "{} drives other runs of the file: it is ended when it is taken up again",
                self::driver(place)
            );
            say(args, info, "recorded", &words)?;
            return Ok(Exit::Ok);
        }
        Err(error) => return Err(error.into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let ended = runtime.block_on(async {
        let log = driver.resume(info.id, Resume::Abandon).await?;
        log.finish(Err(Error::abandoned())).await
    })?;
    say(args, &ended, "abandoned", "its end is on record; no hook of it was called")?;
    Ok(Exit::Ok)
}

/// Waits a little for the run to be over.
fn settled(place: &Place, info: &RunInfo) -> Result<RunInfo> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = place.info(info.id)?;
        if now.status == RunStatus::Ended || Instant::now() >= until {
            return Ok(now);
        }
        std::thread::sleep(LOOK);
    }
}

fn driver(place: &Place) -> String {
    match place.store.driver() {
        Ok(Some(driver)) => format!("process {}", driver.pid),
        _ => "the process that drives it".to_owned(),
    }
}

fn over(args: &StopRun, info: &RunInfo) -> Exit {
    if args.json {
        print_json(to_json(info, "over"));
    } else {
        let (style, status) = standing(info);
        print_plain(&format!("{} ({})", paint(WARN, "it is over already"), paint(style, status)));
    }
    Exit::Failed
}

fn say(args: &StopRun, info: &RunInfo, result: &str, words: &str) -> Result<()> {
    if args.json {
        print_json(to_json(info, result));
        return Ok(());
    }
    let name = crate::terminal::text::clean_line(&info.name);
    let label = paint(GOOD, format_args!("{result}:"));
    Ok(sink::print_text(&format!("{label} {name} {} · {words}", info.id))?)
}

fn to_json(info: &RunInfo, result: &str) -> serde_json::Value {
    json!({
        "result": result,
        "run": info.id,
        "status": info.status,
        "outcome": info.outcome,
        "driven": info.driven,
    })
}
