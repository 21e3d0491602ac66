//! `tenure tail`.

use super::entry::Entry;
use super::item::{Item, Look};
use super::place::Place;
use super::runs::what;
use super::timeline::Timeline;
use super::words::standing;
use crate::args::Tail;
use crate::exit::Exit;
use crate::terminal::size::width;
use crate::terminal::style::{BOLD, DIM, paint};
use crate::terminal::text::plural;
use crate::terminal::{print_plain, sink};
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tenure_core::RunId;
use tenure_core::engine::{RunInfo, RunQuery, RunStatus};

/// How often it is looked whether something happened.
const LOOK: Duration = Duration::from_millis(100);
/// So many runs are followed at once, the newest of them.
const MOST: usize = 64;

pub(crate) fn run(args: &Tail) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    match &args.run {
        Some(run) => follow_one(args, &place, place.run(run)?),
        None => follow_all(args, &place),
    }
}

/// A run that is followed.
struct Followed {
    info: RunInfo,
    timeline: Timeline,
    last: u64,
}

impl Followed {
    fn new(info: RunInfo) -> Self {
        Self { info, timeline: Timeline::default(), last: 0 }
    }

    /// Reads what is new. The lines that are whole now, each with its record's JSON if that is
    /// wanted.
    fn read(&mut self, place: &Place, json: bool) -> Result<Vec<String>> {
        let (since, width) = (self.info.started, width());
        let (mut lines, timeline) = (Vec::new(), &mut self.timeline);
        self.last = place.each(self.info.id, self.last, |entry: Entry| {
            if json {
                let mut line = entry.to_json();
                sink::redact(&mut line);
                lines.push(line.to_string());
                return Ok(());
            }
            for at in timeline.take(&entry) {
                let item: &Item = &timeline.items[at];
                if !item.is_hidden {
                    let agents = timeline.has_several_agents();
                    lines.push(item.line(&Look { since, width, agents, is_live: true }));
                }
            }
            Ok(())
        })?;
        Ok(lines)
    }
}

fn follow_one(args: &Tail, place: &Place, info: RunInfo) -> Result<Exit> {
    let run = info.id;
    let mut followed = Followed::new(info);
    // What has been so far is told from its end.
    let before = followed.read(place, args.json)?;
    let left_out = before.len().saturating_sub(args.lines);
    if !args.json {
        print_plain(&title(&followed.info));
        if left_out > 0 {
            print_plain(&paint(DIM, format_args!("  … {} before", plural(left_out, "line"))));
        }
    }
    print(args, &before[left_out..])?;
    loop {
        let mut info = place.info(run)?;
        // Its driver may have ended it and gone after its row was read.
        if !info.driven && info.status != RunStatus::Ended {
            info = place.info(run)?;
        }
        // Everything is on record before a run is said to be over.
        print(args, &followed.read(place, args.json)?)?;
        if info.status == RunStatus::Ended || !info.driven {
            told(args, &info);
            return Ok(Exit::Ok);
        }
        std::thread::sleep(LOOK);
    }
}

fn follow_all(args: &Tail, place: &Place) -> Result<Exit> {
    let since = SystemTime::now();
    let mut all: BTreeMap<RunId, Followed> = BTreeMap::new();
    let mut speaks = None;
    if !args.json {
        print_plain(&paint(DIM, format_args!("following {}; Ctrl-C ends this", place.file())));
    }
    loop {
        let mut query = RunQuery::default();
        query.limit = Some(MOST);
        let mut infos = place.store.runs(&query)?;
        infos.reverse();
        for info in infos {
            let is_new = info.started >= since || info.status != RunStatus::Ended;
            if !is_new && !all.contains_key(&info.id) {
                continue;
            }
            let run = info.id;
            let known = all.contains_key(&run);
            let is_old = info.started < since;
            let followed = all.entry(run).or_insert_with(|| Followed::new(info.clone()));
            let mut lines = followed.read(place, args.json)?;
            if !known && is_old {
                lines = lines.split_off(lines.len().saturating_sub(args.lines));
            }
            if lines.is_empty() {
                continue;
            }
            if !args.json && speaks.replace(run) != Some(run) {
                print_plain(&title(&info));
            }
            print(args, &lines)?;
            if info.status == RunStatus::Ended {
                told(args, &info);
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn print(args: &Tail, lines: &[String]) -> Result<()> {
    for line in lines {
        if args.json {
            sink::print_as_written(line)?;
        } else {
            sink::print_text(line)?;
        }
    }
    Ok(())
}

/// Which run speaks.
fn title(info: &RunInfo) -> String {
    format!("{} {}", paint(BOLD, what(info)), paint(DIM, info.id))
}

/// Where the run stands, once nobody drives it any more.
fn told(args: &Tail, info: &RunInfo) {
    if args.json {
        return;
    }
    let (style, status) = standing(info);
    let note = match info.status {
        RunStatus::Ended => String::new(),
        RunStatus::Waiting => " · see `tenure asks`".to_owned(),
        _ => format!(" · nobody drives it; go on with `tenure run --resume {}`", info.id),
    };
    print_plain(&format!("{}{}", paint(style, status), paint(DIM, note)));
}
