//! A person decides about tool calls.

use crate::privacy::support::*;
use crate::support::{made, results};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, Answered, PendingAsk};
use tenure_core::context::ExecutionContext;
use tenure_core::hook::{self, Policy};
use tenure_core::message::ToolStatus;
use tenure_core::model::ModelResponse;
use tenure_hooks::guard::{Condition, Permissions};
use tenure_hooks::people::{Approval, ApprovalRule, Decision, OnReject, Remember};
use tenure_models::Scripted;

/// An agent whose model makes these calls, and is then done.
fn clerk<'a>(
    made: impl IntoIterator<Item = (&'a str, Value)>,
    approval: Approval,
    notes: &Notes,
) -> AgentBuilder {
    Agent::builder("clerk")
        .model(ByTurn(vec![calls(made), ModelResponse::text("done")]))
        .with_lifecycle(approval)
        .tool(tool("pay", notes, "paid"))
        .tool(tool("delete_user", notes, "deleted"))
        .tool(tool("read", notes, "a letter"))
}

/// What the tools answered, by call: how it ended, and what the model reads.
/// Runs it to its end, and gives what the tools answered.
async fn ran(builder: AgentBuilder) -> Vec<(ToolStatus, String)> {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent.run("go").await.expect("it works here");
    let results = results(&agent);
    agent.shutdown().await;
    results
}

/// Leaves it to whoever calls `answer`.
fn nobody(_: &PendingAsk) -> Option<Answer> {
    None
}

async fn wait_for(agent: &Agent, count: usize) -> Vec<PendingAsk> {
    let wait = async {
        loop {
            let asks = agent.pending_asks();
            if asks.len() == count {
                return asks;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the questions are put")
}

#[tokio::test]
async fn three_calls_are_asked_about_at_once_and_each_answer_finds_its_own() {
    let notes = Notes::default();
    let made = [1, 2, 3].map(|amount| ("pay", json!({ "amount": amount })));
    let agent = clerk(made, Approval::new().tool("*"), &notes).on_ask(nobody).build().unwrap();
    agent.startup().await.unwrap();
    let answers = async {
        let asks = wait_for(&agent, 3).await;
        let ask = |call: &str| {
            let ask = asks.iter().find(|ask| ask.call_id.as_deref() == Some(call)).unwrap();
            assert_eq!(ask.hook.as_deref(), Some("approval"));
            assert_eq!(ask.tool.as_deref(), Some("pay"));
            ask.id.to_string()
        };
        // The last first.
        let answered = [
            agent.answer(&ask("c2"), Answer::Approve),
            agent.answer(&ask("c0"), Answer::Reject("too dear".into())),
            agent.answer(&ask("c1"), Answer::Edit(json!({ "amount": 20 }))),
        ];
        assert!(answered.iter().all(|it| *it == Answered::Accepted), "{answered:?}");
        assert_eq!(agent.answer(&ask("c0"), Answer::Approve), Answered::AlreadyDecided);
    };
    let (report, ()) = tokio::join!(agent.run("go"), answers);
    assert_eq!(report.unwrap().output(), "done");
    let mut ran = notes.all();
    ran.sort();
    assert_eq!(ran, [r#"pay {"amount":20}"#, r#"pay {"amount":3}"#]);
    let results = results(&agent);
    assert_eq!(
        results[0],
        (ToolStatus::Denied, "a person rejected the call of `pay`: too dear".into())
    );
    assert_eq!(results[1].1, "paid\n\n(A person changed the arguments: `amount`.)");
    assert_eq!(results[2], (ToolStatus::Ok, "paid".into()));
    agent.shutdown().await;
}

#[tokio::test]
async fn tools_are_chosen_by_name_and_condition() {
    let notes = Notes::default();
    let asked = Notes::default();
    let asks = asked.clone();
    let pay = ApprovalRule::new().when("arguments.amount > 100 and user != 'boss'").unwrap();
    let approval = Approval::new().tool("*").never("re*").tool_with("pay", pay);
    let made = [
        ("pay", json!({ "amount": 100 })),
        ("pay", json!({ "amount": 101 })),
        // The condition cannot be decided, so a person is asked.
        ("pay", json!({})),
        ("read", json!({})),
        ("delete_user", json!({})),
    ];
    let agent = clerk(made, approval, &notes)
        .on_ask(move |ask: &PendingAsk| {
            asks.add(format!("{} {}", ask.ask.prompt, ask.ask.action.as_ref().unwrap()));
            Some(Answer::Reject("no".into()))
        })
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    let mut ran = notes.all();
    ran.sort();
    assert_eq!(ran, [r#"pay {"amount":100}"#, "read {}"]);
    let mut questions = asked.all();
    questions.sort();
    let prefix = "Tool execution requires approval";
    assert_eq!(
        questions,
        [
            format!("{prefix}: delete_user {{}}"),
            format!("{prefix}: pay {{\"amount\":101}}"),
            format!("{prefix}: pay {{}}"),
        ]
    );
    agent.shutdown().await;
}

#[tokio::test]
async fn a_condition_sees_who_the_user_is_and_a_description_the_call() {
    let notes = Notes::default();
    let asked = Notes::default();
    let asks = asked.clone();
    let rule = ApprovalRule::new()
        .when("user != 'boss'")
        .unwrap()
        .description("May {{ agent.name }} {{ tool.name }} {{ arguments.amount }} for {{ user }}?")
        .unwrap();
    let approval = Approval::new().tool_with("pay", rule);
    let agent = clerk([("pay", json!({ "amount": 7 }))], approval, &notes)
        .without_history()
        .on_ask(move |ask: &PendingAsk| {
            asks.add(&ask.ask.prompt);
            Some(Answer::Respond("paid in cash".into()))
        })
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    for user in ["boss", "ann"] {
        let context = ExecutionContext::unique().with_user_id(user);
        agent.request("go").context(context).run().await.unwrap();
    }
    assert_eq!(asked.all(), ["May clerk pay 7 for ann?"]);
    assert_eq!(notes.all().len(), 1, "only the boss's was made");
    agent.shutdown().await;
}

#[tokio::test]
async fn an_answer_in_words_is_the_result() {
    let notes = Notes::default();
    let builder = clerk([("pay", json!({}))], Approval::new().tool("pay"), &notes)
        .on_ask(|_: &PendingAsk| Some(Answer::Respond("paid in cash".into())));
    assert_eq!(ran(builder).await, [(ToolStatus::Ok, "paid in cash".into())]);
    assert!(notes.all().is_empty());
}

/// Answers as the list says, one after the other.
fn one_by_one(
    answers: impl IntoIterator<Item = Answer>,
    asked: &Notes,
) -> impl Fn(&PendingAsk) -> Option<Answer> + Send + Sync + 'static {
    let answers: std::collections::VecDeque<_> = answers.into_iter().collect();
    let (answers, asked) = (std::sync::Mutex::new(answers), asked.clone());
    move |ask: &PendingAsk| {
        asked.add(&ask.ask.prompt);
        answers.lock().expect("nobody panics under this lock").pop_front()
    }
}

#[tokio::test]
async fn an_answer_that_is_not_allowed_is_asked_for_again_and_not_for_ever() {
    let (notes, asked) = (Notes::default(), Notes::default());
    let rule = || ApprovalRule::new().allow([Decision::Approve, Decision::Reject]);
    let edit = || Answer::Edit(json!({ "amount": 1 }));
    let approval = Approval::new().tool_with("pay", rule());
    let answers = [edit(), Answer::Respond("no".into()), Answer::Approve];
    let builder = clerk([("pay", json!({ "amount": 5 }))], approval.clone(), &notes)
        .on_ask(one_by_one(answers, &asked));
    assert_eq!(ran(builder).await, [(ToolStatus::Ok, "paid".into())]);
    assert_eq!(notes.all(), [r#"pay {"amount":5}"#]);
    let second = "The last answer does not count: `edit` is not allowed here; allowed are: \
                  approve, reject";
    assert!(asked.all()[1].ends_with(second), "{:?}", asked.all());

    let (notes, asked) = (Notes::default(), Notes::default());
    let answers = [edit(), edit(), edit(), Answer::Approve];
    let builder = clerk([("pay", json!({ "amount": 5 }))], approval, &notes)
        .on_ask(one_by_one(answers, &asked));
    let results = ran(builder).await;
    assert_eq!(results[0].0, ToolStatus::Denied);
    assert!(results[0].1.ends_with("none of 3 answers could count"), "{results:?}");
    assert_eq!((asked.all().len(), notes.all().len()), (3, 0));
}

#[tokio::test]
async fn edits_are_held_against_the_tool_and_against_the_rule() {
    let (notes, asked) = (Notes::default(), Notes::default());
    let schema = json!({ "properties": { "amount": { "maximum": 10 } }, "required": ["amount"] });
    let approval = Approval::new()
        .tool_with("pay", ApprovalRule::new().args_schema(schema))
        .attempts(5)
        .edit_notice(false);
    let answers = [
        Answer::Edit(json!({ "amount": "much" })),
        Answer::Edit(json!({ "amount": 11 })),
        Answer::Edit(json!("nothing")),
        Answer::Edit(json!({ "amount": 9 })),
    ];
    let builder = clerk([("pay", json!({ "amount": 50 }))], approval, &notes)
        .on_ask(one_by_one(answers, &asked));
    assert_eq!(ran(builder).await, [(ToolStatus::Ok, "paid".into())]);
    assert_eq!(notes.all(), [r#"pay {"amount":9}"#]);
    let questions = asked.all();
    assert!(questions[1].contains("`amount`: this is a text; wanted is integer"), "{questions:?}");
    assert!(questions[2].contains("`amount`: this must be at most 10"), "{questions:?}");
    assert!(questions[3].contains("no JSON object"), "{questions:?}");
}

#[tokio::test]
async fn what_a_person_edits_is_checked_by_the_guards_again() {
    let notes = Notes::default();
    let guard = hook::wrap_tool_call(|_cx, request, next| {
        Box::pin(async move {
            if request.arguments["amount"].as_i64().is_none_or(|amount| amount > 1000) {
                return Err(tenure_core::Error::denied("more than anybody may pay").into());
            }
            Ok(next.call(request).await?)
        })
    });
    let guard = hook::hook(guard).named("most").policy(Policy::Deny).innermost();
    // It is registered before the question, and still judges behind it.
    let made = calls([("pay", json!({ "amount": 5 }))]);
    let builder = Agent::builder("clerk")
        .model(ByTurn(vec![made, ModelResponse::text("done")]))
        .with_lifecycle(guard)
        .with_lifecycle(Approval::new().tool("pay"))
        .tool(tool("pay", &notes, "paid"))
        .on_ask(|_: &PendingAsk| Some(Answer::Edit(json!({ "amount": 5000 }))));
    let results = ran(builder).await;
    assert_eq!(results, [(ToolStatus::Denied, "more than anybody may pay".into())]);
    assert!(notes.all().is_empty());
}

#[tokio::test]
async fn permissions_judge_what_a_person_edits() {
    let notes = Notes::default();
    let permissions = Permissions::new().allow("pay").where_("amount", Condition::max(1000.0));
    for (amount, status) in [(5000, ToolStatus::Denied), (900, ToolStatus::Ok)] {
        let builder = clerk([("pay", json!({ "amount": 5 }))], Approval::new().tool("pay"), &notes)
            .with_lifecycle(permissions.clone())
            .on_ask(move |_: &PendingAsk| Some(Answer::Edit(json!({ "amount": amount }))));
        assert_eq!(ran(builder).await[0].0, status, "{amount}");
    }
    assert_eq!(notes.all(), [r#"pay {"amount":900}"#]);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_call_is_not_made() {
    let notes = Notes::default();
    let builder = clerk([("pay", json!({}))], Approval::new().tool("pay"), &notes);
    let results = ran(builder).await;
    assert_eq!(results[0].0, ToolStatus::Denied);
    assert!(results[0].1.contains("nobody is there to ask; it was not made"), "{results:?}");
    assert!(notes.all().is_empty());
}

#[tokio::test]
async fn an_asker_that_breaks_lets_nothing_through() {
    let notes = Notes::default();
    let breaks = |_: &PendingAsk| -> Option<Answer> { panic!("no line") };
    let builder = clerk([("pay", json!({}))], Approval::new().tool("pay"), &notes).on_ask(breaks);
    let results = ran(builder).await;
    assert_eq!(results[0].0, ToolStatus::Denied, "{results:?}");
    assert!(notes.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_expires_is_a_rejection_whatever_is_allowed() {
    for rule in [ApprovalRule::new(), ApprovalRule::new().allow([Decision::Approve])] {
        let notes = Notes::default();
        let approval = Approval::new().tool_with("pay", rule).expires_after(Duration::from_secs(5));
        let builder = clerk([("pay", json!({}))], approval, &notes).on_ask(nobody);
        let begun = tokio::time::Instant::now();
        let results = ran(builder).await;
        assert_eq!(
            results,
            [(
                ToolStatus::Denied,
                "a person rejected the call of `pay`: nobody answered in time".into()
            )]
        );
        assert!(begun.elapsed() < Duration::from_secs(6));
        assert!(notes.all().is_empty());
    }
}

#[tokio::test]
async fn an_approval_is_remembered_for_as_long_as_it_is_said() {
    // Two turns with the same two calls, one after the other.
    for (remember, questions) in
        [(None, 6), (Some(Remember::ForRun), 4), (Some(Remember::ForThread), 2)]
    {
        let (notes, asked) = (Notes::default(), Notes::default());
        let asks = asked.clone();
        let mut approval = Approval::new().tool("pay");
        if let Some(span) = remember {
            approval = approval.remember(span);
        }
        let (one, two) = (json!({ "amount": 1 }), json!({ "amount": 2 }));
        let mut model = Scripted::empty();
        for _ in 0..2 {
            model =
                model.call("pay", one.clone()).call("pay", one.clone()).call("pay", two.clone());
            model = model.text("done");
        }
        let agent = Agent::builder("clerk")
            .model(model)
            .with_lifecycle(approval)
            .tool(tool("pay", &notes, "paid"))
            .on_ask(move |ask: &PendingAsk| {
                asks.add(&ask.ask.prompt);
                Some(Answer::Approve)
            })
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        agent.run("go").await.unwrap();
        agent.run("go").await.unwrap();
        assert_eq!((notes.all().len(), asked.all().len()), (6, questions), "{remember:?}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_rejection_can_end_the_turn_and_only_that_one() {
    let notes = Notes::default();
    let approval = Approval::new().tool("pay").on_reject(OnReject::End);
    let model = Scripted::empty()
        .calls([("pay", json!({})), ("read", json!({}))])
        .text("nobody asks for this")
        .reply("the next turn");
    let agent = Agent::builder("clerk")
        .model(model)
        .with_lifecycle(approval)
        .tool(tool("pay", &notes, "paid"))
        .tool(tool("read", &notes, "a letter"))
        .on_ask(|_: &PendingAsk| Some(Answer::Reject("never".into())))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Denied);
    assert_eq!(error.to_string(), "a person rejected the call of `pay`: never");
    assert_eq!(notes.all(), ["read {}"]);
    assert_eq!(agent.run("again").await.unwrap().output(), "nobody asks for this");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_may_be_answered_is_told_to_whoever_asks() {
    let (notes, asked) = (Notes::default(), Notes::default());
    let asks = asked.clone();
    let rule = ApprovalRule::new().allow([Decision::Approve, Decision::Reject]);
    let builder = clerk([("pay", json!({}))], Approval::new().tool_with("pay", rule), &notes)
        .on_ask(move |ask: &PendingAsk| {
            asks.add(ask.ask.form.as_ref().map(Value::to_string).unwrap_or_default());
            Some(Answer::Approve)
        });
    ran(builder).await;
    assert_eq!(asked.all(), [r#"{"allowed_decisions":["approve","reject"]}"#]);
}

#[test]
fn options_are_checked() {
    assert!(made("approval", json!({ "tools": { "*": true }, "remember": "for_run" })).is_ok());
    assert!(
        made("approval", json!({ "tools": { "a": { "when": "true" } }, "remember": false }))
            .is_ok()
    );
    for (with, field, why) in [
        (json!({}), "tools", "name a tool"),
        (json!({ "tools": { "a": 3 } }), "tools.a", "expected true, false or a table"),
        (json!({ "tools": { "a": { "wen": "x" } } }), "tools.a.wen", "unknown field `wen`"),
        (json!({ "tools": { "a": { "when": "a b" } } }), "tools.a.when", "no condition"),
        (
            json!({ "tools": { "a": { "description": "{{" } } }),
            "tools.a.description",
            "no template",
        ),
        (json!({ "tools": { "a": { "args_schema": 3 } } }), "tools.a.args_schema", "a table"),
        (
            json!({ "tools": { "a": { "args_schema": { "type": 3 } } } }),
            "tools.a.args_schema",
            "no JSON Schema",
        ),
        (
            json!({ "tools": { "a": { "allowed_decisions": [] } } }),
            "tools.a.allowed_decisions",
            "nothing could be answered",
        ),
        (json!({ "tools": { "a": true }, "remember": true }), "remember", "for how long"),
        (json!({ "tools": { "a": true }, "attempts": 0 }), "attempts", "at least once"),
        (json!({ "tools": { "a": true }, "expires_after": "5" }), "expires_after", "has no unit"),
        (json!({ "tools": { "a": true }, "on_reject": "cry" }), "on_reject", "unknown value"),
    ] {
        let refused = made("approval", with.clone()).unwrap_err();
        assert_eq!(refused.field(), field, "{with}: {refused}");
        assert!(refused.message().contains(why), "{with}: {refused}");
    }
}
