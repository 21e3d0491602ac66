//! The line editor of a chat.
//!
//! A thread of its own edits a line whenever it is asked for one, and only then: between two lines
//! the keyboard belongs to questions. What others print while a line is edited is put above it.

mod helper;
mod history;

pub(crate) use helper::Words;

use super::keyboard;
use super::sink;
use super::style::{CALM, paint};
use anyhow::{Context as _, Result};
use helper::{Helper, bind_keys, unbroken};
use history::Past;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::{ReadlineError, Signal};
use rustyline::{Behavior, ColorMode, CompletionType, Config, ExternalPrinter as _};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What came of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It was entered; it may have several lines.
    Message(String),
    /// Ctrl-C, and there was something to throw away.
    Cleared,
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-D: the person leaves.
    End,
    /// The terminal cannot be read any more.
    Broken(String),
}

/// Reads messages from the person at the terminal.
pub(crate) struct LineEditor {
    prompts: Sender<String>,
    typed: UnboundedReceiver<Typed>,
    /// Whether a line has been asked for that has not come.
    asked: bool,
    words: Arc<Mutex<Words>>,
}

type Editor = rustyline::Editor<Helper, rustyline::history::FileHistory>;

impl LineEditor {
    /// An editor that completes `words`, and remembers what was said in the user's folder.
    pub(crate) fn open(words: Words) -> Result<Self> {
        remember_terminal();
        let words = Arc::new(Mutex::new(words));
        let empty = Arc::new(AtomicBool::new(true));
        let past = Past::open();
        let mut editor =
            Editor::with_config(config()?).context("the terminal cannot be edited on")?;
        editor.set_helper(Some(Helper::new(words.clone())));
        bind_keys(&mut editor, &empty);
        past.load(&mut editor);
        // Where nothing can be put above the line, it is printed as it comes.
        if let Ok(mut printer) = editor.create_external_printer() {
            let (send, lines): (Sender<String>, Receiver<String>) = channel();
            // It may have to wait for the editor, and then nobody else has to.
            std::thread::Builder::new().name("above".to_owned()).spawn(move || {
                while let Ok(line) = lines.recv() {
                    // A terminal that went away takes nothing, and the chat ends by itself.
                    let _ = printer.print(line);
                }
            })?;
            sink::above(send);
        }
        let (prompts, asked_for) = channel();
        let (send, typed) = unbounded_channel();
        std::thread::Builder::new()
            .name("editor".to_owned())
            .spawn(move || edit(editor, &past, &asked_for, &send, &empty))?;
        Ok(Self { prompts, typed, asked: false, words })
    }

    /// Changes what is completed.
    pub(crate) fn set_words(&self, words: Words) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Puts the prompt, unless a line is being edited. From here on nothing is drawn.
    pub(crate) fn begin(&mut self, prompt: &str) {
        if !self.asked {
            self.asked = true;
            sink::set_edited(true);
            // If the thread is gone, so is the other channel.
            let _ = self.prompts.send(prompt.to_owned());
        }
    }

    /// The next message. If the future is dropped the line stays, and the next call goes on with
    /// it, whatever its prompt.
    pub(crate) async fn read(&mut self, prompt: &str) -> Typed {
        self.begin(prompt);
        let typed = self.typed.recv().await;
        self.asked = false;
        sink::set_edited(false);
        typed.unwrap_or_else(|| Typed::Broken("the line editor has ended".to_owned()))
    }

    /// Whether a line is being edited.
    pub(crate) fn is_editing(&self) -> bool {
        self.asked
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        if self.asked {
            restore_terminal();
        }
    }
}

fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

fn config() -> Result<Config> {
    let out = std::io::stdout().is_terminal();
    let config = Config::builder()
        .max_history_size(history::MOST)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .auto_add_history(false)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bracketed_paste(true)
        .color_mode(if has_colours() { ColorMode::Enabled } else { ColorMode::Disabled })
        // Where the answers go into a file, the prompt does not.
        .behavior(if out { Behavior::Stdio } else { Behavior::PreferTerm });
    Ok(config.build())
}

/// Edits a line for each prompt.
fn edit(
    mut editor: Editor,
    past: &Past,
    prompts: &Receiver<String>,
    send: &UnboundedSender<Typed>,
    empty: &AtomicBool,
) {
    while let Ok(prompt) = prompts.recv() {
        let typed = {
            let _alone = keyboard::alone();
            let styled = if has_colours() { paint(CALM, &prompt) } else { prompt.clone() };
            empty.store(true, Ordering::Release);
            loop {
                match editor.readline(&(prompt.as_str(), styled.as_str())) {
                    // The size of the window has changed; it is drawn anew.
                    Err(ReadlineError::Signal(Signal::Resize)) => {}
                    other => break other,
                }
            }
        };
        let typed = match typed {
            Ok(line) => {
                let line = unbroken(&line);
                past.remember(&mut editor, &line);
                Typed::Message(line)
            }
            Err(ReadlineError::Eof) => Typed::End,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                match empty.load(Ordering::Acquire) {
                    true => Typed::Interrupted,
                    false => Typed::Cleared,
                }
            }
            Err(error) => Typed::Broken(error.to_string()),
        };
        if send.send(typed).is_err() {
            return;
        }
    }
}

/// How the terminal was before it was edited on.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

fn remember_terminal() {
    let before = tcgetattr(std::io::stdin()).ok();
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = before;
}

/// Leaves the terminal as it was found. For a program that ends while a line is edited.
pub(crate) fn restore_terminal() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        sink::set_edited(false);
        // There is nothing left to do where this fails.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        // No more marks around what is pasted, and a fresh line.
        super::stream::leave_line();
    }
}
