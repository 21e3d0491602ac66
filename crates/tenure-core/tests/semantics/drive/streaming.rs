//! Streams: the same hooks, and text that is held back for as long as it may change.

use crate::semantics::support::*;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::ModelCx;
use tenure_core::event::EventBus;
use tenure_core::hook::{self, After, Flow, HookAction, Point, Points};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

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

#[tokio::test(start_paused = true)]
async fn g6_a_stream_runs_the_same_hooks_as_a_run() {
    let calls = async |streams: bool| {
        let log = Log::default();
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"]), PIECES]))
                .tool(ok_tool("act"))
                .with_lifecycle(probe("A", &log)),
        )
        .await;
        let output = if streams {
            read(&agent).await.1.unwrap()
        } else {
            agent.run("go").await.unwrap().output().to_owned()
        };
        (output, log.take(), agent.history())
    };
    assert_eq!(calls(true).await, calls(false).await);
}

#[tokio::test(start_paused = true)]
async fn text_is_held_back_only_for_hooks_that_may_change_it() {
    let changes = |point: Point| {
        move |builder: AgentBuilder| builder.with_lifecycle(probe_at("A", &Log::default(), point))
    };
    let watches = |point: Point| {
        move |builder: AgentBuilder| {
            builder.with_lifecycle(hook::hook(probe_at("A", &Log::default(), point)).observes())
        }
    };
    type Shape = Box<dyn Fn(AgentBuilder) -> AgentBuilder>;
    let table: Vec<(Shape, usize)> = vec![
        (Box::new(|builder| builder), 3),
        (Box::new(changes(Point::BeforeAgent)), 3),
        (Box::new(changes(Point::BeforeModel)), 3),
        (Box::new(changes(Point::WrapToolCall)), 3),
        (Box::new(changes(Point::WrapModelCall)), 1),
        (Box::new(changes(Point::AfterModel)), 1),
        (Box::new(changes(Point::AfterAgent)), 1),
        (Box::new(watches(Point::WrapModelCall)), 3),
        (Box::new(watches(Point::AfterModel)), 3),
        (Box::new(watches(Point::AfterAgent)), 3),
    ];
    for (at, (shape, expected)) in table.into_iter().enumerate() {
        let agent = started(shape(Agent::builder("agent").model(script([PIECES])))).await;
        let (pieces, result) = read(&agent).await;
        assert_eq!(pieces.len(), expected, "case {at}: {pieces:?}");
        assert_eq!((pieces.concat(), result), ("one two three".to_owned(), Ok(pieces.concat())));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_rejects_is_never_streamed() {
    let agent = started(Agent::builder("agent").model(script([PIECES])).with_lifecycle(
        hook::after_model(|_, _| Box::pin(async { Ok(HookAction::Reject("secret".to_owned())) })),
    ))
    .await;
    assert_eq!(read(&agent).await, (Vec::new(), Err(Outcome::Denied)));
}

#[tokio::test(start_paused = true)]
async fn text_that_an_end_may_change_is_held_back_until_it_has_seen_all_of_it() {
    let model = script([PIECES, say("better")]);
    let agent =
        started(Agent::builder("agent").model(model).with_lifecycle(hook::after_agent(|_, _| {
            Box::pin(async { Ok(After::Continue("again".into())) })
        })))
        .await;
    assert_eq!(read(&agent).await, (vec!["better".to_owned()], Ok("better".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn what_a_begin_finishes_with_is_streamed_once_and_as_the_ends_leave_it() {
    for point in [Point::BeforeAgent, Point::BeforeModel] {
        for redacts in [false, true] {
            let mut builder = Agent::builder("agent").model(script([]));
            builder = if point == Point::BeforeAgent {
                builder.with_lifecycle(hook::before_agent(|_, _| {
                    Box::pin(async { Ok(Flow::Finish("the secret".into())) })
                }))
            } else {
                builder.with_lifecycle(hook::before_model(|_, _| {
                    Box::pin(async { Ok(Flow::Finish("the secret".into())) })
                }))
            };
            if redacts {
                let redactor = hook::after_agent(|_, end| {
                    Box::pin(async move {
                        if let Some(output) = end.content_mut() {
                            *output = "redacted".into();
                        }
                        Ok(After::Done)
                    })
                });
                // Before the finisher, so that it is entered.
                builder = builder.with_lifecycle(hook::hook(redactor).order(-1));
            }
            let agent = started(builder).await;
            let expected = if redacts { "redacted" } else { "the secret" };
            let (pieces, result) = read(&agent).await;
            assert_eq!(pieces, [expected], "{point}");
            assert_eq!(result, Ok(expected.to_owned()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_turn_that_fails_ends_with_its_error() {
    let agent =
        started(Agent::builder("agent").model(script([Reply::Fail(ModelErrorKind::Other)]))).await;
    assert_eq!(read(&agent).await, (Vec::new(), Err(Outcome::Failed)));
    assert_eq!(read(&agent).await, (vec!["done".to_owned()], Ok("done".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn g1_dropping_a_stream_cancels_the_turn_and_its_ends_run() {
    let log = Log::default();
    let points = Points::from(Point::AfterAgent);
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Stream(&["a", "b", "c"]), Reply::Hang]))
            .with_lifecycle(hook::hook(probe_at("A", &log, points)).observes()),
    )
    .await;
    let mut stream = agent.stream("go");
    assert_eq!(stream.next().await.as_deref(), Some("a"));
    drop(stream);
    agent.ready().await.unwrap();
    assert_eq!(log.take(), ["A.after_agent(cancelled)"]);
}

#[tokio::test(start_paused = true)]
async fn text_beside_tool_calls_is_streamed_too() {
    let chatty = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            let mut response = next.call(request).await?;
            if !response.calls.is_empty() {
                response.content = "let me look. ".into();
            }
            Ok(response)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"]), PIECES]))
            .tool(ok_tool("act"))
            .with_lifecycle(chatty),
    )
    .await;
    let mut stream = agent.stream("hello");
    let mut told = Vec::new();
    while let Some(piece) = stream.next_piece().await {
        told.push((piece.response, piece.text));
    }
    let expected = [(1, "let me look. "), (2, "one two three")];
    assert_eq!(told, expected.map(|(response, text)| (response, text.to_owned())));
    assert_eq!(stream.finish().await.expect("it ends").output(), "one two three");
}

/// Streams one text and returns another.
struct Contradicts;

#[async_trait::async_trait]
impl Model for Contradicts {
    async fn call(
        &self,
        _request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        cx.delta("yes, ");
        Ok(ModelResponse::text("no"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_streams_one_text_and_returns_another_fails() {
    for watched in [true, false] {
        let bus = EventBus::new();
        let _listens = watched.then(|| bus.subscribe(100));
        let agent = started(Agent::builder("agent").model(Contradicts).events(&bus)).await;
        let mut stream = agent.stream("go");
        assert_eq!(stream.next().await.as_deref(), Some("yes, "));
        let error = stream.finish().await.expect_err("the text that was read is contradicted");
        let model = error.model_error().expect("it is the model's error");
        assert_eq!(model.kind(), ModelErrorKind::Malformed);
        assert_eq!(agent.run("go").await.unwrap().output(), "no", "nobody has read another text");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_keeps_text_may_not_contradict_what_was_read() {
    let answers = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            let answer = next.call(request).await;
            Ok(answer.unwrap_or_else(|_| ModelResponse::text("sorry")))
        })
    });
    let torn = Reply::Torn(&["one "], ModelErrorKind::Transport);
    let agent = Agent::builder("agent")
        .model(script([torn]))
        .with_lifecycle(hook::hook(answers).keeps_text());
    let (pieces, result) = read(&started(agent).await).await;
    assert_eq!(pieces, ["one "]);
    assert_eq!(result, Err(Outcome::Failed), "and not `sorry` behind what was read");
}
