//! What ready-made hooks are built on: other models, text that flows on, standing among others.

use crate::semantics::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{
    self, FilteredText, Flow, HookAction, HookError, Point, Registration, TextFilter,
};
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::ToolError;
use tenure_core::{ErrorKind, Outcome};

const PIECES: Reply = Reply::Stream(&["one ", "two ", "three"]);

async fn read(agent: &Agent) -> (Vec<String>, Result<String, Outcome>) {
    let mut stream = agent.stream("go");
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    let result = stream.finish().await;
    let result = result.map(|it| it.output().to_owned()).map_err(|error| error.outcome());
    (pieces, result)
}

/// A wrap that asks `model` and does not keep anybody waiting.
fn asks_again(times: usize) -> Registration {
    let again = hook::wrap_model_call(move |_, request, next| {
        Box::pin(async move {
            for _ in 1..times {
                if let Ok(response) = next.call(request).await {
                    return Ok(response);
                }
            }
            Ok(next.call(request).await?)
        })
    });
    hook::hook(again).keeps_text()
}

#[tokio::test(start_paused = true)]
async fn another_model_answers_one_request_and_the_wraps_further_in_see_it() {
    let log = Log::default();
    let other: Arc<dyn Model> = Arc::new(script([say("the other")]));
    let choose = hook::before_model(move |cx, request| {
        if cx.step_number() == 1 {
            request.use_model(other.clone());
        }
        Box::pin(async { Ok(Flow::Continue) })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([say("its own")]))
            .with_lifecycle(choose)
            .with_lifecycle(probe_at("A", &log, Point::WrapModelCall)),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "the other");
    assert_eq!(log.take(), ["A.model>", "A.model<"]);
}

#[tokio::test(start_paused = true)]
async fn g7_a_model_that_a_hook_asks_is_charged_and_served_from_the_record() {
    let steps = MemoryStepLog::new();
    for life in 0..2 {
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let side: Arc<dyn Model> = Arc::new(Counting(count));
        let judge = hook::after_model(move |cx, _| {
            let side = side.clone();
            Box::pin(async move {
                let request = ModelRequest::new(vec![Message::user("is it good?")]);
                let said = cx.call_model("judge", &side, request).await?;
                assert_eq!(said.content.text(), "yes");
                Ok(HookAction::Continue)
            })
        });
        let agent =
            started(Agent::builder("agent").model(script([say("fine")])).with_lifecycle(judge))
                .await;
        let report = agent
            .request("go")
            .steps(if life == 0 { steps.clone() } else { steps.resumed() })
            .run()
            .await
            .unwrap();
        assert_eq!(report.usage.input, 17, "what the judge read is part of the turn");
        assert_eq!(*asked.lock().unwrap(), usize::from(life == 0), "life {life}");
        assert_eq!(agent.usage().input, 17, "and of what the agent cost");
        agent.shutdown().await;
    }
}

struct Counting(Arc<Mutex<usize>>);

#[async_trait::async_trait]
impl Model for Counting {
    async fn call(
        &self,
        _: &ModelRequest,
        cx: tenure_core::context::ModelCx<'_>,
    ) -> Result<ModelResponse, tenure_core::model::ModelError> {
        assert!(!cx.is_streaming());
        *self.0.lock().expect("no test panics under this lock") += 1;
        Ok(ModelResponse::text("yes").with_usage(Usage::new(7, 1)))
    }

    fn name(&self) -> &str {
        "judge"
    }
}

#[tokio::test(start_paused = true)]
async fn text_flows_past_a_wrap_that_keeps_it() {
    let agent = Agent::builder("agent").model(script([PIECES])).with_lifecycle(asks_again(2));
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!((pieces.len(), result.unwrap().as_str()), (3, "one two three"));
}

#[tokio::test(start_paused = true)]
async fn a_model_is_not_asked_again_once_its_text_is_out() {
    let fails = Reply::Torn(&["one "], ModelErrorKind::Transport);
    let agent =
        Agent::builder("agent").model(script([fails, PIECES])).with_lifecycle(asks_again(2));
    let agent = started(agent).await;
    let mut stream = agent.stream("go");
    assert_eq!(stream.next().await.as_deref(), Some("one "));
    assert_eq!(stream.next().await, None);
    let error = stream.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook, "{error}");
    assert!(error.to_string().contains("is_text_out"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_wrap_can_see_whether_text_is_out() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let looks = || {
        let notes = notes.clone();
        let looks = hook::wrap_model_call(move |cx, request, next| {
            let notes = notes.clone();
            Box::pin(async move {
                let before = cx.is_text_out();
                let result = next.call(request).await;
                notes.lock().expect("no panic").push((before, cx.is_text_out()));
                Ok(result?)
            })
        });
        hook::hook(looks).keeps_text()
    };
    for (holds, expected) in [(false, (false, true)), (true, (false, false))] {
        let mut builder = Agent::builder("agent").model(script([PIECES])).with_lifecycle(looks());
        if holds {
            builder = builder.with_lifecycle(probe_at("A", &Log::default(), Point::AfterModel));
        }
        read(&started(builder).await).await.1.unwrap();
        assert_eq!(seen.lock().unwrap().pop(), Some(expected));
    }
}

/// Takes every `o` out, and lets a word out only when it is complete.
struct WithoutO;

struct Words {
    open: String,
}

impl TextFilter for WithoutO {
    fn open(&self) -> Box<dyn FilteredText> {
        Box::new(Words { open: String::new() })
    }
}

impl FilteredText for Words {
    fn push(&mut self, piece: &str) -> String {
        self.open.push_str(piece);
        let end = self.open.rfind(' ').map_or(0, |at| at + 1);
        self.open.drain(..end).filter(|it| *it != 'o').collect()
    }
}

fn without_o() -> Registration {
    let whole = hook::after_model(|_, response| {
        let content = response.content.text().replace('o', "").into();
        let response = ModelResponse { content, ..response.clone() };
        Box::pin(async { Ok(HookAction::Modify(Box::new(response))) })
    });
    hook::hook(whole).filters_text(WithoutO)
}

#[tokio::test(start_paused = true)]
async fn a_filter_lets_text_out_piece_by_piece_and_the_rest_at_the_end() {
    let agent = Agent::builder("agent").model(script([PIECES])).with_lifecycle(without_o());
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!(pieces, ["ne ", "tw ", "three"]);
    assert_eq!(result.unwrap(), "ne tw three");
}

#[tokio::test(start_paused = true)]
async fn a_filter_begins_anew_with_an_answer_that_is_made_anew() {
    let fails = Reply::Torn(&["lost"], ModelErrorKind::Transport);
    let agent = Agent::builder("agent")
        .model(script([fails, PIECES]))
        .with_lifecycle(asks_again(2))
        .with_lifecycle(without_o());
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!(pieces.concat(), "ne tw three");
    assert_eq!(result.unwrap(), "ne tw three");
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_lets_out_too_much_is_stopped_there() {
    struct Leaky;
    impl TextFilter for Leaky {
        fn open(&self) -> Box<dyn FilteredText> {
            Box::new(Leaky)
        }
    }
    impl FilteredText for Leaky {
        fn push(&mut self, piece: &str) -> String {
            piece.to_owned()
        }
    }
    let whole = hook::after_model(|_, response| {
        let response = ModelResponse { content: "something else".into(), ..response.clone() };
        Box::pin(async { Ok(HookAction::Modify(Box::new(response))) })
    });
    let agent = Agent::builder("agent")
        .model(script([PIECES]))
        .with_lifecycle(hook::hook(whole).filters_text(Leaky));
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!(pieces.concat(), "one two three", "nothing of the other text is put behind it");
    assert_eq!(result, Err(Outcome::Failed), "and it is not contradicted silently");
}

fn wrap(name: &'static str) -> Registration {
    let passes = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move { Ok::<_, HookError>(next.call(request).await?) })
    });
    hook::hook(passes).named(name).kind(name)
}

fn order(hooks: impl IntoIterator<Item = Registration>) -> Result<Vec<String>, String> {
    let builder = Agent::builder("agent").model(script([]));
    let agent = hooks.into_iter().fold(builder, AgentBuilder::with_lifecycle);
    let blueprint = agent.blueprint().map_err(|error| error.to_string())?;
    let entrants = blueprint.entrants(Point::WrapToolCall);
    Ok(entrants.into_iter().map(|it| it.name.to_string()).collect())
}

#[test]
fn g2_a_hook_stands_around_and_within_the_kinds_it_names_if_they_are_there() {
    let cache = || wrap("cache").outside("retry").outside("gone");
    let limit = || wrap("limit").inside("retry");
    let expected = ["cache", "retry", "limit"];
    assert_eq!(order([cache(), wrap("retry"), limit()]).unwrap(), expected);
    assert_eq!(order([limit(), wrap("retry"), cache()]).unwrap(), expected);
    assert_eq!(order([limit(), cache()]).unwrap(), ["limit", "cache"]);
}

#[test]
fn g2_a_guard_that_is_innermost_is_called_last_at_wraps() {
    let guard = || wrap("guard").innermost();
    assert_eq!(order([guard(), wrap("a"), wrap("b")]).unwrap(), ["a", "b", "guard"]);
    assert_eq!(order([guard(), wrap("watch").observes()]).unwrap(), ["watch", "guard"]);
    let watches = wrap("watch").observes().after("guard");
    assert!(order([guard(), watches]).is_ok(), "one that watches may ask for what it likes");
    let two = order([wrap("first").innermost(), guard(), wrap("a")]).unwrap();
    assert_eq!(two, ["a", "first", "guard"]);
}

#[test]
fn an_order_that_a_hook_cannot_have_is_refused_with_the_reason() {
    let refused =
        order([wrap("cache").outside("retry").after("retry"), wrap("retry")]).unwrap_err();
    assert!(
        refused.contains("`cache` has to stand before `retry` by what it does")
            && refused.contains("`retry` is asked to stand before `cache`"),
        "{refused}"
    );
    let refused = order([wrap("guard").innermost(), wrap("late").after("guard")]).unwrap_err();
    assert!(
        refused.contains("`guard` judges what is really done, so `late` has to stand before it"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_brings_its_tools_along() {
    let brings = hook::hook(hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Continue) })))
        .with_tool(ok_tool("note"));
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["note"]), say("done")]))
            .with_lifecycle(brings),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "done");
    assert!(agent.history().iter().any(|it| matches!(it, Message::Tool(_))));
    let twice = Agent::builder("agent").model(script([])).tool(ok_tool("note")).with_lifecycle(
        hook::hook(hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Continue) })))
            .with_tool(ok_tool("note")),
    );
    assert!(twice.build().unwrap_err().to_string().contains("note"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_limit_what_tools_take_and_a_person_may_take_longer() {
    let limits = || {
        let begins = hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Continue) }));
        hook::hook(begins).limits_tools(secs(2))
    };
    let hangs = tool("act", |_, _| Box::pin(std::future::pending()));
    let agent = Agent::builder("agent").model(script([call(&["act"])])).tool(hangs);
    let agent = started(agent.with_lifecycle(limits())).await;
    agent.run("go").await.unwrap();
    let said = agent.history().iter().find(|it| matches!(it, Message::Tool(_))).cloned();
    assert!(said.unwrap().text().contains("within 2s"), "it is given up");

    let asks = tool("act", |cx, _| {
        Box::pin(async move {
            cx.ask(tenure_core::ask::Ask::input("well?")).await.map_err(ToolError::ends_turn)?;
            Ok("asked".into())
        })
    });
    let slow = Slowly;
    let agent = Agent::builder("agent").model(script([call(&["act"])])).tool(asks).on_ask(slow);
    let agent = started(agent.with_lifecycle(limits())).await;
    agent.run("go").await.unwrap();
    let said = agent.history().iter().find(|it| matches!(it, Message::Tool(_))).cloned();
    assert_eq!(said.unwrap().text(), "asked");
}

/// Thinks for a minute.
struct Slowly;

#[async_trait::async_trait]
impl tenure_core::ask::Asker for Slowly {
    async fn answer(&self, _: &tenure_core::ask::PendingAsk) -> Option<tenure_core::ask::Answer> {
        tokio::time::sleep(secs(60)).await;
        Some(tenure_core::ask::Answer::Respond("yes".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn g7_a_call_is_on_record_under_the_name_of_the_model_that_answered() {
    let steps = MemoryStepLog::new();
    let judge: Arc<dyn Model> = Arc::new(Counting(Arc::default()));
    let choose = hook::before_model(move |_, request| {
        request.use_model(judge.clone());
        Box::pin(async { Ok(Flow::Continue) })
    });
    let agent = Agent::builder("agent").model(script([])).with_lifecycle(choose);
    started(agent).await.request("go").steps(steps.clone()).run().await.unwrap();
    let keys = steps.keys();
    let names: Vec<_> = keys.iter().filter(|key| &*key.kind == "model").collect();
    assert_eq!((names.len(), &*names[0].name), (1, "judge"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn g4_of_several_limits_of_a_model_call_the_shortest_counts() {
    let cases: [(&[u64], Option<u64>, u64); 4] =
        [(&[30, 10, 20], None, 10), (&[10], Some(5), 5), (&[10], Some(40), 10), (&[], Some(7), 7)];
    for (wished, own, seconds) in cases {
        let limits = hook::before_model(move |_, request| {
            for seconds in wished {
                request.limit(Duration::from_secs(*seconds));
            }
            Box::pin(async { Ok(Flow::Continue) })
        });
        let agent = Agent::builder("agent").model(script([Reply::Hang])).with_lifecycle(limits);
        let agent = match own {
            Some(own) => agent.model_limit(Duration::from_secs(own)),
            None => agent,
        };
        let agent = started(agent).await;
        let began = tokio::time::Instant::now();
        assert_eq!(agent.run("go").await.unwrap_err().outcome(), Outcome::TimedOut);
        assert_eq!(began.elapsed().as_secs(), seconds, "{wished:?} {own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_what_models_say_holds_back_what_its_hook_may_change_of_the_turn() {
    let ends = hook::after_agent(|_, end| {
        if let Some(text) = end.content_mut() {
            *text = text.text().replace('t', "d").into();
        }
        Box::pin(async { Ok(hook::After::Done) })
    });
    let hook = hook::hook(ends).filters_text(WithoutO);
    let agent = Agent::builder("agent").model(script([PIECES])).with_lifecycle(hook);
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!(pieces.len(), 1, "nothing is out before the turn has its text: {pieces:?}");
    assert_eq!(pieces.concat(), result.unwrap());
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_sees_which_model_answered_however_many_watch() {
    let other: Arc<dyn Model> = Arc::new(Counting(Arc::default()));
    let chooses = hook::wrap_model_call(move |_, request, next| {
        request.use_model(other.clone());
        Box::pin(async move { Ok(next.call(request).await?) })
    });
    let log = Log::default();
    let watches = |name: &'static str| {
        let log = log.clone();
        let watch = hook::wrap_model_call(move |_, request, next| {
            let log = log.clone();
            Box::pin(async move {
                let answer = next.call(request).await;
                let model = request.model().map_or("its own", |model| model.name());
                log.add(format!("{name}: {model}"));
                Ok(answer?)
            })
        });
        hook::hook(watch).named(name).observes()
    };
    let agent = Agent::builder("agent")
        .model(script([]))
        .with_lifecycle(watches("outer"))
        .with_lifecycle(watches("inner"))
        .with_lifecycle(chooses);
    started(agent).await.run("go").await.unwrap();
    assert_eq!(log.take(), ["inner: judge", "outer: judge"]);
}
