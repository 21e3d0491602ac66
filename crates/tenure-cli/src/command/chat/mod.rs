//! `tenure chat`: a person talks to agents.
//!
//! [`talk`] is the conversation itself, [`turn`] one message and its answer, [`answer`] how that is
//! shown, [`slash`] what can be typed beside messages, [`show`] what the commands print, [`source`] where
//! lines come from, and [`flush`] what keeps questions behind what was said before them.

mod answer;
mod flush;
mod keep;
mod show;
mod slash;
mod source;
mod talk;
mod turn;

use super::admission::{Admitted, Request};
use super::cards::{most_lines, named};
use super::ground::Shown;
use super::project::{Opened, complain_about};
use super::reload::{Conversations, ReloadWishes, Telling};
use super::session::{Session, Wishes, listen};
use super::workflow::not_for_workflows;
use crate::args::Chat;
use crate::exit::Exit;
use crate::signal::Stopper;
use crate::terminal::{EventLines, Progress, Screen, asker};
use anyhow::{Context as _, Result};
use flush::Flush;
use keep::Keep;
use source::Source;
use talk::{Ears, Talk};

pub(super) fn run(args: &Chat) -> Result<Exit> {
    not_for_workflows(
        &args.path,
        "`chat` is for cards: it talks to one agent at a time",
        "talk in it with `tenure run {}`",
    )?;
    let opened = Opened::at(&args.path)?;
    if opened.report().has_errors() {
        opened.complain();
        return Ok(Exit::Check);
    }
    let (root, items) = (opened.root().to_owned(), opened.items());
    let named = named(args.agent.as_deref(), &args.path, &opened.loaded)?;
    let progress = match args.quiet {
        true => Progress::Nothing,
        false => Progress::on_stderr(most_lines(&opened)),
    };
    let screen = Screen::new(progress, EventLines::Nothing);
    let stopper = Stopper::default();
    // Who leaves a question leaves the chat.
    let left = Stopper::default();
    let flush = Flush::default();
    let asker = flush.before(asker(screen.clone(), left.clone(), &args.yes));
    let wishes = Wishes { model: args.model.clone(), timeout: None };
    let session = match Session::new(opened.loaded, wishes, screen, stopper, asker) {
        Ok(session) => session,
        Err(report) => {
            complain_about(&report);
            return Ok(Exit::Check);
        }
    };
    let Admitted { agent, watcher, leave } = session.admit(&Request {
        root: &root,
        path: &args.path,
        items: &items,
        named: named.as_deref(),
        yes: &args.yes,
        trust: args.trust,
        watch: args.watch,
        quiet: args.quiet,
    })?;
    let reload = ReloadWishes {
        path: args.path.clone(),
        agent: args.agent.clone(),
        conversations: Conversations::GoOn,
        leave,
        telling: if args.quiet { Telling::Problems } else { Telling::Words },
        screen: session.screen.clone(),
        stopper: session.stopper.clone(),
    };
    let keep = Keep::open(args, &session.team().loaded().project, &agent)?;
    hold(session, agent, Ears { left, flush, watcher, keep }, reload)
}

/// Starts the agents, talks, and stops the agents, whatever happens in between.
fn hold(session: Session, agent: String, ears: Ears, reload: ReloadWishes) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let Session { team, bus, screen, stopper, .. } = session;
    let shown = screen.watch(&bus, runtime.handle());
    listen(&Shown::new(&screen), &stopper)?;
    let result = runtime.block_on(async {
        let source = Source::open(&team)?;
        let talk = Talk::new(team, agent, bus, ears, reload);
        talk.run(source).await
    });
    stopper.ended();
    shown.end();
    // What is left belongs to nobody any more, and must not hold up the end of the program.
    runtime.shutdown_background();
    result
}
