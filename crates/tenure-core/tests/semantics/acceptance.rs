//! What is known to go wrong elsewhere, and must not here.

use crate::semantics::support::*;
use serde_json::json;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::event::{EventBus, EventKind};
use tenure_core::hook::{
    self, After, Flow, HookAction, HookError, JumpTarget, Point, Points, Policy,
};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::model::ModelResponse;
use tenure_core::state::{Ownership, Reducer};
use tenure_core::{ErrorKind, Outcome};

const TURN: Points = Points::NONE
    .with(Point::BeforeAgent)
    .with(Point::AfterModel)
    .with(Point::WrapToolCall)
    .with(Point::AfterAgent);

#[tokio::test(start_paused = true)]
async fn e2_a_tool_that_fails_is_a_result_and_every_end_runs() {
    let log = Log::default();
    for broken in
        [failing_tool("act"), tool("act", |_, _| Box::pin(async { panic!("the tool panics") }))]
    {
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"]), say("sorry")]))
                .tool(broken)
                .with_lifecycle(probe_at("A", &log, TURN)),
        )
        .await;
        let report = agent.run("go").await.unwrap();
        assert_eq!(report.output(), "sorry");
        assert_eq!(results(report.history())[0].status, ToolStatus::Error);
        assert_eq!(
            log.take(),
            [
                "A.before_agent",
                "A.after_model",
                "A.tool>",
                "A.tool<",
                "A.after_model",
                "A.after_agent(ok)"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn e3_a_cancel_in_a_tool_runs_the_ends_and_leaves_no_call_unanswered() {
    let log = Log::default();
    let seen = log.clone();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["hang"])]))
            .tool(tool("hang", move |cx, _| {
                let seen = seen.clone();
                Box::pin(async move {
                    cx.cancelled().await;
                    seen.add("the tool heard of it");
                    std::future::pending().await
                })
            }))
            .with_lifecycle(probe_at("A", &log, Point::AfterAgent)),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        tokio::time::sleep(ms(10)).await;
        agent.cancel();
    });
    let error = result.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Cancelled);
    assert_eq!(log.take(), ["the tool heard of it", "A.after_agent(cancelled)"]);
    assert_eq!(results(&agent.history())[0].status, ToolStatus::Cancelled);
    assert_valid(&agent);
    assert_eq!(agent.run("again").await.unwrap().output(), "done");
}

#[tokio::test(start_paused = true)]
async fn e4b_asking_behind_the_call_does_not_run_the_tool_twice() {
    let count = Count::default();
    let asks_after = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            let result = next.call(request).await?;
            match cx.ask(Ask::approval("show this?", json!(result.content))).await? {
                Answer::Approve => Ok(result),
                _ => Ok(tenure_core::tool::ToolOutput::denied("withheld")),
            }
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &count))
            .with_lifecycle(asks_after)
            .on_ask(|_: &PendingAsk| Some(Answer::Approve)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((count.get(), contents(report.history())), (1, vec!["act ok".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn e4c_a_second_request_while_a_person_is_asked_leaves_no_call_unanswered() {
    let asks = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            cx.ask(Ask::approval("may I?", json!({}))).await?;
            Ok(next.call(request).await?)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(ok_tool("act"))
            .with_lifecycle(asks)
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (first, ()) = tokio::join!(agent.run("go"), async {
        tokio::time::sleep(ms(10)).await;
        let error = agent.run("and another thing").await.unwrap_err();
        assert_eq!(error.state(), Some(tenure_core::phase::AgentState::Busy));
        // A server's request goes to a fork, whose history is a committed one.
        let forked = agent.handle("meanwhile").await.unwrap();
        assert_eq!(forked.history().len(), 2);
        agent.answer(&agent.pending_asks()[0].id, Answer::Approve);
    });
    assert_eq!(contents(first.unwrap().history()), ["act ok"]);
    assert_valid(&agent);
}

/// There, a jump that was not declared is ignored. Here every jump is obeyed.
#[tokio::test(start_paused = true)]
async fn e6_a_jump_needs_no_declaration() {
    let count = Count::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &count))
            .with_lifecycle(hook::after_model(|_, _| {
                Box::pin(async { Ok(HookAction::JumpTo(JumpTarget::End)) })
            })),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.steps, count.get()), (1, 0));
    assert_valid(&agent);
}

fn writes(name: &'static str, value: i64, slow: u64) -> AsyncTool {
    let mut tool = tool(name, move |cx, _| {
        Box::pin(async move {
            tokio::time::sleep(ms(slow)).await;
            cx.set_state("found", value)?;
            Ok("written".into())
        })
    });
    tool.spec = tool.spec.writes("found");
    tool
}

#[tokio::test(start_paused = true)]
async fn e7_two_parallel_writers_of_one_key_need_a_reducer_before_anything_runs() {
    let two = || {
        Agent::builder("agent")
            .model(script([call(&["slow", "fast"])]))
            .tool(writes("slow", 1, 50))
            .tool(writes("fast", 2, 5))
    };
    let error = two().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("`found`") && error.to_string().contains("reducer"));

    let agent = started(two().ownership(Ownership::new().shared("found", Reducer::Append))).await;
    agent.run("go").await.unwrap();
    assert_eq!(agent.state_value("found"), Some(json!([1, 2])), "merged in call order");
}

#[tokio::test(start_paused = true)]
async fn e8_an_inner_jump_does_not_hide_the_response_from_outer_hooks() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([say("hello")]))
            .with_lifecycle(probe_at("outer", &log, Point::AfterModel))
            .with_lifecycle(hook::after_model(|_, _| {
                Box::pin(async { Ok(HookAction::JumpTo(JumpTarget::End)) })
            })),
    )
    .await;
    agent.run("go").await.unwrap();
    assert_eq!(log.take(), ["outer.after_model"]);
}

#[tokio::test(start_paused = true)]
async fn e12_a_stream_never_shows_what_a_hook_redacts() {
    fn redact(text: &str) -> String {
        text.replace("bob@example.com", "[redacted]")
    }
    let after_model: Box<dyn Fn() -> hook::Registration> = Box::new(|| {
        hook::hook(hook::after_model(|_, response| {
            let mut response = response.clone();
            response.content = redact(response.content.text()).into();
            Box::pin(async { Ok(HookAction::Modify(Box::new(response))) })
        }))
    });
    let wrap: Box<dyn Fn() -> hook::Registration> = Box::new(|| {
        hook::hook(hook::wrap_model_call(|_, request, next| {
            Box::pin(async move {
                let mut response = next.call(request).await?;
                response.content = redact(response.content.text()).into();
                Ok(response)
            })
        }))
    });
    let after_agent: Box<dyn Fn() -> hook::Registration> = Box::new(|| {
        hook::hook(hook::after_agent(|_, end| {
            Box::pin(async move {
                if let Some(output) = end.content_mut() {
                    *output = redact(output.text()).into();
                }
                Ok(After::Done)
            })
        }))
    });
    for redactor in [after_model, wrap, after_agent] {
        let agent = started(
            Agent::builder("agent")
                .model(script([Reply::Stream(&["write to ", "bob@", "example.com", " now"])]))
                .with_lifecycle(redactor()),
        )
        .await;
        let mut stream = agent.stream("who?");
        let mut pieces = Vec::new();
        while let Some(piece) = stream.next().await {
            pieces.push(piece);
        }
        let report = stream.finish().await.unwrap();
        assert_eq!(pieces.concat(), "write to [redacted] now");
        assert_eq!(report.output(), "write to [redacted] now");
    }
}

#[tokio::test(start_paused = true)]
async fn e13_an_end_that_fails_skips_no_other() {
    for fault in Fault::ALL {
        let log = Log::default();
        let agent = started(
            Agent::builder("agent")
                .model(script([]))
                .with_lifecycle(probe_at("A", &log, Point::AfterAgent))
                .with_lifecycle(Broken { point: Point::AfterAgent, fault, after_next: false })
                .with_lifecycle(probe_at("B", &log, Point::AfterAgent)),
        )
        .await;
        assert_eq!(agent.run("go").await.unwrap().outcome, Outcome::Ok);
        assert_eq!(log.take(), ["B.after_agent(ok)", "A.after_agent(ok)"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn e13b_a_begin_that_fails_still_ends_whoever_was_entered() {
    for point in [Point::BeforeModel, Point::BeforeAgent] {
        let log = Log::default();
        let fault = Fault::Error;
        let agent = started(
            Agent::builder("agent")
                .model(script([]))
                .with_lifecycle(probe_at("A", &log, Point::AfterAgent))
                .with_lifecycle(Broken { point, fault, after_next: false }),
        )
        .await;
        agent.run("go").await.unwrap_err();
        assert_eq!(log.take(), ["A.after_agent(failed)"], "{point}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_around_an_ask_does_not_swallow_it() {
    let (attempts, tries) = (Count::default(), Count::default());
    let counted_attempts = attempts.clone();
    let retry = hook::wrap_tool_call(move |_, request, next| {
        let attempts = counted_attempts.clone();
        Box::pin(async move {
            loop {
                attempts.up();
                match next.call(request).await {
                    Ok(result) => return Ok(result),
                    Err(error) if attempts.get() >= 5 => return Err(error.into()),
                    Err(_) => {}
                }
            }
        })
    });
    let asks = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            match cx.ask(Ask::approval("really?", request.arguments.clone())).await? {
                Answer::Approve => Ok(next.call(request).await?),
                _ => Ok(tenure_core::tool::ToolOutput::denied("the person said no")),
            }
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &tries))
            .with_lifecycle(retry)
            .with_lifecycle(asks)
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        tokio::time::sleep(secs(60)).await;
        let pending = agent.pending_asks();
        assert_eq!(pending.len(), 1, "asked once, and waiting");
        agent.answer(&pending[0].id, Answer::Approve);
    });
    assert_eq!(contents(result.unwrap().history()), ["act ok"]);
    assert_eq!((attempts.get(), tries.get()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn two_approvals_are_kept_apart_by_call_not_by_position() {
    let asks = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            match cx.ask(Ask::approval("may I?", json!(cx.call_id()))).await? {
                Answer::Approve => Ok(next.call(request).await?),
                _ => Ok(tenure_core::tool::ToolOutput::denied("no")),
            }
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["one", "two"])]))
            .tool(ok_tool("one"))
            .tool(ok_tool("two"))
            .with_lifecycle(asks)
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        tokio::time::sleep(ms(1)).await;
        let pending = agent.pending_asks();
        let of = |call: &str| {
            let ask = pending.iter().find(|it| it.ask.action == Some(json!(call)));
            ask.expect("both calls ask").id.clone()
        };
        // The second is answered first.
        agent.answer(&of("c2"), Answer::Approve);
        agent.answer(&of("c1"), Answer::Reject("no".to_owned()));
    });
    let report = result.unwrap();
    let statuses: Vec<_> = results(report.history()).iter().map(|it| it.status).collect();
    assert_eq!(statuses, [ToolStatus::Denied, ToolStatus::Ok]);
}

#[tokio::test(start_paused = true)]
async fn g11_what_a_clone_does_leaves_the_original_as_it_was() {
    let agent = started(
        Agent::builder("agent").model(script([say("one"), say("two")])).tool(ok_tool("act")),
    )
    .await;
    agent.run("first").await.unwrap();
    agent.set_state("_notes", json!({ "kept": true })).unwrap();
    let before = serde_json::to_vec(&(agent.history(), agent.state_values())).unwrap();

    let clone = agent.spawn_detached_instance(None).await.unwrap();
    assert!(clone.history().is_empty(), "own history");
    clone.set_state("_notes", "overwritten").unwrap();
    clone.set_history([Message::user("other")].into_iter().collect()).unwrap();
    clone.run("second").await.unwrap();
    clone.shutdown().await;

    let after = serde_json::to_vec(&(agent.history(), agent.state_values())).unwrap();
    assert_eq!(before, after);
    assert_ne!(agent.id(), clone.id());
}

#[tokio::test(start_paused = true)]
async fn g11_a_subagent_is_denied_by_its_parents_guard_however_deep() {
    let count = Count::default();
    let guard = || {
        hook::hook(hook::wrap_tool_call(|_, request, next| {
            Box::pin(async move {
                if request.name() == "shell" {
                    return Err(HookError::new("no shell here"));
                }
                Ok(next.call(request).await?)
            })
        }))
        .named("guard")
        .policy(Policy::Deny)
    };
    let leaf = Agent::builder("leaf")
        .model(script([call(&["shell"]), say("leaf done")]))
        .tool(counted("shell", &count))
        .blueprint()
        .unwrap();
    let middle = Agent::builder("middle")
        .model(script([call_with("agent__leaf", r#"{"message":"go"}"#), say("middle done")]))
        .agent_tool(&leaf)
        .blueprint()
        .unwrap();
    let agent = started(
        Agent::builder("root")
            .model(script([call_with("agent__middle", r#"{"message":"go"}"#)]))
            .agent_tool(&middle)
            .with_lifecycle(guard()),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["middle done"]);
    assert_eq!(count.get(), 0, "the guard of the root stands before the leaf's tool");
}

#[tokio::test(start_paused = true)]
async fn a_short_circuit_is_visible_in_the_events() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let count = Count::default();
    let short = hook::wrap_tool_call(|_, _, _| Box::pin(async { Ok("cached".into()) }));
    let model_short = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            if request.messages.len() > 1 {
                return Ok(ModelResponse::text("from the cache"));
            }
            Ok(next.call(request).await?)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &count))
            .with_lifecycle(hook::hook(short).named("cache"))
            .with_lifecycle(hook::hook(model_short).named("model cache"))
            .events(&bus),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "from the cache");
    let events = events(&mut subscriber);
    assert_paired(&events);
    let hooks = |wanted: &str| {
        let is = |kind: &EventKind| {
            matches!(kind, EventKind::HookEnded { hook, outcome: Outcome::Ok, .. }
                if &**hook == wanted)
        };
        events.iter().filter(|event| is(&event.kind)).count()
    };
    assert_eq!((hooks("cache"), hooks("model cache")), (1, 2));
    let names = names(&events);
    assert_eq!(names.iter().filter(|name| **name == "tool.started").count(), 1);
    assert_eq!(names.iter().filter(|name| **name == "tool.ended").count(), 1);
    assert!(!names.contains(&"tool.executing"), "the tool itself did not run");
    assert_eq!(names.iter().filter(|name| **name == "model.started").count(), 1);
    assert_eq!(count.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn g3_a_begin_that_denies_is_not_an_error_that_a_wrap_can_catch() {
    let model = script([]);
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .with_lifecycle(hook::wrap_model_call(|_, request, next| {
                Box::pin(async move {
                    let result = next.call(request).await;
                    Ok(result.unwrap_or_else(|_| ModelResponse::text("recovered")))
                })
            }))
            .with_lifecycle(
                hook::hook(hook::before_model(|_, _| {
                    Box::pin(async { Err::<Flow, _>(HookError::new("not now")) })
                }))
                .policy(Policy::Deny),
            ),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.outcome(), model.calls()), (Outcome::Denied, 0));
}
