//! Questions to the person at the terminal: the only place that reads from it.
//!
//! One thread reads standard input, so that a question that was cancelled or expired does not eat
//! the answer to the next one. What was typed before a question was put never answers it.

use super::screen::Screen;
use super::sink::{print_plain, prompt};
use super::style::{BOLD, DIM, WARN, paint};
use super::text::{clean_line, exact};
use crate::exit::Exit;
use crate::signal::Stopper;
use async_trait::async_trait;
use serde_json::Value;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tenure_core::ask::{Answer, Ask, Asker, PendingAsk};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Whether there is a person to ask: somebody who sees standard error and types on standard input.
pub(crate) fn is_anybody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

type Lines = Mutex<UnboundedReceiver<String>>;

/// The lines that are typed.
fn typed() -> &'static Lines {
    static TYPED: OnceLock<Lines> = OnceLock::new();
    TYPED.get_or_init(|| {
        let (send, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Mutex::new(lines)
    })
}

/// Forgets what was typed before the question.
fn forget_typed(lines: &mut UnboundedReceiver<String>) {
    while lines.try_recv().is_ok() {}
    // Where this fails there is no terminal, and then nobody is asked at all.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Asks a yes-or-no question before anything runs. Anything but a yes is a no.
pub(crate) fn confirm(question: &str) -> bool {
    let mut lines = typed().blocking_lock();
    forget_typed(&mut lines);
    prompt(&format!("{} {} ", paint(BOLD, question), paint(DIM, "[y/N]")));
    let answer = lines.blocking_recv().unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Puts the questions of agents to the person at the terminal. Where there is none, every question
/// is denied.
pub(crate) struct TerminalAsker {
    screen: Screen,
    stopper: Stopper,
    unanswered: Arc<AtomicBool>,
}

impl TerminalAsker {
    /// Asks on the terminal that shows `screen`. A question that is left without an answer stops
    /// the run.
    pub(crate) fn new(screen: Screen, stopper: Stopper) -> Self {
        Self { screen, stopper, unanswered: Arc::default() }
    }

    /// Becomes true once a question came up that nobody was there to answer.
    pub(crate) fn unanswered(&self) -> Arc<AtomicBool> {
        self.unanswered.clone()
    }
}

#[async_trait]
impl Asker for TerminalAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        if !is_anybody_there() {
            self.unanswered.store(true, Ordering::Relaxed);
            self.screen.print(&format!(
                "{} {} asks \"{}\", and there is no terminal to answer on: denied; run it in a \
                 terminal to be asked",
                paint(WARN, "denied:"),
                clean_line(&ask.agent),
                clean_line(&ask.ask.prompt)
            ));
            return Some(Answer::Reject("there is no terminal to ask a person on".to_owned()));
        }
        // One question at a time, whoever asks.
        let mut lines = typed().lock().await;
        let _quiet = self.screen.hold();
        forget_typed(&mut lines);
        print_plain(&question(ask));
        let answer = converse(&ask.ask, &mut prompt, &mut lines).await;
        if answer.is_none() {
            print_plain("");
            self.stopper.stop(Exit::Cancelled);
        }
        answer
    }
}

/// The question as it is put: who asks, what, and the exact action.
pub(crate) fn question(ask: &PendingAsk) -> String {
    let mut text =
        format!("\n{} {} {}\n", paint(WARN, "?"), paint(BOLD, clean_line(&ask.agent)), "asks");
    for line in ask.ask.prompt.lines() {
        text.push_str(&format!("  {}\n", exact(line)));
    }
    let shown = |value: &Value| {
        let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
        pretty.lines().map(exact).collect::<Vec<_>>().join("\n")
    };
    if let Some(action) = &ask.ask.action {
        for line in shown(action).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if let Some(schema) = &ask.ask.schema {
        text.push_str(&format!("  {}\n", paint(DIM, "the answer has this form:")));
        for line in shown(schema).lines() {
            text.push_str(&format!("    {}\n", paint(DIM, line)));
        }
    }
    if let Some(after) = ask.ask.expires_after {
        let after = super::text::human(after);
        text.push_str(&format!(
            "  {}\n",
            paint(DIM, format_args!("denied if unanswered in {after}"))
        ));
    }
    text.pop();
    text
}

const CHOICES: &str = "  [a]pprove  [e]dit  [r]eject  re[s]pond: ";

/// Leads the conversation until there is an answer. `None` if the person left (end of input).
pub(crate) async fn converse(
    ask: &Ask,
    write: &mut (dyn FnMut(&str) + Send),
    typed: &mut UnboundedReceiver<String>,
) -> Option<Answer> {
    if !ask.is_approval() {
        loop {
            write("  your answer: ");
            let text = typed.recv().await?;
            match expected(ask.schema.as_ref(), &text) {
                Ok(()) => return Some(Answer::Respond(text)),
                Err(why) => write(&format!("  {why}\n")),
            }
        }
    }
    loop {
        write(CHOICES);
        let choice = typed.recv().await?;
        match choice.trim().to_ascii_lowercase().as_str() {
            "a" | "approve" | "y" | "yes" => return Some(Answer::Approve),
            "r" | "reject" | "n" | "no" => {
                write("  why? (Enter for no reason): ");
                let why = typed.recv().await?;
                let why = why.trim();
                let why = if why.is_empty() { "rejected by the user" } else { why };
                return Some(Answer::Reject(why.to_owned()));
            }
            "s" | "respond" => {
                write("  your answer: ");
                return Some(Answer::Respond(typed.recv().await?));
            }
            "e" | "edit" => {
                let current = ask.action.as_ref().map(Value::to_string).unwrap_or_default();
                write(&format!(
                    "  now:     {}\n  instead, as JSON (Enter to go back): ",
                    clean_line(&current)
                ));
                let edited = typed.recv().await?;
                if edited.trim().is_empty() {
                    continue;
                }
                match serde_json::from_str(&edited) {
                    Ok(value) => return Some(Answer::Edit(value)),
                    Err(error) => write(&format!("  this is not JSON: {error}\n")),
                }
            }
            _ => write("  please answer a, e, r or s\n"),
        }
    }
}

/// Whether the text is what the schema asks for, as far as a line can tell: text, or JSON.
fn expected(schema: Option<&Value>, text: &str) -> Result<(), String> {
    let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    match kind {
        None | Some("string") => Ok(()),
        Some(kind) => match serde_json::from_str::<Value>(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("this is not JSON of type {kind}: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the person is told, and what comes out, if these lines are typed.
    fn talk(ask: &Ask, typed: &[&str]) -> (String, Option<Answer>) {
        let mut said = String::new();
        let (send, mut lines) = unbounded_channel();
        for line in typed {
            send.send((*line).to_owned()).expect("the receiver is there");
        }
        drop(send);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let answer = runtime.block_on(converse(ask, &mut |text| said.push_str(text), &mut lines));
        (said, answer)
    }

    fn approval() -> Ask {
        Ask::approval("May I?", serde_json::json!({ "path": "out.txt" }))
    }

    #[test]
    fn each_choice_gives_its_answer() {
        let cases: [(&[&str], Answer); 6] = [
            (&["a"], Answer::Approve),
            (&["yes"], Answer::Approve),
            (&["r", "too risky"], Answer::Reject("too risky".into())),
            (&["r", ""], Answer::Reject("rejected by the user".into())),
            (&["s", "use the other file"], Answer::Respond("use the other file".into())),
            (&["e", "{\"path\": \"b\"}"], Answer::Edit(serde_json::json!({ "path": "b" }))),
        ];
        for (typed, expected) in cases {
            assert_eq!(talk(&approval(), typed).1, Some(expected), "{typed:?}");
        }
    }

    #[test]
    fn an_empty_line_approves_nothing() {
        let (said, answer) = talk(&approval(), &["", "r", ""]);
        assert_eq!(answer, Some(Answer::Reject("rejected by the user".into())));
        assert!(said.contains("please answer a, e, r or s"), "{said}");
    }

    #[test]
    fn bad_json_is_asked_for_again() {
        let (said, answer) = talk(&approval(), &["e", "{", "e", "", "e", "{}"]);
        assert_eq!(answer, Some(Answer::Edit(serde_json::json!({}))));
        assert!(said.contains("this is not JSON"), "{said}");
    }

    #[test]
    fn the_end_of_input_is_no_answer() {
        assert_eq!(talk(&approval(), &[]).1, None);
        assert_eq!(talk(&approval(), &["r"]).1, None);
    }

    #[test]
    fn input_is_taken_as_it_is_typed() {
        let ask = Ask::input("Which city?");
        assert_eq!(talk(&ask, &["Bern"]).1, Some(Answer::Respond("Bern".into())));
        let ask = Ask::input("How many?").schema(serde_json::json!({ "type": "integer" }));
        assert_eq!(talk(&ask, &["many", "3"]).1, Some(Answer::Respond("3".into())));
    }
}
