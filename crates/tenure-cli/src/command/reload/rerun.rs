//! `tenure run --watch`: the same message again on every change, to agents that live on in between.

use super::super::cards::named;
use super::super::ended::{Drove, Ended};
use super::super::ground::Shown;
use super::super::session::{Session, Task, closest, converse, listen};
use super::{Conversations, ReloadWishes, Reloaded, Telling, Watcher, reload};
use crate::exit::Exit;
use crate::signal::Stopper;
use crate::terminal::style::{DIM, WARN, paint};
use crate::terminal::text::clean_line;
use crate::terminal::{Screen, print_json};
use crate::trust::Leave;
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_cards::team::Team;
use tenure_core::CancelToken;
use tenure_core::hook::Limit;
use tokio::time::Instant;

/// What is run again and again.
pub(in super::super) struct Rerun {
    /// The card or folder that was asked for.
    pub(in super::super) path: PathBuf,
    /// The agent that was named, if one was.
    pub(in super::super) named: Option<String>,
    /// The agent that the first run talks to.
    pub(in super::super) agent: String,
    /// What it is told.
    pub(in super::super) message: String,
    /// What was said about trust.
    pub(in super::super) leave: Leave,
    /// How it is told.
    pub(in super::super) telling: Telling,
    /// Whether a question came up that nobody could answer.
    pub(in super::super) unanswered: Arc<AtomicBool>,
    /// Who knows of changes.
    pub(in super::super) watcher: Watcher,
}

/// Starts the agents, runs the turn, and runs it again on every change until it is stopped. Then the
/// agents are stopped.
pub(in super::super) fn rerun(session: Session, again: Rerun) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let Session { team, bus, screen, stopper, timeout } = session;
    let shown = screen.watch(&bus, runtime.handle());
    listen(&Shown::new(&screen), &stopper)?;
    let exit = runtime.block_on(live(team, &screen, &stopper, timeout, again));
    stopper.ended();
    shown.end();
    runtime.shutdown_background();
    exit
}

async fn live(
    team: Team,
    screen: &Screen,
    stopper: &Stopper,
    timeout: Option<Limit>,
    again: Rerun,
) -> Result<Exit> {
    let Rerun { path, named: asked, mut agent, message, leave, telling, unanswered, mut watcher } =
        again;
    let wishes = ReloadWishes {
        path,
        agent: asked,
        // Each run asks the same again, and is to answer as if it was the first.
        conversations: Conversations::BeginAnew,
        leave,
        telling,
        screen: screen.clone(),
        stopper: stopper.clone(),
    };
    let mut team = Box::new(team);
    if let Some(exit) = first_start(&team, &agent, &wishes).await {
        return Ok(exit);
    }
    watcher.excuse(screen);
    let mut number = 1;
    'runs: loop {
        separate(number, &wishes);
        let task = Task { agent: &agent, message: message.clone(), timeout };
        let mut ended = one(&team, task, &wishes).await;
        if unanswered.swap(false, Ordering::Relaxed) {
            ended = ended.unanswered();
        }
        show(&ended, number, &wishes);
        loop {
            tokio::select! {
                biased;
                () = stopper.stopped() => break 'runs,
                () = watcher.changed() => {}
            }
            // Ctrl-C ends the program.
            match reload(&team, &wishes, &mut watcher, &CancelToken::new()).await {
                Reloaded::Kept if stopper.cause().is_some() => break 'runs,
                Reloaded::Kept => {}
                Reloaded::Replaced(new) => {
                    let old = std::mem::replace(&mut team, new);
                    end(&old, &wishes).await;
                    break;
                }
            }
        }
        agent = entry(&team, &wishes).unwrap_or(agent);
        number += 1;
    }
    end(&team, &wishes).await;
    Ok(stopper.cause().unwrap_or(Exit::Ok))
}

/// Stops a team, and says what failed beside its runs.
async fn end(team: &Team, wishes: &ReloadWishes) {
    let agents: Vec<_> = team.agents().iter().filter_map(|name| team.agent(name)).collect();
    team.shutdown().await;
    if wishes.telling == Telling::Problems {
        return;
    }
    for failure in agents.iter().flat_map(|agent| agent.failures()) {
        let text = clean_line(&failure.to_string());
        wishes.screen.print(&format!("{} {text}", paint(WARN, "warning:")));
    }
}

/// Starts the first team. Says how the program ends if that was not possible: nothing lives that
/// could be kept.
async fn first_start(team: &Team, agent: &str, wishes: &ReloadWishes) -> Option<Exit> {
    let started = tokio::select! {
        biased;
        () = wishes.stopper.stopped() => None,
        started = team.start() => Some(started),
    };
    let result = match started {
        Some(Ok(())) => return None,
        Some(Err(error)) => Some(Err(error)),
        None => {
            team.settled().await;
            None
        }
    };
    let drove = Drove { result, ..Drove::default() };
    let ended = Ended::new(agent, drove, wishes.stopper.cause(), wishes.screen.clone());
    if wishes.telling == Telling::Json {
        print_json(ended.to_json());
    }
    let _quiet = wishes.screen.hold();
    ended.complain();
    Some(ended.exit())
}

/// One run of the message.
async fn one(team: &Team, task: Task<'_>, wishes: &ReloadWishes) -> Ended {
    let agent = task.agent.to_owned();
    let deadline = task.timeout.map(|limit| (limit, Instant::now() + limit.duration()));
    let bound = closest(deadline, team.loaded().project.config.turn_limit);
    let left = bound.as_ref().map(|(_, left)| *left);
    let result = match wishes.stopper.cause() {
        Some(_) => None,
        None => Some(converse(team, &wishes.stopper, task, left).await),
    };
    let bound = bound.map(|(bound, _)| bound);
    let drove = Drove { result, bound, ..Drove::default() };
    Ended::new(&agent, drove, wishes.stopper.cause(), wishes.screen.clone())
}

/// The agent that is talked to: it was made sure that there is one.
fn entry(team: &Team, wishes: &ReloadWishes) -> Option<String> {
    let name = named(wishes.agent.as_deref(), &wishes.path, team.loaded()).ok()?;
    team.entry(name.as_deref()).ok().map(str::to_owned)
}

/// The line before a run.
fn separate(number: u64, wishes: &ReloadWishes) {
    if wishes.telling == Telling::Words {
        wishes.screen.print(&paint(DIM, format_args!("--- run {number} ---")));
    }
}

/// The answer, or what went wrong, and that the next change is waited for.
fn show(ended: &Ended, number: u64, wishes: &ReloadWishes) {
    let _quiet = wishes.screen.hold();
    if wishes.telling == Telling::Json {
        let mut line = ended.to_json();
        line["run"] = number.into();
        print_json(line);
    } else if let Err(error) = ended.answer() {
        // Nobody reads the answers any more, so there is nothing to run for.
        wishes.stopper.stop(match error.root_cause().downcast_ref::<std::io::Error>() {
            Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Exit::Ok,
            _ => Exit::Failed,
        });
        return;
    }
    ended.complain();
    if wishes.telling == Telling::Words && wishes.stopper.cause().is_none() {
        let text = format!("run {number} is over; waiting for changes (Ctrl-C ends)");
        crate::terminal::print_plain(&paint(DIM, text));
    }
}
