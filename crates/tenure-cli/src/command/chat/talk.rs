//! The conversation: what is typed, one after the other, until somebody leaves.

use super::super::ended::{Drove, Ended};
use super::super::project::Opened;
use super::super::reload::{ReloadWishes, Reloaded, Watcher, reload};
use super::flush::Flush;
use super::keep::Keep;
use super::show;
use super::slash::{self, parse};
use super::source::Source;
use super::turn::After;
use crate::exit::Exit;
use crate::signal::Stopper;
use crate::terminal::sink::print_answer;
use crate::terminal::style::{BAD, DIM, WARN, paint};
use crate::terminal::text::clean_block;
use crate::terminal::{Screen, Typed, print_plain};
use crate::trust::would_ask;
use anyhow::{Result, anyhow};
use std::future::pending;
use tenure_cards::team::{Conversation, Run, Team, TeamError};
use tenure_core::CancelToken;
use tenure_core::event::EventBus;
use tenure_core::message::Message;

pub(super) struct Talk {
    pub(super) team: Box<Team>,
    /// The agent that is talked to.
    agent: String,
    pub(super) bus: EventBus,
    pub(super) ears: Ears,
    wishes: ReloadWishes,
    /// Files have changed, and are taken as soon as the keyboard is free for a question.
    changed: bool,
    /// What was typed while something else was waited for.
    typed: Option<Typed>,
}

/// What is listened to beside the person and the agents.
pub(super) struct Ears {
    /// Stopped by a person who leaves a question.
    pub(super) left: Stopper,
    /// Questions that wait for what was said before them.
    pub(super) flush: Flush,
    /// Who knows of changes.
    pub(super) watcher: Option<Watcher>,
    /// Who keeps what is said.
    pub(super) keep: Option<Keep>,
}

/// What there is to do.
enum Next {
    Typed(Typed),
    Changed,
    /// The program is to end.
    Stopped,
}

impl Talk {
    pub(super) fn new(
        team: Team,
        agent: String,
        bus: EventBus,
        ears: Ears,
        wishes: ReloadWishes,
    ) -> Self {
        let team = Box::new(team);
        Self { team, agent, bus, ears, wishes, changed: false, typed: None }
    }

    pub(super) fn screen(&self) -> &Screen {
        &self.wishes.screen
    }

    pub(super) fn stopper(&self) -> &Stopper {
        &self.wishes.stopper
    }

    /// Says something beside the answers, where that is wanted.
    pub(super) fn note(&self, text: &str) {
        if !self.screen().is_quiet() {
            let _quiet = self.screen().hold();
            print_plain(text);
        }
    }

    /// Starts the agents, talks, stops the agents: the last whatever happens before.
    pub(super) async fn run(mut self, mut source: Source) -> Result<Exit> {
        let started = tokio::select! {
            biased;
            () = self.stopper().stopped() => None,
            started = self.team.start() => Some(started),
        };
        match started {
            Some(Ok(())) => {}
            Some(Err(error)) => return Ok(self.failed(Err(error))),
            // The start was dropped; it is rolled back in the background, and that is waited for.
            None => {
                self.team.settled().await;
                return Ok(self.stopper().cause().unwrap_or(Exit::Cancelled));
            }
        }
        let exit = self.talk(&mut source).await;
        // Leaves the terminal in order, should a line be unfinished.
        drop(source);
        self.team.shutdown().await;
        self.complain();
        exit.map(|exit| self.stopper().cause().unwrap_or(exit))
    }

    async fn talk(&mut self, source: &mut Source) -> Result<Exit> {
        let mut conversation = match self.team.conversation() {
            Ok(conversation) => conversation,
            Err(error) => return Ok(self.failed(Err(error))),
        };
        if source.is_person() {
            self.note(&show::greeting(&self.team, &self.agent));
        }
        let joined = tokio::select! {
            biased;
            () = self.stopper().stopped() => return Ok(Exit::Cancelled),
            joined = conversation.join(&self.agent) => joined,
        };
        match joined {
            Ok(None) => {}
            Ok(Some(run)) => print_answer(&clean_block(&run.output))?,
            Err(error) => return Ok(self.failed(Err(error))),
        }
        let recalled = self.ears.keep.as_ref().map(|keep| keep.recall(&self.team, &self.agent));
        if let Some(Err(error)) = recalled {
            return Ok(self.failed(Err(error)));
        }
        if source.is_person() {
            self.stopper().interrupts().talk();
        }
        let exit = self.listen(source, &mut conversation).await;
        self.stopper().interrupts().leave();
        if self.stopper().cause().is_none() {
            let failures = conversation.end().await;
            let _quiet = self.screen().hold();
            show::warnings(self.screen(), failures.iter());
        }
        exit
    }

    /// Does what is typed until somebody leaves.
    async fn listen(
        &mut self,
        source: &mut Source,
        conversation: &mut Conversation,
    ) -> Result<Exit> {
        loop {
            source.follow(&self.team, &self.agent);
            let typed = match self.next(source).await {
                Next::Stopped => return Ok(Exit::Ok),
                Next::Changed => {
                    self.take_changes(source, conversation).await;
                    continue;
                }
                Next::Typed(typed) => typed,
            };
            if std::mem::take(&mut self.changed)
                && !self.reload(conversation, pending()).await
                && matches!(typed, Typed::Message(_))
            {
                // Who did not want to wait gets the prompt back, and finds the line with arrow up.
                continue;
            }
            let line = match typed {
                Typed::Message(line) => line,
                Typed::Cleared => continue,
                Typed::Interrupted => {
                    self.note(&paint(DIM, "Ctrl-D or /exit leaves"));
                    continue;
                }
                Typed::End => return Ok(Exit::Ok),
                Typed::Broken(why) => return Err(anyhow!("nothing can be read any more: {why}")),
            };
            match self.obey(conversation, &line).await? {
                After::Next => {}
                After::Leave(exit) => return Ok(exit),
            }
            if self.ears.left.cause().is_some() {
                return Ok(Exit::Ok);
            }
        }
    }

    async fn next(&mut self, source: &mut Source) -> Next {
        if let Some(typed) = self.typed.take() {
            return Next::Typed(typed);
        }
        let prompt = self.prompt();
        let (stopper, screen) = (self.wishes.stopper.clone(), self.wishes.screen.clone());
        let waits = self.changed;
        let changed = async {
            match &mut self.ears.watcher {
                Some(watcher) if !waits => watcher.changed().await,
                _ => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopper.stopped() => Next::Stopped,
            typed = source.next(&prompt, &screen) => Next::Typed(typed),
            () = changed => Next::Changed,
        }
    }

    /// Takes files that have changed: at once, unless a person has to be asked who is typing.
    async fn take_changes(&mut self, source: &mut Source, conversation: &mut Conversation) {
        let must_ask = || {
            let opened = Opened::at(&self.wishes.path).ok();
            opened.is_some_and(|it| {
                !it.report().has_errors() && would_ask(it.root(), &it.items(), self.wishes.leave)
            })
        };
        if source.is_person() && must_ask() {
            self.changed = true;
            let text = "files changed, and what they would run has to be trusted: press Enter to \
                        look at it";
            print_plain(&format!("{} {text}", paint(WARN, "changed:")));
            return;
        }
        if !source.is_person() {
            self.reload(conversation, pending()).await;
            return;
        }
        // While a line is typed Ctrl-C is a key and no signal.
        let (prompt, screen) = (self.prompt(), self.wishes.screen.clone());
        let mut typed = None;
        let left = async {
            match source.next(&prompt, &screen).await {
                Typed::Interrupted | Typed::Cleared => {}
                message @ Typed::Message(_) => {
                    typed = Some(message);
                    pending().await
                }
                end => typed = Some(end),
            }
        };
        self.reload(conversation, left).await;
        self.typed = typed;
    }

    /// What stands before what is typed.
    fn prompt(&self) -> String {
        format!("{}> ", clean_block(&self.agent))
    }

    /// Puts agents made of the files as they are now in the place of those that run. Ctrl-C ends
    /// that, and so does a person who has `left`; then this is false.
    async fn reload(
        &mut self,
        conversation: &mut Conversation,
        left: impl Future<Output = ()>,
    ) -> bool {
        let pressed = self.stopper().interrupts().turn_begins();
        let leaving = async {
            left.await;
            pressed.cancel();
            pending().await
        };
        let was_kept = tokio::select! {
            biased;
            was_kept = self.take_files(conversation, &pressed) => was_kept,
            never = leaving => never,
        };
        self.stopper().interrupts().turn_ends();
        !(was_kept && pressed.is_cancelled())
    }

    /// The same, while Ctrl-C cancels `pressed`. Says whether the agents that run stay.
    async fn take_files(&mut self, conversation: &mut Conversation, pressed: &CancelToken) -> bool {
        let Some(watcher) = &mut self.ears.watcher else { return true };
        let reloaded = reload(&self.team, &self.wishes, watcher, pressed).await;
        let Reloaded::Replaced(new) = reloaded else { return true };
        match new.conversation_after(conversation) {
            Ok(next) => {
                // The ends of the old chat belong to the old agents.
                let ends = std::mem::replace(conversation, next).end();
                self.ending(pressed, ends).await;
            }
            Err(error) => print_plain(&format!("{} {error}", paint(BAD, "error:"))),
        }
        let old = std::mem::replace(&mut self.team, new);
        self.ending(pressed, old.shutdown()).await;
        if self.team.entry(Some(&self.agent)).is_err()
            && let Ok(entry) = self.team.entry(None)
        {
            let entry = entry.to_owned();
            self.note(&format!("`{}` is gone; you talk to `{entry}` now", self.agent));
            self.agent = entry;
        }
        false
    }

    /// Waits for ends of the old agents. They always run whole, and who presses Ctrl-C is told.
    async fn ending<T>(&self, pressed: &CancelToken, ends: impl Future<Output = T>) -> T {
        let mut ends = std::pin::pin!(ends);
        tokio::select! {
            biased;
            ended = &mut ends => return ended,
            () = pressed.cancelled() => {
                let text = "the files are taken, and the old agents are still ending";
                self.screen().announce(paint(WARN, text));
            }
        }
        ends.await
    }

    /// What a command waits for; `None` if somebody did not want to wait, and that is said.
    async fn unless_stopped<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let pressed = self.stopper().interrupts().turn_begins();
        let came = tokio::select! {
            biased;
            () = self.stopped(&pressed) => None,
            came = awaited => Some(came),
        };
        self.stopper().interrupts().turn_ends();
        if came.is_none() {
            self.note(&paint(WARN, "cancelled"));
        }
        came
    }

    /// Does what was typed.
    async fn obey(&mut self, conversation: &mut Conversation, line: &str) -> Result<After> {
        let typed = parse(line, &self.team.agents());
        let text = match typed {
            slash::Typed::Nothing => return Ok(After::Next),
            slash::Typed::Say { to, message } => {
                let to = to.unwrap_or_else(|| self.agent.clone());
                return self.turn(conversation, &to, message).await;
            }
            slash::Typed::Exit => return Ok(After::Leave(Exit::Ok)),
            slash::Typed::Agent(name) => {
                self.agent = name;
                return Ok(After::Next);
            }
            slash::Typed::Prompt { server, name, arguments } => {
                let arguments = arguments.into_iter().collect();
                let prompt = self.team.prompt(&self.agent, &server, &name, arguments);
                let Some(prompt) = self.unless_stopped(prompt).await else {
                    return Ok(After::Next);
                };
                match prompt.map(|messages| said(&messages)) {
                    Ok(message) if message.is_empty() => "the prompt says nothing".to_owned(),
                    Ok(message) => {
                        self.note(&paint(DIM, clean_block(&message)));
                        let agent = self.agent.clone();
                        return self.turn(conversation, &agent, message).await;
                    }
                    Err(error) => return Ok(problem(&error.to_string())),
                }
            }
            slash::Typed::Clear => match conversation.forget() {
                Ok(()) => "forgotten".to_owned(),
                Err(error) => return Ok(problem(&error.to_string())),
            },
            slash::Typed::Help => show::help(),
            slash::Typed::Agents => show::agents(&self.team, &self.agent),
            slash::Typed::Tools => show::tools(&self.team, &self.agent),
            slash::Typed::Hooks(point) => show::hooks(&self.team, &self.agent, point),
            slash::Typed::State => show::state(&self.team, &self.agent, conversation),
            slash::Typed::History(most) => show::history(&self.team, &self.agent, most),
            slash::Typed::Usage => self.screen().usage().join("\n"),
            slash::Typed::Servers => show::servers(&self.team),
            slash::Typed::Prompts => show::prompts(&self.team, &self.agent),
            slash::Typed::Wrong(why) => return Ok(problem(&why)),
        };
        super::super::say(&text)?;
        Ok(After::Next)
    }

    /// Says why there is no chat, and what code that is.
    fn failed(&self, result: Result<Run, TeamError>) -> Exit {
        let drove = Drove { result: Some(result), ..Drove::default() };
        let cause = self.stopper().cause();
        let ended = Ended::new(&self.agent, drove, cause, self.screen().clone());
        let _quiet = self.screen().hold();
        ended.complain();
        ended.exit()
    }

    /// Says what failed at starts and shutdowns.
    fn complain(&self) {
        let agents = self.team.agents();
        let agents = agents.iter().filter_map(|name| self.team.agent(name));
        let failures: Vec<_> = agents.flat_map(|agent| agent.failures()).collect();
        let _quiet = self.screen().hold();
        show::warnings(self.screen(), failures.iter());
    }
}

/// Says what is wrong with a command: not where answers go.
fn problem(text: &str) -> After {
    print_plain(&paint(WARN, clean_block(text)));
    After::Next
}

/// What the messages of a prompt say, as one message.
fn said(messages: &[Message]) -> String {
    let texts: Vec<_> = messages.iter().map(Message::text).filter(|it| !it.is_empty()).collect();
    texts.join("\n\n")
}
