//! Asking a person, and the phases while one is asked.

use crate::semantics::drive::endings::drop_after;
use crate::semantics::support::*;
use serde_json::json;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Answered, Ask, PendingAsk};
use tenure_core::event::{EventBus, EventKind};
use tenure_core::hook::{self, AgentLifecycle, Flow, HookAction, Point};
use tenure_core::message::ToolStatus;
use tenure_core::phase::Phase;
use tenure_core::tool::ToolOutput;
use tenure_core::{ErrorKind, Outcome};
use tokio::time::{Instant, sleep};

/// A wrap that asks before every tool call.
fn asks(ask: impl Fn() -> Ask + Clone + Send + Sync + 'static) -> impl AgentLifecycle {
    hook::wrap_tool_call(move |cx, request, next| {
        let ask = ask();
        Box::pin(async move {
            match cx.ask(ask).await? {
                Answer::Approve => Ok(next.call(request).await?),
                Answer::Edit(arguments) => {
                    request.arguments = arguments;
                    Ok(next.call(request).await?)
                }
                Answer::Respond(text) => Ok(text.into()),
                Answer::Reject(reason) => Ok(ToolOutput::denied(reason)),
            }
        })
    })
}

fn approval() -> Ask {
    Ask::approval("may I?", json!({}))
}

fn echo() -> AsyncTool {
    tool("echo", |_, arguments| Box::pin(async move { Ok(arguments.to_string().into()) }))
}

fn asking(ask: fn() -> Ask) -> tenure_core::agent::AgentBuilder {
    Agent::builder("agent")
        .model(script([call(&["echo"])]))
        .tool(echo())
        .with_lifecycle(hook::hook(asks(ask)).named("asks"))
}

#[tokio::test(start_paused = true)]
async fn an_asker_answers_in_process() {
    let table = [
        (Answer::Approve, "{}", ToolStatus::Ok),
        (Answer::Edit(json!({ "n": 2 })), r#"{"n":2}"#, ToolStatus::Ok),
        (Answer::Respond("done by hand".to_owned()), "done by hand", ToolStatus::Ok),
        (Answer::Reject("too risky".to_owned()), "too risky", ToolStatus::Denied),
    ];
    for (answer, content, status) in table {
        let agent = started(asking(approval).on_ask(move |ask: &PendingAsk| {
            assert_eq!((&*ask.agent, &*ask.ask.prompt), ("agent", "may I?"));
            Some(answer.clone())
        }))
        .await;
        let report = agent.run("go").await.unwrap();
        let result = &results(report.history())[0];
        assert_eq!((result.content.text(), result.status), (content, status));
        assert!(agent.pending_asks().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_counts_and_a_second_is_told_so() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let agent = started(asking(approval).events(&bus)).await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(10)).await;
        let pending = agent.pending_asks();
        assert_eq!((pending.len(), pending[0].instance), (1, agent.id()));
        assert_eq!(agent.answer("nobody asked", Answer::Approve), Answered::Unknown);
        let first = agent.answer(&pending[0].id, Answer::Reject("no".to_owned()));
        let second = agent.answer(&pending[0].id, Answer::Approve);
        assert_eq!((first, second), (Answered::Accepted, Answered::AlreadyDecided));
    });
    assert_eq!(results(result.unwrap().history())[0].status, ToolStatus::Denied);
    let names = names(&events(&mut subscriber)).join(" ");
    assert!(names.contains("ask.requested") && names.contains("ask.answered"), "{names}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_expires_counts_as_rejected() {
    let agent =
        started(asking(|| approval().expires_after(secs(5))).on_ask(|_: &PendingAsk| None)).await;
    let begun = Instant::now();
    let report = agent.run("go").await.unwrap();
    assert_eq!(begun.elapsed(), secs(5));
    let result = &results(report.history())[0];
    assert_eq!(
        (result.content.text(), result.status),
        ("nobody answered in time", ToolStatus::Denied)
    );
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_answer_the_answer_is_no() {
    let count = Count::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &count))
            .with_lifecycle(asks(approval)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((results(report.history())[0].status, count.get()), (ToolStatus::Denied, 0));

    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(
        hook::before_agent(|cx, _| {
            Box::pin(async move {
                cx.ask(Ask::input("who are you?")).await?;
                Ok(Flow::Continue)
            })
        }),
    ))
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Denied, Outcome::Denied));
}

#[tokio::test(start_paused = true)]
async fn an_approval_after_the_model_settles_what_is_pending() {
    let approve = || hook::after_model(|_, _| Box::pin(async { Ok(HookAction::Approve) }));
    let agent = started(asking(approval).with_lifecycle(approve())).await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(results(report.history())[0].status, ToolStatus::Ok, "nobody had to be asked");

    // Who approves has seen something else than what a later hook makes of it.
    let modify = hook::after_model(|_, response| {
        let response = response.clone();
        Box::pin(async { Ok(HookAction::Modify(Box::new(response))) })
    });
    let agent = started(
        asking(approval)
            .with_lifecycle(hook::hook(modify).named("outer modifies"))
            .with_lifecycle(approve()),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(results(report.history())[0].status, ToolStatus::Denied, "nobody could be asked");
}

#[tokio::test(start_paused = true)]
async fn the_phase_says_who_is_waited_for_and_is_restored() {
    let log = Log::default();
    let ask = |prompt: &'static str| Ask::input(prompt);
    let agent = started(
        asking(approval)
            .with_lifecycle(probe_at("T", &log, Point::OnTransition))
            .with_lifecycle(hook::before_agent(move |cx, _| {
                Box::pin(async move {
                    cx.ask(ask("begin?")).await?;
                    assert_eq!(cx.agent().phase(), Phase::ProcessingUserInput);
                    Ok(Flow::Continue)
                })
            }))
            .with_lifecycle(hook::wrap_model_call(move |cx, request, next| {
                Box::pin(async move {
                    if cx.step_number() == 1 {
                        cx.ask(ask("model?")).await?;
                        assert_eq!(cx.agent().phase(), Phase::AwaitingLlmResponse);
                    }
                    Ok(next.call(request).await?)
                })
            }))
            .on_ask(|_: &PendingAsk| Some(Answer::Approve)),
    )
    .await;
    log.take();
    agent.run("go").await.unwrap();
    assert_eq!(
        log.take(),
        [
            "T.idle>processing_user_input",
            "T.processing_user_input>awaiting_user_input",
            "T.awaiting_user_input>processing_user_input",
            "T.processing_user_input>awaiting_llm_response",
            "T.awaiting_llm_response>awaiting_user_input",
            "T.awaiting_user_input>awaiting_llm_response",
            "T.awaiting_llm_response>analyzing_llm_response",
            "T.analyzing_llm_response>awaiting_tool_approval",
            "T.awaiting_tool_approval>executing_tool",
            "T.executing_tool>processing_tool_result",
            "T.processing_tool_result>awaiting_llm_response",
            "T.awaiting_llm_response>analyzing_llm_response",
            "T.analyzing_llm_response>idle",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_tool_beside_a_waiting_one_means_executing() {
    let log = Log::default();
    let body_asks = tool("asks", |cx, _| {
        Box::pin(async move {
            cx.ask(Ask::input("well?")).await?;
            Ok("asked".into())
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["asks", "slow"])]))
            .tool(body_asks)
            .tool(slow_tool("slow", ms(50)))
            .with_lifecycle(probe_at("T", &log, Point::OnTransition))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(20)).await;
        assert_eq!(agent.phase(), Phase::ExecutingTool, "one of them runs");
        sleep(ms(50)).await;
        assert_eq!(agent.phase(), Phase::AwaitingToolApproval, "all others wait");
        agent.answer(&agent.pending_asks()[0].id, Answer::Approve);
    });
    result.unwrap();
    let lines = log.take();
    let at = lines.iter().position(|it| it.contains("awaiting_tool_approval>executing")).unwrap();
    assert!(lines[at..].iter().any(|line| line.contains("executing_tool>processing_tool_result")));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_leaves_the_phase_as_it_was_and_the_question_closed() {
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(hook::before_agent(|cx, _| {
                Box::pin(async move {
                    drop_after(cx.ask(Ask::input("anybody?")), secs(1)).await;
                    assert_eq!(cx.agent().phase(), Phase::ProcessingUserInput);
                    Ok(Flow::Continue)
                })
            }))
            .turn_limit(ms(500))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let report = agent.run("go").await.expect("the second that was waited does not count");
    assert_eq!(report.failures, []);
    assert!(agent.pending_asks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g8_a_cancel_and_a_drop_while_a_person_is_asked_end_the_turn() {
    for drops in [false, true] {
        let log = Log::default();
        let agent = started(
            asking(approval)
                .with_lifecycle(probe_at("A", &log, Point::AfterAgent))
                .on_ask(|_: &PendingAsk| None),
        )
        .await;
        if drops {
            drop_after(agent.run("go"), ms(10)).await;
            agent.ready().await.unwrap();
        } else {
            let (result, ()) = tokio::join!(agent.run("go"), async {
                sleep(ms(10)).await;
                agent.cancel();
            });
            assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
        }
        assert_eq!(log.take(), ["A.after_agent(cancelled)"]);
        assert!(agent.pending_asks().is_empty());
        assert_valid(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn an_asker_that_panics_is_an_error_of_the_ask() {
    let agent = started(asking(approval).on_ask(|_: &PendingAsk| panic!("no screen"))).await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ask);
    assert!(error.to_string().contains("no screen"), "{error}");
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn a_childs_question_reaches_whoever_answers_for_its_parent() {
    for watched in [false, true] {
        let bus = EventBus::new();
        let _subscriber = watched.then(|| bus.subscribe(1));
        let child = Agent::builder("child")
            .model(script([call(&["echo"]), say("child done")]))
            .tool(echo())
            .with_lifecycle(asks(approval))
            .blueprint()
            .unwrap();
        let mut parent = Agent::builder("parent")
            .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
            .agent_tool(&child)
            .events(&bus);
        if !watched {
            parent = parent.on_ask(|_: &PendingAsk| None);
        }
        let parent = started(parent).await;
        let (result, ()) = tokio::join!(parent.run("go"), async {
            sleep(ms(10)).await;
            let pending = parent.pending_asks();
            assert_eq!((pending.len(), &*pending[0].agent), (1, "child#1[tool]"));
            assert_eq!(parent.answer(&pending[0].id, Answer::Approve), Answered::Accepted);
        });
        assert_eq!(contents(result.unwrap().history()), ["child done"]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_questions_at_once_are_one_wait_and_the_last_answer_ends_it() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(probe_at("T", &log, Point::OnTransition))
            .with_lifecycle(hook::before_agent(|cx, _| {
                Box::pin(async move {
                    let (one, two) =
                        tokio::join!(cx.ask(Ask::input("one?")), cx.ask(Ask::input("two?")));
                    assert_eq!(cx.agent().phase(), Phase::ProcessingUserInput);
                    one?;
                    two?;
                    Ok(Flow::Continue)
                })
            }))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    log.take();
    let (result, ()) = tokio::join!(agent.run("go"), async {
        for _ in 0..2 {
            sleep(ms(10)).await;
            assert_eq!(agent.phase(), Phase::AwaitingUserInput);
            agent.answer(&agent.pending_asks()[0].id, Answer::Approve);
        }
    });
    assert_eq!(result.unwrap().failures, []);
    assert_eq!(log.lines().iter().filter(|it| it.contains("awaiting_user_input")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_question_says_who_asks_and_about_which_call() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (bus, noted) = (EventBus::new(), seen.clone());
    let mut subscriber = bus.subscribe(1024);
    let human = tool("human", |cx, _| {
        Box::pin(async move { Ok(format!("{:?}", cx.ask(Ask::input("who?")).await?).into()) })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["echo", "human"])]))
            .tool(echo())
            .tool(human)
            .with_lifecycle(hook::hook(asks(approval)).named("guard"))
            .on_ask(move |ask: &PendingAsk| {
                let text = |it: &Option<std::sync::Arc<str>>| it.as_deref().map(str::to_owned);
                let who = (text(&ask.hook), text(&ask.tool), text(&ask.call_id).is_some());
                noted.lock().unwrap().push((who, ask.parameters.is_some()));
                let me = Answer::Respond("me".to_owned());
                Some(if ask.ask.is_approval() { Answer::Approve } else { me })
            })
            .events(&bus),
    )
    .await;
    agent.run("go").await.unwrap();
    let owned = |text: &str| Some(text.to_owned());
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let of_hook = |tool| ((owned("guard"), owned(tool), true), true);
    let of_tool = ((None, owned("human"), true), true);
    assert_eq!(seen, [of_tool, of_hook("echo"), of_hook("human")]);
    let mut told: Vec<_> = events(&mut subscriber)
        .into_iter()
        .filter_map(|event| match &event.kind {
            EventKind::Asked { tool, approval, .. } => {
                Some((tool.as_deref()?.to_owned(), *approval))
            }
            _ => None,
        })
        .collect();
    told.sort();
    let told: Vec<_> = told.iter().map(|(tool, approval)| (&**tool, *approval)).collect();
    assert_eq!(told, [("echo", true), ("human", false), ("human", true)]);
}

fn form() -> Ask {
    let properties = json!({ "city": { "type": "string" }, "days": { "type": "integer" } });
    let schema = json!({ "type": "object", "required": ["city"], "properties": properties });
    Ask::input("where to?").schema(schema)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() {
    let bus = EventBus::new();
    let _listens = bus.subscribe(1024);
    let agent = started(asking(form).events(&bus)).await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(10)).await;
        let id = agent.pending_asks()[0].id.clone();
        for (text, field) in [("{}", "city"), (r#"{"city": "B", "days": "3"}"#, "days"), ("B", "")]
        {
            let Answered::Unfit(misfit) = agent.answer(&id, Answer::Respond(text.to_owned()))
            else {
                panic!("{text} does not fit");
            };
            assert_eq!(misfit.field, field, "{misfit}");
            assert_eq!(agent.pending_asks().len(), 1);
        }
        let fits = Answer::Respond(r#"{"city": "Bern"}"#.to_owned());
        assert_eq!(agent.answer(&id, fits), Answered::Accepted);
    });
    assert_eq!(results(result.unwrap().history())[0].content.text(), r#"{"city": "Bern"}"#);
}

#[tokio::test(start_paused = true)]
async fn an_asker_that_answers_in_another_form_fails_the_question() {
    let agent = started(
        asking(form).on_ask(|_: &PendingAsk| Some(Answer::Respond(r#"{"city": 3}"#.to_owned()))),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ask);
    assert!(error.to_string().contains("`city`: this is a number"), "{error}");
    assert_valid(&agent);
    // A refusal needs no form.
    let agent =
        started(asking(form).on_ask(|_: &PendingAsk| Some(Answer::Reject("no".to_owned()))));
    let report = agent.await.run("go").await.unwrap();
    assert_eq!(results(report.history())[0].status, ToolStatus::Denied);
}

#[tokio::test(start_paused = true)]
async fn g1_a_question_that_nobody_answered_ends_with_an_event() {
    let ends = async |how: &str| {
        let bus = EventBus::new();
        let mut heard = bus.subscribe(1 << 10);
        let agent = started(asking(approval).events(&bus)).await;
        match how {
            "cancelled" => {
                let (_, ()) = tokio::join!(agent.run("go"), async {
                    sleep(ms(10)).await;
                    agent.cancel();
                });
            }
            "dropped" => {
                drop_after(agent.run("go"), ms(10)).await;
                agent.ready().await.unwrap();
            }
            "stopped" => {
                let (_, ()) = tokio::join!(agent.run("go"), async {
                    sleep(ms(10)).await;
                    agent.shutdown().await;
                });
            }
            "answered" => {
                let (_, ()) = tokio::join!(agent.run("go"), async {
                    sleep(ms(10)).await;
                    let id = agent.pending_asks()[0].id.clone();
                    assert_eq!(agent.answer(&id, Answer::Approve), Answered::Accepted);
                });
            }
            other => panic!("{other}"),
        }
        let (mut asked, mut ended) = (Vec::new(), Vec::new());
        for event in events(&mut heard) {
            match &event.kind {
                EventKind::Asked { ask, .. } => asked.push(ask.clone()),
                EventKind::Answered { ask, decision } => ended.push((ask.clone(), *decision)),
                EventKind::AskEnded { ask, outcome } => ended.push((ask.clone(), outcome.as_str())),
                _ => {}
            }
        }
        assert_eq!(asked, ended.iter().map(|(ask, _)| ask.clone()).collect::<Vec<_>>(), "{how}");
        ended.iter().map(|(_, how)| *how).collect::<Vec<_>>()
    };
    assert_eq!(ends("answered").await, ["approve"]);
    for how in ["cancelled", "dropped", "stopped"] {
        assert_eq!(ends(how).await, ["cancelled"], "{how}");
    }
}
