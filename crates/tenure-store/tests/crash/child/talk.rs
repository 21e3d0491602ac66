//! A workflow that is run and killed: handoffs, context variables, hooks, and a person in between.

use super::parts::{Act, Plan, Witness, calls};
use super::scenarios::{agent, tools};
use crate::crash::ledger::Ledger;
use async_trait::async_trait;
use serde_json::{Value, json};
use tenure_core::Error;
use tenure_core::engine::{RunCx, Runnable};
use tenure_core::model::ModelResponse;
use tenure_core::tool::Effect;
use tenure_flow::Flow;
use tenure_flow::route::Target;
use tenure_flow::route::handoff::{HandoffRule, Handoffs, Source};

/// A workflow as a run.
pub(super) struct Together(Flow);

#[async_trait]
impl Runnable for Together {
    async fn run(&self, run: RunCx) -> Result<Value, Error> {
        let said = run.input["message"].as_str().unwrap_or_default();
        let chat = self.0.chat().id("talk").message(said).cancel_on(&run.cancel);
        let report = chat.recorded(&run.steps).run().await;
        if let Some(error) = report.error {
            return Err(error);
        }
        let said: Vec<_> =
            report.messages.iter().map(|it| format!("{}: {}", it.speaker, it.text)).collect();
        Ok(json!({
            "output": report.output,
            "turns": report.turns,
            "messages": said,
            "variables": report.variables,
        }))
    }
}

/// Three agents that hand over to one another, and a person in between.
pub(super) fn talk(ledger: &Ledger) -> Result<Together, Error> {
    let member = |name: &str, plan: Plan| {
        let marks = Act::new("mark", Effect::Idempotent, ledger).setting();
        tools(agent(name, ledger), ledger).tool(marks).model(plan).blueprint()
    };
    let intake = Plan::new(ledger, |step, _| {
        (step == 0).then(|| calls(step, &[("mark", "urgent"), ("look", "ticket")]))
    });
    let expert = Plan::new(ledger, |step, _| {
        Some(match step {
            0 => calls(step, &[("pay", "parts"), ("send", "order")]),
            1 => calls(step, &[("mark", "done")]),
            _ => return None,
        })
    });
    let closer = Plan::new(ledger, |step, said| match step {
        0 => Some(calls(step, &[("send", "letter")])),
        _ => Some(ModelResponse::text(format!("closed: {said}"))),
    });
    let source = |name: &str| Source::Agent(name.into());
    let to = |name: &str| Target::Agent(name.into());
    let when = |from: &str, target: Target, condition: &str| {
        HandoffRule::when(source(from), target, condition).map_err(Error::invalid)
    };
    let rules = [
        HandoffRule::after(source("intake"), Target::User),
        HandoffRule::after(Source::User, to("expert")),
        when("expert", to("closer"), "${by_s1c0} == \"done\"")?,
        HandoffRule::after(source("expert"), Target::User),
        HandoffRule::after(source("closer"), Target::End),
    ];
    let flow = Flow::builder("talk")
        .agent(member("intake", intake)?)
        .agent(member("expert", expert)?)
        .agent(member("closer", closer)?)
        .initial_agent("intake")
        .user(true)
        .with_lifecycle(Witness::new("host", ledger))
        .router(Handoffs::new(rules))
        .build()?;
    Ok(Together(flow))
}
