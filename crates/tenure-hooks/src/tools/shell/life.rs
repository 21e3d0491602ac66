//! The hook around the tool: leave for each command, and what runs before and after all of them.

use super::Shell;
use super::leave::Verdict;
use super::tool::{command_of, redacted};
use std::sync::Arc;
use tenure_core::ExitReason;
use tenure_core::NextTool;
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::{Cx, InstanceCx, ToolCx};
use tenure_core::event::LogStream;
use tenure_core::hook::{AgentLifecycle, HookError};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_macros::lifecycle;
use tenure_process::{Command, Heard};
use tokio_util::task::TaskTracker;

pub(super) struct Guard {
    pub(super) shell: Arc<Shell>,
    pub(super) tracker: TaskTracker,
}

impl Guard {
    /// Runs a command of whoever wrote the file, and tells what it writes line by line.
    async fn run(&self, cx: &Cx<'_>, argv: &[String]) -> Result<(), String> {
        let shell = &*self.shell;
        let command = Command::new(argv.to_vec(), &shell.dir, &shell.environment)
            .checked_by(shell.checks.get(argv).cloned())
            .keep(shell.most);
        let what = self.shown(argv);
        let heard = command.run(&self.tracker).await;
        let failed = |why| format!("`{what}`: {}", redacted(shell, why));
        let mut heard: Heard = heard.map_err(failed)?;
        if !shell.redact.is_empty() {
            heard.out.whole_lines();
            heard.err.whole_lines();
        }
        let words = redacted(shell, heard.err.text());
        let out = redacted(shell, heard.out.text());
        for (stream, text) in [(LogStream::Stdout, &out), (LogStream::Stderr, &words)] {
            for line in text.lines() {
                cx.log(&shell.name, stream, line);
            }
        }
        if heard.ended.is_ok() {
            return Ok(());
        }
        let last = words.lines().rev().find(|line| !line.trim().is_empty());
        let last: String = last.unwrap_or_default().chars().take(300).collect();
        let words = if last.is_empty() { last } else { format!("; its last words: {last}") };
        Err(format!("`{what}` ended with {}{words}", heard.ended))
    }

    /// A command as a failure shows it.
    fn shown(&self, argv: &[String]) -> String {
        redacted(&self.shell, argv.join(" "))
    }

    async fn ask(&self, cx: ToolCx<'_>, request: &mut ToolRequest) -> Result<Asked, HookError> {
        if !cx.can_ask() {
            let why = "the command needs somebody's leave, and nobody is there to ask";
            return Ok(Asked::Answered(ToolOutput::denied(why)));
        }
        let ask = Ask::approval("May this command run?", request.arguments.clone());
        Ok(match cx.ask(ask).await? {
            Answer::Approve => Asked::Approved,
            Answer::Edit(arguments) => {
                request.arguments = arguments;
                // What a person writes needs no pattern, but what is denied is denied.
                match command_of(&request.arguments).map(|command| self.shell.leave.denied(command))
                {
                    Some(None) => Asked::Approved,
                    Some(Some(why)) => Asked::Answered(ToolOutput::denied(why)),
                    None => Asked::Answered(ToolOutput::denied("the edit has no `command`")),
                }
            }
            Answer::Reject(why) if why.trim().is_empty() => {
                Asked::Answered(ToolOutput::denied("a person said no to the command"))
            }
            Answer::Reject(why) => Asked::Answered(ToolOutput::denied(why)),
            Answer::Respond(text) => Asked::Answered(ToolOutput::text(text)),
        })
    }
}

enum Asked {
    Approved,
    Answered(ToolOutput),
}

#[lifecycle]
impl AgentLifecycle for Guard {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let limit = self.shell.limit;
        for argv in &self.shell.startup {
            match tokio::time::timeout(limit, self.run(&cx, argv)).await {
                Ok(done) => done.map_err(HookError::new)?,
                Err(_) => {
                    let what = self.shown(argv);
                    return Err(HookError::new(format!("`{what}` did not end within {limit:?}")));
                }
            }
        }
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        let limit = self.shell.shutdown_limit;
        let ends = tokio::time::Instant::now() + limit;
        let mut failures = Vec::new();
        // One that fails or hangs does not keep the others from their turn.
        for (at, argv) in self.shell.shutdown.iter().enumerate() {
            let left = u32::try_from(self.shell.shutdown.len() - at).unwrap_or(u32::MAX);
            let share = ends.saturating_duration_since(tokio::time::Instant::now()) / left;
            match tokio::time::timeout(share, self.run(&cx, argv)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => failures.push(why),
                Err(_) => failures.push(format!("`{}` did not end in time", self.shown(argv))),
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(HookError::new(failures.join("; "))) }
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if request.name() != self.shell.name {
            return Ok(next.call(request).await?);
        }
        // A call without a command is refused by the tool itself, which runs nothing then.
        let verdict = command_of(&request.arguments).map(|command| self.shell.leave.judge(command));
        match verdict.unwrap_or(Verdict::Allowed) {
            Verdict::Allowed => {}
            Verdict::Denied(why) => return Ok(ToolOutput::denied(why)),
            Verdict::Ask => match self.ask(cx, request).await? {
                Asked::Approved => {}
                Asked::Answered(output) => return Ok(output),
            },
        }
        Ok(next.call(request).await?)
    }
}
