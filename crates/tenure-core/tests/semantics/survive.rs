//! G1 and G7 over several lives of a run: what a process left behind, the next one finds.

use crate::semantics::support::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::chat::Chat;
use tenure_core::context::{ChatCx, InstanceCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::Event;
use tenure_core::hook::{self, After, AgentLifecycle, Flow, HookError, Point, Points};
use tenure_core::message::Message;
use tenure_core::step::{MemoryStepLog, ScopeEnd, ScopeKind, ScopeRecord, StepKey, StepLog, Steps};
use tenure_core::tool::Effect;
use tenure_core::{BoxFuture, Error, ErrorKind, ExitReason, Outcome, RunId};

fn steps(log: &MemoryStepLog) -> Steps {
    Steps::new(Arc::new(log.clone()))
}

/// A log as a process leaves it that died after its first step of this kind.
fn died_after(log: &MemoryStepLog, kind: &str) -> MemoryStepLog {
    let at = log.keys().iter().position(|key| &*key.kind == kind).expect("there is such a step");
    log.cut_after(at + 1)
}

/// An agent that sends once, and says what came of it.
fn sender(effect: Effect, sent: &Log) -> AgentBuilder {
    let sent = sent.clone();
    Agent::builder("agent").model(script([call_with("send", "{}"), say("done")])).tool(
        tool("send", move |cx, _| {
            sent.add(cx.idempotency_key());
            Box::pin(async { Ok("sent".into()) })
        })
        .effect(effect),
    )
}

/// The result of the only tool call.
fn result_of(agent: &Agent) -> String {
    let history = agent.history();
    let result = history.iter().find_map(|message| match message {
        Message::Tool(result) => Some(result.content.clone()),
        _ => None,
    });
    result.expect("every call has a result").into_text()
}

async fn resumed(builder: AgentBuilder, log: &MemoryStepLog) -> (Agent, Result<String, Error>) {
    let agent = started(builder).await;
    let result = agent.request("go").recorded(&steps(log)).run().await;
    (agent, result.map(|report| report.output().to_owned()))
}

#[tokio::test(start_paused = true)]
async fn g7_an_at_most_once_tool_that_may_have_run_is_not_run_again() {
    let (log, sent) = (MemoryStepLog::new(), Log::default());
    // What it answers follows from the conversation alone, so each life has a model of its own.
    resumed(sender(Effect::AtMostOnce, &sent), &log).await.1.unwrap();
    assert_eq!(sent.take().len(), 1);
    let died = died_after(&log, "intent");

    // Nobody can be asked: the model reads that nobody knows.
    let alone = after_the_call(Effect::AtMostOnce, &sent);
    let (agent, output) = resumed(alone, &died.resumed()).await;
    assert_eq!((output.unwrap(), sent.take().len()), ("done".to_owned(), 0));
    assert!(result_of(&agent).contains("nobody knows"), "{}", result_of(&agent));

    let answers = [("again", 1, "sent"), ("it arrived", 0, "it arrived")];
    for (answer, runs, result) in answers {
        let died = died_after(&log, "intent");
        let asked = Log::default();
        let heard = asked.clone();
        let builder = after_the_call(Effect::AtMostOnce, &sent).on_ask(move |ask: &PendingAsk| {
            heard.add(ask.ask.prompt.clone());
            Some(Answer::Respond(answer.to_owned()))
        });
        let (agent, output) = resumed(builder, &died).await;
        assert_eq!((output.unwrap(), sent.take().len()), ("done".to_owned(), runs), "{answer}");
        assert_eq!(result_of(&agent), result);
        assert!(asked.take()[0].contains("`send`"));
    }
}

#[tokio::test(start_paused = true)]
async fn g7_leave_to_call_it_once_more_is_leave_for_one_call() {
    let (log, sent) = (MemoryStepLog::new(), Log::default());
    resumed(sender(Effect::AtMostOnce, &sent), &log).await.1.unwrap();
    let answering = |answer: &'static str| {
        let asker = move |_: &PendingAsk| Some(Answer::Respond(answer.to_owned()));
        after_the_call(Effect::AtMostOnce, &sent).on_ask(asker)
    };
    let died = died_after(&log, "intent");
    sent.take();
    resumed(answering("again"), &died).await.1.unwrap();
    assert_eq!(sent.take().len(), 1);

    // The process died in that call too, so the leave is used up.
    let at = died.keys().iter().rposition(|key| &*key.kind == "intent").unwrap();
    let (agent, output) = resumed(answering("it arrived"), &died.cut_after(at + 1)).await;
    assert_eq!((output.unwrap(), sent.take().len()), ("done".to_owned(), 0));
    assert_eq!(result_of(&agent), "it arrived");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_outcome_is_asked_for_waits_for_a_person_and_for_a_plain_answer() {
    let (log, sent) = (MemoryStepLog::new(), Log::default());
    resumed(sender(Effect::AtMostOnce, &sent), &log).await.1.unwrap();
    sent.take();
    let (bus, asked) = (tenure_core::event::EventBus::new(), Log::default());
    let _listens = bus.subscribe(256);
    let agent = started(after_the_call(Effect::AtMostOnce, &sent).events(&bus)).await;
    let at = steps(&died_after(&log, "intent"));
    let answers = async {
        for answer in
            [Answer::Approve, Answer::Respond(" ".into()), Answer::Respond("again".into())]
        {
            while agent.pending_asks().is_empty() {
                tokio::task::yield_now().await;
            }
            // Nothing else goes on, and whoever runs it can see that.
            assert_eq!(agent.phase(), tenure_core::phase::Phase::AwaitingToolApproval);
            let ask = agent.pending_asks().remove(0);
            asked.add(ask.ask.prompt.clone());
            agent.answer(&ask.id, answer);
        }
    };
    let (result, ()) = tokio::join!(agent.request("go").recorded(&at).run(), answers);
    assert_eq!(result.unwrap().output(), "done");
    assert_eq!(sent.take().len(), 1, "leave was given once, in so many words");
    let asked = asked.take();
    assert!(asked[1].contains("cannot be approved") && asked[2].contains("empty"), "{asked:?}");
}

/// The same agent in a process that finds the first answer of the model on record.
fn after_the_call(effect: Effect, sent: &Log) -> AgentBuilder {
    let sent = sent.clone();
    Agent::builder("agent").model(script([say("done")])).tool(
        tool("send", move |cx, _| {
            sent.add(cx.idempotency_key());
            Box::pin(async { Ok("sent".into()) })
        })
        .effect(effect),
    )
}

#[tokio::test(start_paused = true)]
async fn g7_a_keyed_tool_that_may_have_run_is_run_again_with_the_same_key() {
    for effect in [Effect::Idempotent, Effect::Keyed] {
        let (log, sent) = (MemoryStepLog::new(), Log::default());
        resumed(sender(effect, &sent), &log).await.1.unwrap();
        let first = sent.take();
        assert!(log.keys().iter().all(|key| &*key.kind != "intent"), "it needs none");
        let (agent, output) =
            resumed(after_the_call(effect, &sent), &died_after(&log, "model")).await;
        assert_eq!((output.unwrap(), sent.take()), ("done".to_owned(), first));
        assert_eq!(result_of(&agent), "sent");
    }
}

#[tokio::test(start_paused = true)]
async fn g7_a_run_that_is_parked_does_not_end_and_the_agent_is_ready_again() {
    let (log, ends) = (MemoryStepLog::new(), Count::default());
    let agent = |instruction: &'static str| {
        let ends = ends.clone();
        Agent::builder("agent")
            .instruction(instruction)
            .model(script([say("hello"), say("again")]))
            .with_lifecycle(hook::after_agent(move |_, _| {
                ends.up();
                Box::pin(async { Ok(After::Done) })
            }))
            // A wrap that takes every failure for an answer.
            .with_lifecycle(hook::wrap_model_call(|_, request, next| {
                Box::pin(async move {
                    let answer = next.call(request).await;
                    Ok(answer.unwrap_or_else(|_| {
                        tenure_core::model::ModelResponse::text("never mind")
                    }))
                })
            }))
    };
    resumed(agent("be kind"), &log).await.1.unwrap();
    assert_eq!(ends.get(), 1);
    let died = died_after(&log, "model");
    let (parked, result) = resumed(agent("be rude"), &died).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.parks()), (ErrorKind::Replay, true), "{error}");
    assert_eq!(ends.get(), 1, "its ends wait for the run that goes on");
    assert!(died.scopes().iter().all(|(_, end)| end.is_none()), "{:?}", died.scopes());
    parked.run("something else").await.expect("it is ready");
    // With the code that it was recorded with it goes on.
    let (_, output) = resumed(agent("be kind"), &died.resumed()).await;
    assert_eq!(output.unwrap(), "hello");
    let turns = died.scopes().into_iter().filter(|(scope, _)| scope.kind == ScopeKind::Turn);
    let ended: Vec<_> = turns.map(|(_, end)| end.map(|end| end.outcome)).collect();
    assert_eq!(ended, [Some(Outcome::Ok)]);
}

/// Tells of the begins and ends of an instance.
#[derive(Clone)]
struct Lives(Log);

#[async_trait::async_trait]
impl AgentLifecycle for Lives {
    fn points(&self) -> Points {
        [Point::OnStart, Point::OnShutdown].into_iter().collect()
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let how = if cx.resumed() { "resumed" } else { "new" };
        self.0.add(format!("start {how} {}", cx.instance_id()));
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, why: ExitReason) -> Result<(), HookError> {
        self.0.add(format!("{why} {} {}", cx.instance_id(), cx.delivery_id()));
        Ok(())
    }
}

async fn lived(log: &MemoryStepLog, seen: &Log) -> Agent {
    let builder = Agent::builder("agent").model(script([])).with_lifecycle(Lives(seen.clone()));
    let agent = builder.build().expect("it is valid");
    agent.record(&steps(log)).expect("it is new");
    agent.startup().await.expect("it starts");
    agent
}

#[tokio::test(start_paused = true)]
async fn g1_the_instance_of_a_dead_process_ends_before_the_next_one_starts() {
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    let first = lived(&log, &seen).await;
    let (dead, started) = (first.id(), seen.take());
    assert_eq!(started, [format!("start new {dead}")]);

    let next = log.cut_after(usize::MAX);
    let second = lived(&next, &seen).await;
    let told = seen.take();
    assert!(told[0].starts_with(&format!("crashed {dead} ")), "{told:?}");
    assert_eq!(told[1..], [format!("start resumed {}", second.id())]);
    second.shutdown().await;
    let own_end = seen.take();
    assert!(own_end[0].starts_with(&format!("completed {} ", second.id())), "{own_end:?}");
    let ends: Vec<_> = next.scopes().into_iter().map(|(_, end)| end.expect("it ended")).collect();
    let crashed = ScopeEnd::of_instance(ExitReason::Crashed);
    assert_eq!(ends, [crashed, ScopeEnd::of_instance(ExitReason::Completed)]);
    assert_eq!(crashed.outcome, Outcome::Abandoned);

    // Dead again before that was recorded: the same delivery, told apart by nobody.
    let again = log.cut_after(usize::MAX);
    lived(&again, &seen).await;
    assert_eq!(seen.take()[0], told[0]);
}

#[tokio::test(start_paused = true)]
async fn g1_an_end_that_is_on_record_is_not_delivered_again() {
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    lived(&log, &seen).await;
    let next = log.cut_after(usize::MAX);
    lived(&next, &seen).await.shutdown().await;
    seen.take();
    let third = lived(&next.resumed(), &seen).await;
    assert_eq!(seen.take(), [format!("start resumed {}", third.id())]);
}

/// Writes a variable when a chat begins, and tells of its end.
struct Opens(Log);

#[async_trait::async_trait]
impl AgentLifecycle for Opens {
    fn points(&self) -> Points {
        [Point::BeforeChat, Point::AfterChat].into_iter().collect()
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        self.0.add("before");
        cx.variables().set("plan", "made by the hook")?;
        cx.carry_recorded(&"kept")?;
        Ok(Flow::Continue)
    }

    async fn after_chat(
        &self,
        cx: ChatCx<'_>,
        end: &tenure_core::chat::ChatEnd,
    ) -> Result<(), HookError> {
        let carried = cx.carried_recorded::<String>().unwrap_or_default();
        self.0.add(format!("after {} {carried}", end.outcome));
        Ok(())
    }
}

/// A chat of one agent whose tool writes a variable and whose hook writes the agent's state.
async fn chatted(log: &MemoryStepLog, seen: &Log, reply: Reply) -> (Chat, Agent, Option<Error>) {
    let builder = Agent::builder("agent")
        .model(script([reply, say("done")]))
        .tool(
            tool("note", |cx, _| {
                Box::pin(async move {
                    let variables = cx.chat_variables().expect("it is in a chat");
                    variables.set("noted", true)?;
                    Ok("noted".into())
                })
            })
            .effect(Effect::Idempotent),
        )
        .with_lifecycle(hook::before_agent(|cx, _| {
            Box::pin(async move {
                cx.set_state("_seen", 1)?;
                Ok(Flow::Continue)
            })
        }))
        .with_lifecycle(Opens(seen.clone()));
    let agent = started(builder).await;
    let chat = Chat::new("c", [agent.clone()]);
    chat.record(&steps(log));
    let at = steps(log).at("turn");
    let result = chat
        .run(async |chat| agent.request("go").in_chat(chat).recorded(&at).run().await.map(drop));
    let error = result.await.end.error;
    (chat, agent, error)
}

#[tokio::test(start_paused = true)]
async fn g7_the_variables_and_the_state_of_a_chat_come_back() {
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    let (first, agent, error) = chatted(&log, &seen, call_with("note", "{}")).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(seen.take(), ["before", "after ok kept"]);
    assert_eq!(first.variable("plan"), Some(json!("made by the hook")));
    assert_eq!(agent.state_value("_seen"), Some(json!(1)));

    let tools = log.keys().iter().position(|key| &*key.kind == "tool").expect("a tool call");
    let died = log.cut_after(tools + 1);
    // Its first answer is on record; the script goes on behind it.
    let (second, again, error) = chatted(&died, &seen, say("done")).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(seen.take(), ["after ok kept"], "the begin was on record");
    assert_eq!(second.variables(), first.variables());
    assert_eq!(again.state_values(), agent.state_values());
    let chats: Vec<_> =
        died.scopes().into_iter().filter(|(scope, _)| scope.kind == ScopeKind::Chat).collect();
    assert_eq!(chats.len(), 1);
    assert_eq!(chats[0].1, Some(ScopeEnd::of(Outcome::Ok)));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_makes_something_live_is_called_again_in_the_next_life() {
    let seen = Log::default();
    let connects = |number: u64| {
        let connect = hook::before_agent(move |cx, _| {
            Box::pin(async move {
                cx.set_state("_connection", number)?;
                Ok(Flow::Continue)
            })
        });
        let seen = seen.clone();
        Agent::builder("agent")
            .model(script([call_with("look", "{}"), say("done")]))
            .tool(tool("look", move |cx, _| {
                seen.add(cx.state("_connection").unwrap_or_default().to_string());
                Box::pin(async { Ok("seen".into()) })
            }))
            .with_lifecycle(hook::before_agent(|cx, _| {
                Box::pin(async move {
                    cx.set_state("_before", true)?;
                    Ok(Flow::Continue)
                })
            }))
            .with_lifecycle(hook::hook(connect).named("connects").again_on_resume())
            .with_lifecycle(hook::hook(hook::after_model(|_, _| {
                Box::pin(async { Ok(tenure_core::hook::HookAction::Continue) })
            })))
    };
    let log = MemoryStepLog::new();
    resumed(connects(1), &log).await.1.unwrap();
    assert!(log.keys().iter().all(|key| !key.name.contains("connects")));
    let died = died_after(&log, "after_model");
    let second = connects(2).model(script([say("done")]));
    resumed(second, &died).await.1.unwrap();
    assert_eq!(seen.take(), ["1", "2"], "not the number of the connection that is gone");
}

/// A log that gives a run up: what is recorded is served, ends are delivered, nothing else goes on.
struct GivesUp(MemoryStepLog, Arc<Mutex<Vec<Event>>>);

impl StepLog for GivesUp {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        let known = self.0.keys().iter().any(|it| it.is_same_step(&key));
        if !known && !key.is_end() {
            return Box::pin(async { Err(Error::abandoned()) });
        }
        self.0.step(key, effect)
    }

    fn run_id(&self) -> RunId {
        self.0.run_id()
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        self.0.begin(scope)
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.0.end(scope, end)
    }

    fn event(&self, event: Event) {
        self.1.lock().expect("no test panics under this lock").push(event);
    }

    fn takes_events(&self) -> bool {
        true
    }
}

/// Tells how turns end.
struct Ends(Log);

#[async_trait::async_trait]
impl AgentLifecycle for Ends {
    fn points(&self) -> Points {
        [Point::BeforeAgent, Point::AfterAgent].into_iter().collect()
    }

    async fn before_agent(&self, _: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        self.0.add("begin");
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, _: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.0.add(end.outcome().to_string());
        Ok(After::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn g1_a_run_that_is_given_up_delivers_its_ends_as_abandoned_once() {
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    let agent = || {
        Agent::builder("agent")
            .model(script([call_with("act", "{}"), say("done")]))
            .tool(ok_tool("act"))
            .with_lifecycle(Ends(seen.clone()))
    };
    resumed(agent(), &log).await.1.unwrap();
    assert_eq!(seen.take(), ["begin", "ok"]);
    let died = died_after(&log, "model");
    for ends in [vec!["abandoned"], vec![]] {
        let events = Arc::default();
        let log = Steps::new(Arc::new(GivesUp(died.clone(), Arc::clone(&events))));
        let agent = agent().build().expect("it is valid");
        agent.record(&log).expect("it is new");
        agent.startup().await.expect("it starts");
        let error = agent.request("go").recorded(&log).run().await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Abandoned, "{error}");
        assert_eq!(seen.take(), ends, "an end that is on record is not delivered again");
        agent.shutdown().await;
        let events = events.lock().expect("no test panics under this lock");
        let names: Vec<_> = events.iter().map(|event| event.name()).collect();
        assert!(names.contains(&"agent.turn.ended"), "the log has the events too: {names:?}");
    }
    let turn = died.scopes().into_iter().find(|(scope, _)| scope.kind == ScopeKind::Turn);
    assert_eq!(turn.expect("a turn").1, Some(ScopeEnd::of(Outcome::Abandoned)));
}
