//! The life of one agent, from start to shutdown, in one run and without a network.
//!
//!     cargo run -p tenure --example tour
//!
//! Every line that begins with `phase` or `hook` is printed by a hook.

use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;
use tenure::ask::PendingAsk;
use tenure::hook::{Point, Points};
use tenure::models::{Passthrough, Scripted};
use tenure::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let agent = secretary()?.instance();
    title("An agent starts: everything it acquires is registered for release");
    agent.startup().await?;

    let mut turns = Vec::new();
    title("A turn: the model asks for a tool, which is another agent, on a clone of its own");
    turns.push(("a clone", agent.run("Have this proofread: helo wrld").await));

    title("A guard denies: the tool does not run, and the model reads why");
    turns.push(("a guard", agent.run("Delete the drafts").await));

    title("A person is asked: the hook waits, and its time stands still");
    turns.push(("an ask", agent.run("Send it to everybody").await));

    title("A turn is cancelled in the middle of a tool: its end hook fires all the same");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        say("you", "cancel");
        token.cancel();
    };
    let (cancelled, ()) =
        tokio::join!(agent.request("Wait for the reply").cancel_on(&token).run(), cancel);
    if let Some(Message::Tool(result)) = agent.history().last() {
        say("kept", &format!("{}: {:?} ({:?})", result.name, result.content, result.status));
    }
    turns.push(("a cancel", cancelled));

    title("It is paused, and says so");
    agent.pause().await?;
    if let Err(error) = agent.run("Are you there?").await {
        say("error", &error.to_string());
    }
    agent.resume().await?;

    title("It is shut down: the hooks run last to first, then what it acquired is released");
    agent.shutdown().await;
    table(&agent, &turns);
    Ok(())
}

/// The agent: a model that follows a script, two tools, another agent as a tool, and hooks.
fn secretary() -> Result<Blueprint, Error> {
    let editor = Agent::builder("editor")
        .model(Passthrough::new())
        .with_lifecycle(hook(Narrator).only(Points::from(Point::OnStart).with(Point::OnShutdown)))
        .blueprint()?;
    let script = Scripted::empty()
        .call("agent__editor", json!({ "message": "hello world" }))
        .text("It should say: hello world.")
        .call("delete", json!({ "path": "/drafts" }))
        .text("I am not allowed to delete the drafts.")
        .call("send", json!({ "to": "everybody" }))
        .text("It is sent, to the team only.")
        .call("wait_for_reply", json!({}));
    Agent::builder("secretary")
        .model(script)
        .tool(delete)
        .tool(send)
        .tool(wait_for_reply)
        .agent_tool(&editor)
        .with_lifecycle(hook(Narrator).observes())
        .with_lifecycle(hook(Guard).policy(Policy::Deny))
        .on_ask(person)
        .blueprint()
}

/// Deletes a file.
#[tool]
fn delete(path: String) -> String {
    format!("deleted {path}")
}

/// Sends the letter.
#[tool]
fn send(to: String) -> String {
    say("tool", &format!("sent to {to}"));
    format!("sent to {to}")
}

/// Waits until somebody replies.
#[tool]
async fn wait_for_reply() -> String {
    std::future::pending().await
}

/// Stands for a person at a keyboard.
fn person(pending: &PendingAsk) -> Option<Answer> {
    say("asked", &format!("{} {}", pending.ask.prompt, pending.ask.action.as_ref()?));
    say("you", "only to the team");
    Some(Answer::Edit(json!({ "to": "the team" })))
}

/// Judges every tool call. Whatever goes wrong in it denies the call.
struct Guard;

#[lifecycle]
impl AgentLifecycle for Guard {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if request.name() == "delete" {
            say("hook", "wrap_tool_call: the guard denies `delete`");
            return Err(Error::denied("nothing is deleted here").into());
        }
        if request.name() == "send" {
            let ask = Ask::approval("May I send this?", request.arguments.clone());
            match cx.ask(ask).await? {
                Answer::Approve => {}
                Answer::Edit(arguments) => request.arguments = arguments,
                Answer::Reject(reason) => return Ok(ToolOutput::denied(reason)),
                Answer::Respond(text) => return Ok(ToolOutput::text(text)),
            }
        }
        Ok(next.call(request).await?)
    }
}

/// Says what happens, and changes nothing.
struct Narrator;

#[lifecycle]
impl AgentLifecycle for Narrator {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let name = cx.agent_name().to_owned();
        say("hook", &format!("on_start: {name} opens its archive"));
        cx.resources().register("archive", move || async move {
            say("freed", &format!("the archive of {name}"));
            Ok(())
        });
        Ok(())
    }

    async fn before_agent(&self, _cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        say("hook", &format!("before_agent: {:?}", input.content.text()));
        Ok(Flow::Continue)
    }

    async fn after_agent(
        &self,
        _cx: TurnCx<'_>,
        end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        say("hook", &format!("after_agent: {}, {:?}", end.outcome(), end.output().unwrap_or("")));
        Ok(After::Done)
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        say("phase", &format!("{} -> {}", cx.from(), cx.to()));
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        say("hook", &format!("on_shutdown: {}, {reason}", cx.agent_name()));
        Ok(())
    }
}

fn table(agent: &Agent, turns: &[(&str, Result<TurnReport, Error>)]) {
    title("What it came to");
    println!("  turn        outcome     model calls  words in  words out");
    for (name, result) in turns {
        let report = match result {
            Ok(report) => report,
            Err(error) => error.report().expect("a turn that began has a report"),
        };
        let usage = report.usage;
        println!(
            "  {name:<11} {:<11} {:>11} {:>9} {:>10}",
            report.outcome.as_str(),
            usage.calls,
            usage.input,
            usage.output
        );
    }
    let (usage, metrics) = (agent.usage(), agent.metrics());
    println!(
        "  {:<11} {:<11} {:>11} {:>9} {:>10}",
        "together", "", usage.calls, usage.input, usage.output
    );
    println!();
    println!("  requests    {} ({} failed)", metrics.total_requests, metrics.failed_requests);
    println!("  transitions {}", metrics.state_transitions);
    println!("  startup     {:.3} ms", metrics.startup_time_ms);
    println!("  active      {:.3} ms", metrics.active_time_ms);
    println!("  shutdown    {:.3} ms", metrics.shutdown_time_ms);
    println!("  resources   {} left", agent.resource_count());
    let reason = agent.exit_reason().map_or("", ExitReason::as_str);
    println!("  state       {} ({reason})", agent.state());
}

fn title(text: &str) {
    println!("\n{}", paint("1", text));
}

fn say(kind: &str, text: &str) {
    let colour = match kind {
        "hook" => "36",
        "phase" => "2",
        "asked" | "you" => "33",
        "error" => "31",
        _ => "32",
    };
    println!("  {} {text}", paint(colour, &format!("{kind:<6}")));
}

/// Colours only a terminal, and only if nobody objects.
fn paint(code: &str, text: &str) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
