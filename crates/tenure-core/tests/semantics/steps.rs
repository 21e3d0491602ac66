//! G7: with a step log nothing completed runs again.

use crate::semantics::drive::endings::drop_after;
use crate::semantics::support::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::content::Media;
use tenure_core::hook::{self, After, Flow, HookAction, HookError, Point, Policy};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelErrorKind;
use tenure_core::state::{Ownership, Reducer};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{Effect, ToolOutput};
use tenure_core::{Error, ErrorKind, Outcome};

/// How often each effect ran, by name.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Effects {
    fn ran(&self, what: &'static str) -> usize {
        let mut effects = self.0.lock().expect("no test panics under this lock");
        let count = effects.entry(what).or_default();
        *count += 1;
        *count
    }

    fn take(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut *self.0.lock().expect("no test panics under this lock"))
    }
}

struct Counted(Effects, Vec<Reply>);

#[async_trait::async_trait]
impl tenure_core::model::Model for Counted {
    async fn call(
        &self,
        request: &tenure_core::model::ModelRequest,
        cx: tenure_core::context::ModelCx<'_>,
    ) -> Result<tenure_core::model::ModelResponse, tenure_core::model::ModelError> {
        self.0.ran("model");
        // What it answers follows from the conversation alone, as in another process.
        let said = request.messages.iter().filter(|it| matches!(it, Message::Assistant { .. }));
        let reply = self.1.get(said.count()).cloned().unwrap_or(say("done"));
        let model = script([reply]);
        tenure_core::model::Model::call(&model, request, cx).await
    }
}

/// An agent with everything that is a step: begins, model and tool calls, asks, own steps.
fn busy(effects: &Effects) -> AgentBuilder {
    let count = |what| {
        let effects = effects.clone();
        move || effects.ran(what)
    };
    let (before_agent, before_model, after_model) =
        (count("before_agent"), count("before_model"), count("after_model"));
    let (after_agent, own, asked) = (count("after_agent"), count("own step"), count("ask"));
    let (one, two) = (count("tool one"), count("tool two"));
    let own = Arc::new(own);
    let in_tool = own.clone();
    Agent::builder("agent")
        .model(Counted(effects.clone(), vec![call(&["one", "two"]), call(&["one"])]))
        .ownership(Ownership::new().shared("found", Reducer::Append))
        .tool(
            tool("one", move |cx, _| {
                one();
                let own = in_tool.clone();
                Box::pin(async move {
                    cx.set_state("found", cx.call_id())?;
                    let n: u32 = cx.step("roll", async { Ok(own() as u32) }).await?;
                    assert!(n > 0);
                    Ok("one ok".into())
                })
            })
            .effect(Effect::Idempotent),
        )
        .tool(
            tool("two", move |_, _| {
                two();
                Box::pin(async { Ok("two ok".into()) })
            })
            .effect(Effect::Idempotent),
        )
        .with_lifecycle(hook::before_agent(move |cx, input| {
            before_agent();
            let own = own.clone();
            Box::pin(async move {
                let n: u32 = cx.step("roll", async { Ok(own() as u32) }).await?;
                assert!(n > 0);
                input.content.push(" now");
                Ok(Flow::Continue)
            })
        }))
        .with_lifecycle(hook::before_model(move |_, request| {
            before_model();
            request.instruction = Some("be brief".into());
            Box::pin(async { Ok(Flow::Continue) })
        }))
        .with_lifecycle(hook::after_model(move |_, _| {
            after_model();
            Box::pin(async { Ok(HookAction::Continue) })
        }))
        .with_lifecycle(hook::wrap_tool_call(|cx, request, next| {
            Box::pin(async move {
                match cx.ask(Ask::approval("may I?", json!(request.name()))).await? {
                    Answer::Approve => Ok(next.call(request).await?),
                    _ => Ok(ToolOutput::denied("no")),
                }
            })
        }))
        .with_lifecycle(hook::after_agent(move |_, end| {
            after_agent();
            Box::pin(async move {
                if let Some(output) = end.content_mut() {
                    output.push("!");
                }
                Ok(After::Done)
            })
        }))
        .on_ask(move |ask: &PendingAsk| {
            asked();
            let two = ask.ask.action == Some(json!("two"));
            Some(if two { Answer::Reject("no".into()) } else { Answer::Approve })
        })
}

async fn run(builder: AgentBuilder, log: MemoryStepLog) -> (Agent, Result<String, Error>) {
    let agent = started(builder).await;
    let result = agent.request("go").steps(log).run().await;
    let result = result.map(|report| report.output().to_owned());
    (agent, result)
}

#[tokio::test(start_paused = true)]
async fn g7_a_replay_runs_nothing_a_second_time() {
    let (effects, log) = (Effects::default(), MemoryStepLog::new());
    let (first, output) = run(busy(&effects), log.clone()).await;
    assert_eq!(output.unwrap(), "done!");
    let ran = effects.take();
    assert_eq!((ran["model"], ran["tool one"], ran["ask"], ran["own step"]), (3, 2, 3, 3));
    assert_eq!(ran.get("tool two"), None, "it was rejected");

    let recorded = log.keys().len();
    let (second, output) = run(busy(&effects), log.resumed()).await;
    assert_eq!(output.unwrap(), "done!");
    assert_eq!(effects.take(), BTreeMap::new());
    assert_eq!(log.keys().len(), recorded);
    assert_eq!(first.history(), second.history());
    assert_eq!(first.usage(), second.usage());
    assert_eq!(second.state_value("found"), first.state_value("found"), "writes are recorded too");
    assert_eq!(first.state_value("found"), Some(json!(["c1", "c1"])));
}

#[tokio::test(start_paused = true)]
async fn g7_a_run_cut_off_after_any_step_goes_on_and_completes_the_rest_once() {
    let (effects, log) = (Effects::default(), MemoryStepLog::new());
    let (first, output) = run(busy(&effects), log.clone()).await;
    let (output, all) = (output.unwrap(), effects.take());
    let keys = log.keys();
    for cut in 0..=keys.len() {
        let partial = log.cut_after(cut);
        let (agent, again) = run(busy(&effects), partial.clone()).await;
        let at = keys.get(cut).map_or("the end".to_owned(), ToString::to_string);
        assert_eq!(again.expect(&at), output, "cut before {at}");
        assert_eq!(agent.history(), first.history(), "cut before {at}");
        assert_eq!(agent.state_values(), first.state_values(), "cut before {at}");
        // In whatever order, the log is complete, and each step in it once.
        let mut now: Vec<_> = partial.keys().iter().map(ToString::to_string).collect();
        let mut then: Vec<_> = keys.iter().map(ToString::to_string).collect();
        now.sort_unstable();
        then.sort_unstable();
        assert_eq!(now, then, "cut before {at}");
        for (what, count) in effects.take() {
            // A hook or tool whose own step was recorded, and it not, runs again around it.
            let recorded = |kind: &str| {
                keys[..cut].iter().filter(|key| step_of(&key.to_string()) == kind).count()
            };
            assert!(count + recorded(what) <= all[what], "{what} ran again; cut before {at}");
        }
    }
}

fn step_of(key: &str) -> &'static str {
    let kinds = [
        ("ask:", "ask"),
        ("step:", "own step"),
        ("model:", "model"),
        ("before_agent:", "before_agent"),
        ("before_model:", "before_model"),
        ("after_model:", "after_model"),
        ("after_agent:", "after_agent"),
        ("tool:one", "tool one"),
        ("tool:two", "tool two"),
    ];
    kinds.iter().find(|(prefix, _)| key.starts_with(prefix)).expect("a known kind of step").1
}

#[tokio::test(start_paused = true)]
async fn g7_a_step_with_another_input_is_an_error_that_names_it() {
    let log = MemoryStepLog::new();
    let agent = |reply: &'static str| {
        Agent::builder("agent")
            .model(script([call_with("act", "{}"), say("done")]))
            .tool(ok_tool("act"))
            .instruction(reply)
    };
    run(agent("be kind"), log.clone()).await.1.unwrap();
    let error = run(agent("be rude"), log.resumed()).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Replay);
    assert!(error.to_string().contains("model:model#0"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn g7_a_retry_replays_its_failed_attempt() {
    let log = MemoryStepLog::new();
    let model = script([Reply::Fail(ModelErrorKind::Overloaded), say("second try")]);
    let attempts = Count::default();
    let agent = |model: Script, attempts: Count| {
        Agent::builder("agent").model(model).with_lifecycle(hook::wrap_model_call(
            move |_, request, next| {
                let attempts = attempts.clone();
                Box::pin(async move {
                    loop {
                        attempts.up();
                        match next.call(request).await {
                            Err(error) if error.is_retryable() => {}
                            other => return Ok(other?),
                        }
                    }
                })
            },
        ))
    };
    run(agent(model.clone(), attempts.clone()), log.clone()).await.1.unwrap();
    assert_eq!((model.calls(), attempts.get()), (2, 2));
    let output = run(agent(model.clone(), attempts.clone()), log.resumed()).await.1.unwrap();
    assert_eq!(output, "second try");
    assert_eq!(model.calls(), 2, "neither attempt is made again");
    assert_eq!(attempts.get(), 4, "the wrap runs again around the record");
}

#[tokio::test(start_paused = true)]
async fn g7_a_failure_that_was_passed_over_or_denied_stays_decided() {
    for (policy, expected) in [(Policy::Continue, Outcome::Ok), (Policy::Deny, Outcome::Denied)] {
        for fault in Fault::ALL {
            let log = MemoryStepLog::new();
            // Broken the first time only.
            let tries = Count::default();
            let agent = |tries: Count| {
                let hook = hook::before_agent(move |_, input| {
                    let first = tries.up() == 1;
                    Box::pin(async move {
                        if first {
                            return fault.strike().await;
                        }
                        input.content = "changed".into();
                        Ok(Flow::Continue)
                    })
                });
                let hook = hook::hook(hook).policy(policy).limit(ms(10));
                Agent::builder("agent").model(script([])).with_lifecycle(hook)
            };
            let outcome = |result: Result<String, Error>| match result {
                Ok(_) => Outcome::Ok,
                Err(error) => error.outcome(),
            };
            let first = run(agent(tries.clone()), log.clone()).await.1;
            assert_eq!(outcome(first), expected, "{policy:?} {fault:?}");
            let second = run(agent(tries.clone()), log.resumed()).await.1;
            assert_eq!(outcome(second), expected, "{policy:?} {fault:?}");
            assert_eq!(tries.get(), 1, "{policy:?} {fault:?}: it is not called again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g7_a_dropped_run_with_a_log_is_parked_and_goes_on_elsewhere() {
    let (log, ends) = (MemoryStepLog::new(), Log::default());
    let count = Count::default();
    let agent = |replies: Vec<Reply>| {
        Agent::builder("agent")
            .model(script(replies))
            .tool(counted("act", &count))
            .with_lifecycle(probe_at("A", &ends, Point::AfterAgent))
    };
    let first = started(agent(vec![call(&["act"]), Reply::Hang])).await;
    drop_after(first.request("go").steps(log.clone()).run(), ms(10)).await;
    first.ready().await.unwrap();
    first.blueprint().settled().await;
    assert_eq!(ends.take(), Vec::<String>::new(), "its ends wait for the real end");

    let second = started(agent(vec![say("done")])).await;
    let report = second.request("go").steps(log.resumed()).run().await.unwrap();
    assert_eq!((report.output(), count.get()), ("done", 1));
    assert_eq!(ends.take(), ["A.after_agent(ok)"]);
}

#[tokio::test(start_paused = true)]
async fn g7_a_cancelled_run_with_a_log_is_ended_not_parked() {
    let ends = Log::default();
    let agent =
        started(Agent::builder("agent").model(script([Reply::Hang])).with_lifecycle(probe_at(
            "A",
            &ends,
            Point::AfterAgent,
        )))
        .await;
    let request = agent.request("go").steps(MemoryStepLog::new()).run();
    let (result, ()) = tokio::join!(request, async {
        tokio::time::sleep(ms(5)).await;
        agent.cancel();
    });
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(ends.take(), ["A.after_agent(cancelled)"]);
}

#[tokio::test(start_paused = true)]
async fn g7_resumed_is_seen_only_by_a_begin_that_had_not_been_recorded() {
    let log = MemoryStepLog::new();
    let seen = Log::default();
    let agent = |seen: Log| {
        Agent::builder("agent").model(script([])).with_lifecycle(hook::before_agent(
            move |cx, _| {
                seen.add(format!("resumed: {}", cx.resumed()));
                Box::pin(async { Ok(Flow::Continue) })
            },
        ))
    };
    run(agent(seen.clone()), log.clone()).await.1.unwrap();
    assert_eq!(seen.take(), ["resumed: false"]);
    run(agent(seen.clone()), log.resumed()).await.1.unwrap();
    assert_eq!(seen.take(), Vec::<String>::new());
    run(agent(seen.clone()), log.cut_after(0)).await.1.unwrap();
    assert_eq!(seen.take(), ["resumed: true"]);
}

#[tokio::test(start_paused = true)]
async fn g7_what_a_begin_carries_and_records_survives_a_resume() {
    struct Carries(Log);
    #[async_trait::async_trait]
    impl hook::AgentLifecycle for Carries {
        async fn before_agent(
            &self,
            cx: tenure_core::context::TurnCx<'_>,
            _: &mut tenure_core::drive::Input,
        ) -> Result<Flow, HookError> {
            cx.carry(7_u32);
            cx.carry_recorded(&"kept")?;
            Ok(Flow::Continue)
        }
        async fn after_agent(
            &self,
            cx: tenure_core::context::TurnCx<'_>,
            _: &mut tenure_core::drive::TurnEnd<'_>,
        ) -> Result<After, HookError> {
            let live = cx.carried::<u32>().map(|it| *it);
            self.0.add(format!("{live:?} {:?}", cx.carried_recorded::<String>()));
            Ok(After::Done)
        }
    }
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    let agent = || Agent::builder("agent").model(script([])).with_lifecycle(Carries(seen.clone()));
    run(agent(), log.clone()).await.1.unwrap();
    assert_eq!(seen.take(), [r#"Some(7) Some("kept")"#]);
    let before_the_end = log.keys().len() - 1;
    run(agent(), log.cut_after(before_the_end)).await.1.unwrap();
    assert_eq!(seen.take(), [r#"None Some("kept")"#]);
}

#[tokio::test(start_paused = true)]
async fn g7_the_steps_of_a_child_are_recorded_under_its_call() {
    let (log, effects) = (MemoryStepLog::new(), Effects::default());
    let agent = |effects: &Effects| {
        let ran = effects.clone();
        let child = Agent::builder("child")
            .model(Counted(effects.clone(), vec![call(&["act"]), say("child done")]))
            .tool(tool("act", move |_, _| {
                ran.ran("tool");
                Box::pin(async { Ok("acted".into()) })
            }))
            .blueprint()
            .expect("the child is valid");
        let ask = |id| ToolCall::new(id, "agent__child", r#"{"message":"go"}"#);
        // The same call id in two steps, and two calls at once.
        let replies = vec![Reply::Call(vec![ask("c1"), ask("c2")]), Reply::Call(vec![ask("c1")])];
        Agent::builder("parent").model(Counted(effects.clone(), replies)).agent_tool(&child)
    };
    let (first, output) = run(agent(&effects), log.clone()).await;
    assert_eq!(output.unwrap(), "done");
    let ran = effects.take();
    assert_eq!((ran["model"], ran["tool"]), (3 + 3 * 2, 3));
    let keys: Vec<_> = log.keys().iter().map(ToString::to_string).collect();
    for path in ["1:c1#0/", "1:c2#0/", "2:c1#0/"] {
        let under = keys.iter().filter(|key| key.starts_with(path)).count();
        assert_eq!(under, 4, "two answers, and a call with its intent; {path}: {keys:?}");
    }
    let (second, output) = run(agent(&effects), log.resumed()).await;
    assert_eq!(output.unwrap(), "done");
    assert_eq!(effects.take(), BTreeMap::new());
    assert_eq!((first.history(), first.usage()), (second.history(), second.usage()));
}

#[tokio::test(start_paused = true)]
async fn g7_a_retried_child_is_asked_again_and_not_served_its_failure() {
    let log = MemoryStepLog::new();
    let child = Agent::builder("child")
        .model(script([Reply::Fail(ModelErrorKind::Overloaded), say("child done")]))
        .blueprint()
        .unwrap();
    let retry = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            let first = next.call(request).await?;
            if first.content.text().starts_with("Error") {
                return Ok(next.call(request).await?);
            }
            Ok(first)
        })
    });
    let parent = Agent::builder("parent")
        .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
        .agent_tool(&child)
        .with_lifecycle(retry);
    let (agent, output) = run(parent, log).await;
    output.unwrap();
    assert_eq!(contents(&agent.history()), ["child done"]);
}

#[tokio::test(start_paused = true)]
async fn g7_answers_of_parallel_calls_are_not_mixed_up_by_a_resume() {
    let log = MemoryStepLog::new();
    let agent = || {
        let asks = hook::wrap_tool_call(|cx, request, next| {
            Box::pin(async move {
                // The calls come to their question in another order than they were made.
                let first = cx.index() == 0 && !cx.resumed();
                tokio::time::sleep(ms(if first { 20 } else { 10 })).await;
                match cx.ask(Ask::input("may I?")).await? {
                    Answer::Approve => Ok(next.call(request).await?),
                    _ => Ok(ToolOutput::denied("no")),
                }
            })
        });
        Agent::builder("agent")
            .model(script([call(&["one", "two"]), say("done")]))
            .tool(ok_tool("one"))
            .tool(ok_tool("two"))
            .with_lifecycle(asks)
    };
    let turns = Count::default();
    // The second call asks first, and is refused.
    let asker = move |_: &PendingAsk| {
        Some(if turns.up() == 1 { Answer::Reject("no".into()) } else { Answer::Approve })
    };
    let (first, _) = run(agent().on_ask(asker), log.clone()).await;
    assert_eq!(contents(&first.history()), ["one ok", "no"]);
    let nobody = |_: &PendingAsk| -> Option<Answer> { panic!("answered already") };
    let (second, _) = run(agent().on_ask(nobody), log.resumed()).await;
    assert_eq!(contents(&second.history()), ["one ok", "no"]);
}

#[tokio::test(start_paused = true)]
async fn g7_an_idempotency_key_is_the_same_in_the_run_that_goes_on() {
    let keys = Log::default();
    let agent = || {
        let log = keys.clone();
        started(Agent::builder("agent").model(script([call(&["act"]), say("done")])).tool(tool(
            "act",
            move |cx, _| {
                log.add(cx.idempotency_key());
                Box::pin(async { Ok("ok".into()) })
            },
        )))
    };
    let log = MemoryStepLog::new();
    agent().await.request("go").steps(log.clone()).run().await.unwrap();
    // The process died after the model had answered, and before the tool was recorded.
    agent().await.request("go").steps(log.cut_after(1)).run().await.unwrap();
    agent().await.request("go").steps(MemoryStepLog::new()).run().await.unwrap();
    let keys = keys.take();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys.first(), keys.last(), "another run is another effect");
}

/// A record has media by its hash, and no log keeps bytes: such a run could not go on later.
#[tokio::test]
async fn a_recorded_run_refuses_bytes_in_words() {
    let picture = || Media::new("image/png", *b"bytes").named("cat.png");
    let log = MemoryStepLog::new();
    let agent = started(Agent::builder("agent").model(script([]))).await;
    let error = agent.request(picture()).steps(log).run().await.expect_err("bytes");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().ends_with("this has bytes: cat.png, image/png, 5 bytes"), "{error}");
    let report = agent.run(picture()).await.expect("unrecorded, it goes on");
    assert_eq!(report.history().iter().next().map(|it| it.content().media().count()), Some(1));
}
