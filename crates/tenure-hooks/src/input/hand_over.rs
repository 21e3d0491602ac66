//! A request that is handed to another agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::{ExecutionContext, TurnCx};
use tenure_core::drive::{Input, TurnReport};
use tenure_core::hook::HookError;
use tenure_core::message::History;
use tenure_core::model::Usage;
use tenure_core::step::Steps;
use tenure_core::{CancelToken, Error};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// Where a context says who has handed the request on.
const PATH: &str = "routed_by";

/// How often it is looked whether the other agent waits for a person.
const LOOK: Duration = Duration::from_millis(50);

/// What the other agent has answered, and what that has cost.
#[derive(Serialize, Deserialize)]
struct Answered {
    output: String,
    usage: Usage,
}

#[derive(Serialize, Deserialize)]
struct Beginning {
    messages: History,
}

/// Cancels what goes on elsewhere, if this is left because somebody cancelled it.
struct Leaving<'a> {
    cx: TurnCx<'a>,
    token: CancelToken,
    work: Option<AbortOnDropHandle<Result<TurnReport, Error>>>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.cx.is_cancelled()
            && let Some(work) = self.work.take()
        {
            // The other turn ends in its own good order; its agent waits for that.
            self.token.cancel();
            work.detach();
        }
    }
}

/// Has another agent answer.
pub(super) async fn hand_over(
    cx: TurnCx<'_>,
    name: &str,
    input: &Input,
    deepest: usize,
    limit: Duration,
    tracker: &TaskTracker,
) -> Result<String, HookError> {
    let context = context_for(cx, name, deepest)?;
    // What is on record needs nobody to be there any more.
    let work = async {
        let Some(agent) = cx.get_agent(name) else { return Err(unknown(cx, name)) };
        answered(cx, &agent, input.clone(), context, limit, tracker).await
    };
    let Answered { output, usage } = cx.step("route", work).await?;
    cx.charge(usage);
    Ok(output)
}

fn unknown(cx: TurnCx<'_>, name: &str) -> Error {
    let names: Vec<_> =
        cx.agent_names().into_iter().filter(|other| other != cx.agent_name()).collect();
    let there = match names.is_empty() {
        true => "there is no other agent".to_owned(),
        false => format!("there are: {}", names.join(", ")),
    };
    Error::orchestration(format!("the request cannot be routed to `{name}`: {there}"))
}

/// The context of the other turn, which says who has handed the request on so far. A circle is
/// refused, and so is a chain that is too long.
fn context_for(cx: TurnCx<'_>, name: &str, deepest: usize) -> Result<ExecutionContext, HookError> {
    let own = cx.config().name.to_string();
    let given = cx.context().map(|context| context.child(context.user_intent()));
    let context = given.unwrap_or_else(|| ExecutionContext::new(cx.trace_id()));
    let path = context.metadata().get(PATH).and_then(Value::as_array);
    let mut path: Vec<String> = path
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    path.push(own);
    if path.iter().any(|before| before == name) {
        return Err(Error::orchestration(format!(
            "the request would go round in a circle: {} -> {name}",
            path.join(" -> ")
        ))
        .into());
    }
    if path.len() > deepest {
        return Err(Error::orchestration(format!(
            "the request was handed on {} times already ({}), and `max_depth` is {deepest}",
            path.len() - 1,
            path.join(" -> ")
        ))
        .into());
    }
    Ok(context.with_metadata(PATH, path))
}

async fn answered(
    cx: TurnCx<'_>,
    agent: &Agent,
    input: Input,
    context: ExecutionContext,
    limit: Duration,
    tracker: &TaskTracker,
) -> Result<Answered, Error> {
    // The steps of the other turn go into the record of this one, so that none of them is taken
    // twice.
    let steps = cx.steps().map(|steps| steps.at(format_args!("route:{}", agent.config().name)));
    if let Some(steps) = &steps {
        remember(cx, agent, steps).await?;
    }
    let token = CancelToken::new();
    let work = {
        let (agent, token) = (agent.clone(), token.clone());
        tracker.spawn(async move {
            let mut request = agent.request(input).context(context).cancel_on(&token).limit(limit);
            if let Some(steps) = &steps {
                request = request.recorded(steps);
            }
            request.handle().await
        })
    };
    let mut leaving = Leaving { cx, token, work: Some(AbortOnDropHandle::new(work)) };
    let ended = waited_for(&mut leaving, agent).await;
    leaving.work = None;
    let report = ended.map_err(|error| {
        let about = format!("the agent `{}` did not answer: {error}", agent.config().name);
        match error.parks() || error.is_cancelled() || error.is_denied() {
            true => error,
            false => Error::orchestration(about).because(error),
        }
    })?;
    Ok(Answered { output: report.output().to_owned(), usage: report.usage })
}

/// Waits for the other turn. While it waits for a person so does this one: nobody's time counts.
async fn waited_for(leaving: &mut Leaving<'_>, agent: &Agent) -> Result<TurnReport, Error> {
    let cx = leaving.cx;
    let Some(work) = &mut leaving.work else { return Err(Error::cancelled()) };
    let asks = || !agent.pending_asks().is_empty();
    loop {
        let ended = match tokio::time::timeout(LOOK, &mut *work).await {
            Ok(ended) => Some(ended),
            Err(_) if asks() => {
                cx.wait_for_person(async {
                    while asks() {
                        if let Ok(ended) = tokio::time::timeout(LOOK, &mut *work).await {
                            return Some(ended);
                        }
                    }
                    None
                })
                .await
            }
            Err(_) => None,
        };
        match ended {
            None => {}
            Some(Ok(result)) => return result,
            Some(Err(lost)) => {
                return Err(Error::orchestration(format!("the other turn was lost: {lost}")));
            }
        }
    }
}

/// Has the other agent know in a later life of the run what it knew when it was first asked.
async fn remember(cx: TurnCx<'_>, agent: &Agent, steps: &Steps) -> Result<(), Error> {
    let now = async { Ok(Beginning { messages: agent.history() }) };
    let Beginning { messages } = steps.step("history", &(), now).await?;
    if cx.resumed() && messages != agent.history() {
        agent.set_history(messages)?;
    }
    Ok(())
}
