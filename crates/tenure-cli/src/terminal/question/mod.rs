//! Questions to the person at the terminal.
//!
//! What was typed before a question was put never answers it. [`show`] is what is put, `converse`
//! and `form` lead the conversation with a `person`, and `editor` is the person's own.

mod allowed;
mod converse;
mod diff;
mod editor;
mod form;
mod person;
mod show;
#[cfg(test)]
mod tests;

pub(crate) use allowed::Allowed;
pub(crate) use show::question;

use super::keyboard::Typed;
use super::screen::Screen;
use super::sink::{print_plain, prompt};
use super::size::width;
use super::style::{BOLD, DIM, WARN, paint};
use super::text::clean_line;
use crate::exit::Exit;
use crate::person::is_beneath_tenure;
use crate::signal::Stopper;
use async_trait::async_trait;
use person::AtTerminal;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::Instant;

/// Whether there is a person to ask, who sees standard error and types on standard input. At a terminal that was
/// opened by what Tenure started there is none.
pub(crate) fn is_anybody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !is_beneath_tenure()
}

/// How often it is looked whether a question was taken back.
const LOOK: Duration = Duration::from_millis(20);

/// Asks a yes-or-no question outside of a run. Anything but a yes is a no, and so is a question that
/// was taken back.
pub(crate) fn confirm(question: &str, taken_back: &CancelToken) -> bool {
    let mut lines = Typed::blocking();
    prompt(&format!("{} {} ", paint(BOLD, question), paint(DIM, "[y/N]")));
    let answer = loop {
        match lines.try_recv() {
            Ok(line) => break line,
            Err(TryRecvError::Disconnected) => break String::new(),
            Err(TryRecvError::Empty) if taken_back.is_cancelled() => {
                print_plain("");
                break String::new();
            }
            Err(TryRecvError::Empty) => std::thread::sleep(LOOK),
        }
    };
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Puts the questions of agents to the person at the terminal. Where there is none, every question
/// is denied, unless it is left open.
pub(crate) struct TerminalAsker {
    screen: Screen,
    stopper: Stopper,
    unanswered: Arc<AtomicBool>,
    /// Whether questions are left open where nobody is here to answer them.
    leaves_open: bool,
    /// Whether what needs a person is put off where nobody is here, instead of denied.
    puts_off: bool,
    /// How many questions wait, the one on the screen included.
    waiting: AtomicUsize,
}

impl TerminalAsker {
    /// Asks on the terminal that shows `screen`. A question that is left without an answer stops
    /// the run.
    pub(crate) fn new(screen: Screen, stopper: Stopper) -> Self {
        let (unanswered, waiting) = (Arc::default(), AtomicUsize::new(0));
        Self { screen, stopper, unanswered, leaves_open: false, puts_off: false, waiting }
    }

    /// Where nobody is here to answer them, questions are left open for somebody elsewhere.
    pub(crate) fn left_open(mut self) -> Self {
        self.leaves_open = true;
        self
    }

    /// Where nobody is here, whoever can wait for a person does: the question is not put at all. One
    /// that is put all the same is denied.
    pub(crate) fn put_off(mut self) -> Self {
        self.puts_off = true;
        self
    }

    /// Becomes true once a question came up that nobody was there to answer.
    pub(crate) fn unanswered(&self) -> Arc<AtomicBool> {
        self.unanswered.clone()
    }

    fn deny(&self, ask: &PendingAsk) -> Answer {
        self.unanswered.store(true, Ordering::Relaxed);
        let or_yes = match (&ask.tool, ask.ask.is_approval()) {
            (Some(tool), true) => format!(", or approve every call with `--yes {tool}`"),
            _ => String::new(),
        };
        self.screen.print(&format!(
            "{} {} asks \"{}\", and there is no terminal to answer on: denied; run it in a \
             terminal to be asked{}",
            paint(WARN, "denied:"),
            clean_line(&ask.agent),
            clean_line(&ask.ask.prompt),
            clean_line(&or_yes)
        ));
        Answer::Reject("there is no terminal to ask a person on".to_owned())
    }
}

#[async_trait]
impl Asker for TerminalAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        if !is_anybody_there() {
            return (!self.leaves_open).then(|| self.deny(ask));
        }
        let deadline = ask.ask.expires_after.and_then(|after| Instant::now().checked_add(after));
        let _counted = Counted::new(&self.waiting);
        // One question at a time, whoever asks.
        let mut person = AtTerminal::new(Typed::lines().await, deadline);
        let _quiet = self.screen.hold();
        let mut open = Open { deadline, is_open: true };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let waiting = self.waiting.load(Ordering::Relaxed);
        let words = match show::is_turn(ask) && self.screen.has_just_shown(&ask.ask.prompt) {
            true => show::Words::Seen,
            false => show::Words::Unseen,
        };
        let shown = show::put(ask, (1, waiting), left, words, width());
        print_plain(&shown.lines.join("\n"));
        let answer = converse::converse(ask, shown.is_cut, &mut person).await;
        open.is_open = false;
        if answer.is_none() {
            print_plain("");
            self.stopper.stop(Exit::Cancelled);
        }
        answer
    }

    /// Where nobody is here, a question that is neither left open nor put off is answered all the
    /// same: with a no that counts, because the run then ends as denied.
    fn is_there(&self) -> bool {
        is_anybody_there() || !(self.leaves_open || self.puts_off)
    }
}

/// One of those that wait.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A question on the screen. If it is taken back, the person is told.
struct Open {
    deadline: Option<Instant>,
    is_open: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let why = match is_late {
            true => "nobody answered in time; that counts as rejected",
            false => "this question is no longer open; nothing needs to be answered",
        };
        print_plain(&format!("\n{}", paint(WARN, format_args!("  {why}"))));
    }
}

/// The reason of a refusal: what was typed, if anything was.
fn reason(typed: &str) -> String {
    match typed.trim() {
        "" => "rejected by the user".to_owned(),
        why => why.to_owned(),
    }
}
