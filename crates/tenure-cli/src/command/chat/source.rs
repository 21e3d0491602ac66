//! Where messages come from: a person at a terminal, or a pipe.

use super::slash::words;
use crate::terminal::{LineEditor, Screen, Typed};
use anyhow::{Context as _, Result};
use std::io::{BufRead as _, IsTerminal as _};
use tenure_cards::team::Team;
use tokio::sync::mpsc::{Receiver, channel};

/// So many lines of a pipe wait to be said.
const WAITING: usize = 16;

pub(super) enum Source {
    Person(LineEditor),
    Pipe(Receiver<std::io::Result<String>>),
}

impl Source {
    pub(super) fn open(team: &Team) -> Result<Self> {
        if std::io::stdin().is_terminal() {
            return Ok(Self::Person(LineEditor::open(words(&team.agents(), &[]))?));
        }
        let (send, lines) = channel(WAITING);
        std::thread::Builder::new()
            .name("messages".to_owned())
            .spawn(move || {
                for line in std::io::stdin().lock().lines() {
                    if send.blocking_send(line).is_err() {
                        return;
                    }
                }
            })
            .context("standard input cannot be read")?;
        Ok(Self::Pipe(lines))
    }

    pub(super) fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }

    /// The next message. If the future is dropped nothing is lost.
    pub(super) async fn next(&mut self, prompt: &str, screen: &Screen) -> Typed {
        match self {
            Self::Person(editor) => {
                if !editor.is_editing() {
                    // Whatever was drawn goes away before the prompt comes, and is not drawn again
                    // above it: who is still at work would erase it.
                    let _quiet = screen.hold();
                    editor.begin(prompt);
                }
                editor.read(prompt).await
            }
            Self::Pipe(lines) => match lines.recv().await {
                Some(Ok(line)) => Typed::Message(line),
                Some(Err(error)) => Typed::Broken(error.to_string()),
                None => Typed::End,
            },
        }
    }

    /// Completes what there is now.
    pub(super) fn follow(&self, team: &Team, agent: &str) {
        if let Self::Person(editor) = self {
            let prompts = team.prompts(agent).unwrap_or_default();
            let prompts: Vec<_> =
                prompts.iter().map(|it| format!("{}/{}", it.server, it.name)).collect();
            editor.set_words(words(&team.agents(), &prompts));
        }
    }
}
