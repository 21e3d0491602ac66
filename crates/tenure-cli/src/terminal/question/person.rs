//! Somebody at a terminal: what is said to them, what they type, and their editor.

use super::super::keyboard::Typed;
use super::super::sink::prompt;
use super::super::size::width;
use super::super::style::{WARN, paint};
use super::editor::{self, Edited};
use super::show::whole_seconds;
use std::future::pending;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Somebody who is asked.
pub(super) trait Person: Send {
    /// Says something. What is typed next is typed behind it.
    fn say(&mut self, text: &str);
    /// The next line that they type; `None` if they left.
    fn line(&mut self) -> impl Future<Output = Option<String>> + Send;
    /// Has them change a text in their editor.
    fn edit(&mut self, text: &str) -> impl Future<Output = Edited> + Send;
    /// How wide their screen is.
    fn columns(&self) -> usize;
}

/// The person at the terminal.
pub(super) struct AtTerminal {
    typed: Typed,
    /// When the question expires.
    deadline: Option<Instant>,
    /// What stands before the cursor.
    before: String,
}

/// When the time that is left is said again.
const REMINDERS: [Duration; 4] = [
    Duration::from_secs(300),
    Duration::from_secs(60),
    Duration::from_secs(30),
    Duration::from_secs(10),
];

impl AtTerminal {
    pub(super) fn new(typed: Typed, deadline: Option<Instant>) -> Self {
        Self { typed, deadline, before: String::new() }
    }

    /// When to remind of the end, and how much is left then.
    fn reminder(&self) -> Option<(Instant, Duration)> {
        let (deadline, now) = (self.deadline?, Instant::now());
        let at = |left: Duration| Some((deadline.checked_sub(left)?, left));
        REMINDERS.into_iter().filter_map(at).find(|(at, _)| *at > now)
    }
}

impl Person for AtTerminal {
    fn say(&mut self, text: &str) {
        match text.rsplit_once('\n') {
            Some((_, last)) => last.clone_into(&mut self.before),
            None => self.before.push_str(text),
        }
        prompt(text);
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            let reminder = self.reminder();
            let due = async {
                match reminder {
                    Some((at, left)) => {
                        sleep_until(at).await;
                        left
                    }
                    None => pending().await,
                }
            };
            let left = tokio::select! {
                biased;
                line = self.typed.recv() => {
                    self.before.clear();
                    return line;
                }
                left = due => whole_seconds(left),
            };
            prompt(&format!("\n{}\n{}", paint(WARN, format_args!("  {left} left")), self.before));
        }
    }

    async fn edit(&mut self, text: &str) -> Edited {
        let _aside = self.typed.aside();
        self.before.clear();
        editor::edit(text).await
    }

    fn columns(&self) -> usize {
        width()
    }
}
