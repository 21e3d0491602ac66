//! What is run and killed: an agent with everything, agents as tools, and an agent that asks for
//! leave.

use super::parts::{Act, Leave, Plan, Witness, calls};
use crate::crash::ledger::Ledger;
use async_trait::async_trait;
use serde_json::{Value, json};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::chat::Chat;
use tenure_core::engine::{RunCx, Runnable};
use tenure_core::tool::Effect;

/// An agent as a whole run: one instance, one chat, one turn.
pub(super) struct Alone(Blueprint);

#[async_trait]
impl Runnable for Alone {
    async fn run(&self, run: RunCx) -> Result<Value, Error> {
        let agent = self.0.instance();
        agent.record(&run.steps)?;
        agent.startup().await?;
        let chat = Chat::new("alone", [agent.clone()]);
        chat.record(&run.steps);
        let said = run.input["message"].as_str().unwrap_or_default();
        let result = chat.run(async |chat| {
            let request = agent.request(said).recorded(&run.steps.at("turn")).in_chat(chat);
            let report = request.cancel_on(&run.cancel).run().await?;
            Ok(report.output().to_owned())
        });
        let result = result.await;
        agent.shutdown().await;
        match (result.value, result.end.error) {
            (Some(output), None) => Ok(json!({ "output": output, "variables": chat.variables() })),
            (_, Some(error)) => Err(error),
            (None, None) => Err(Error::invalid("the chat was finished by nobody")),
        }
    }
}

pub(super) fn agent(name: &str, ledger: &Ledger) -> AgentBuilder {
    let (outer, inner) = (Witness::new("outer", ledger), Witness::new("inner", ledger));
    Agent::builder(name).with_lifecycle(outer).with_lifecycle(inner)
}

pub(super) fn tools(builder: AgentBuilder, ledger: &Ledger) -> AgentBuilder {
    builder
        .tool(Act::new("look", Effect::Idempotent, ledger))
        .tool(Act::new("pay", Effect::Keyed, ledger).with_step())
        .tool(Act::new("send", Effect::AtMostOnce, ledger))
}

/// Seven steps, tools of every class beside one another, hooks everywhere.
pub(super) fn steps(ledger: &Ledger) -> Result<Alone, Error> {
    let plan = Plan::new(ledger, |step, _| {
        Some(match step {
            0 => calls(step, &[("look", "a"), ("pay", "b"), ("send", "c")]),
            1 => calls(step, &[("pay", "d"), ("look", "e"), ("mark", "f")]),
            2 => calls(step, &[("send", "g")]),
            3 => calls(step, &[("send", "h"), ("send", "i"), ("pay", "j")]),
            4 => calls(step, &[("look", "k")]),
            5 => calls(step, &[("mark", "l"), ("send", "m")]),
            _ => return None,
        })
    });
    let marks = Act::new("mark", Effect::Idempotent, ledger).setting();
    Ok(Alone(tools(agent("worker", ledger), ledger).tool(marks).model(plan).blueprint()?))
}

/// Agents as tools: three at once, then one whose tools are agents too.
pub(super) fn children(ledger: &Ledger) -> Result<Alone, Error> {
    let plan = Plan::new(ledger, |step, said| {
        let (look, send) = (format!("{said}/look"), format!("{said}/send"));
        (step == 0).then(|| calls(step, &[("look", &look), ("send", &send)]))
    });
    let scout = tools(agent("scout", ledger), ledger).model(plan).blueprint()?;
    let plan = Plan::new(ledger, |step, _| {
        Some(match step {
            0 => calls(step, &[("agent__scout", "east"), ("agent__scout", "west")]),
            1 => calls(step, &[("pay", "toll")]),
            _ => return None,
        })
    });
    let squad = tools(agent("squad", ledger), ledger).model(plan);
    let squad = squad.agent_tool(&scout).blueprint()?;
    let plan = Plan::new(ledger, |step, _| {
        Some(match step {
            0 => calls(
                step,
                &[("agent__scout", "north"), ("agent__squad", "coast"), ("agent__scout", "south")],
            ),
            1 => calls(step, &[("agent__scout", "home"), ("look", "back")]),
            _ => return None,
        })
    });
    let lead = tools(agent("lead", ledger), ledger).model(plan);
    Ok(Alone(lead.agent_tool(&scout).agent_tool(&squad).blueprint()?))
}

/// An agent that asks for leave before every call, and a tool that asks what something means.
pub(super) fn leave(ledger: &Ledger) -> Result<Alone, Error> {
    let plan = Plan::new(ledger, |step, _| {
        Some(match step {
            0 => calls(step, &[("send", "a"), ("pay", "b")]),
            1 => calls(step, &[("wonder", "c")]),
            2 => calls(step, &[("send", "d")]),
            _ => return None,
        })
    });
    let wonder = Act::new("wonder", Effect::Keyed, ledger).asking();
    let asker = tools(agent("asker", ledger), ledger).tool(wonder).with_lifecycle(Leave);
    Ok(Alone(asker.model(plan).blueprint()?))
}
