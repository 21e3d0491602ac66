//! Bounds of time and of size, and what becomes of a connection.

use crate::server::{Server, Step, chunk, head};
use crate::support::{Mode, WIRES, ask, ask_with, model_of, providers_at};
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::model::ModelErrorKind as Kind;

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    for wire in WIRES {
        let asked = ask(wire, Mode::Streamed, vec![Step::Hang]).await;
        assert_eq!(asked.kind(), Kind::Timeout, "{wire}");
    }
    let begun = Instant::now();
    assert_eq!(ask("openai", Mode::Whole, vec![Step::Hang]).await.kind(), Kind::Timeout);
    // An answer in one piece is waited for longer.
    assert!(begun.elapsed() >= Duration::from_millis(1_400), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_given_up() {
    let frames = [
        ("openai", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"),
        ("anthropic", "data: {\"type\":\"ping\"}\n\n"),
        ("google", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hel\"}]}}]}\n\n"),
        ("ollama", "{\"message\":{\"content\":\"Hel\"},\"done\":false}\n"),
    ];
    for (wire, frame) in frames {
        let kind = if wire == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
        let steps = vec![head(kind), chunk(frame), Step::Hang];
        let asked = ask(wire, Mode::Streamed, steps).await;
        assert_eq!(asked.kind(), Kind::Timeout, "{wire}");
    }
}

#[tokio::test]
async fn a_model_string_says_how_long_an_answer_may_be_silent() {
    let steps = vec![head("text/event-stream"), Step::Hang];
    let server = Server::one(steps).await;
    let spec = "openai.gpt-4o?streaming_timeout=0.05";
    let model = providers_at(&server.url).model(spec).unwrap();
    let begun = Instant::now();
    assert_eq!(ask_with(model, Mode::Streamed, |_| {}).await.kind(), Kind::Timeout);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    server.stop().await;
}

#[tokio::test]
async fn a_lost_connection_is_a_matter_of_transport() {
    for wire in WIRES {
        let asked = ask(wire, Mode::Streamed, vec![Step::Reset]).await;
        assert_eq!(asked.kind(), Kind::Transport, "{wire}: {}", asked.error());
        // A comment, where the wire knows them.
        let so_far = if wire == "ollama" { "\n" } else { ": so far\n\n" };
        let begun = vec![head("text/event-stream"), chunk(so_far), Step::Reset];
        let asked = ask(wire, Mode::Streamed, begun).await;
        assert_eq!(asked.kind(), Kind::Transport, "{wire}: {}", asked.error());
    }
    // Nobody listens there.
    let server = Server::one(vec![Step::Hang]).await;
    let model = model_of(&server, "openai");
    server.stop().await;
    assert_eq!(ask_with(model, Mode::Streamed, |_| {}).await.kind(), Kind::Transport);
}

#[tokio::test]
async fn an_answer_without_end_is_given_up_at_its_bound() {
    let raw = |content_type: &str| {
        Step::Raw(format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n\r\n").into_bytes())
    };
    let piece = vec![b'x'; 1024 * 1024];
    for wire in WIRES {
        for mode in [Mode::Streamed, Mode::Whole] {
            let kind = if mode == Mode::Whole { "application/json" } else { "text/event-stream" };
            let steps = vec![raw(kind), Step::Endless(piece.clone())];
            let asked = ask(wire, mode, steps).await;
            assert_eq!(asked.kind(), Kind::Malformed, "{wire} {mode:?}");
            assert!(asked.error().to_string().contains("32 MiB"), "{}", asked.error());
        }
    }
    // Piece by piece, each of which is well-formed.
    let text = "x".repeat(256 * 1024);
    let frames = [
        (
            "openai",
            format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#),
        ),
        ("anthropic", format!(r#"data: {{"type":"ping","text":"{text}"}}"#)),
        (
            "google",
            format!(
                r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}},
                "finishReason":"STOP"}}]}}"#
            )
            .replace('\n', ""),
        ),
        ("ollama", format!(r#"{{"message":{{"content":"{text}"}},"done":false}}"#)),
    ];
    for (wire, frame) in frames {
        let frame = format!("{frame}\n\n").into_bytes();
        let asked =
            ask(wire, Mode::Streamed, vec![raw("text/event-stream"), Step::Endless(frame)]).await;
        assert_eq!(asked.kind(), Kind::Malformed, "{wire}: {}", asked.error());
        assert!(asked.error().to_string().contains("32 MiB"), "{}", asked.error());
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    for wire in WIRES {
        for steps in [vec![Step::Hang], vec![head("text/event-stream"), Step::Hang]] {
            let server = Server::one(steps).await;
            let agent = Agent::builder("dropped").model(model_of(&server, wire)).build().unwrap();
            agent.startup().await.unwrap();
            {
                let turn = agent.run("hello");
                let waiting = tokio::time::timeout(Duration::from_millis(200), turn).await;
                assert!(waiting.is_err(), "the call hangs");
            }
            agent.shutdown().await;
            let gone = tokio::time::timeout(Duration::from_secs(5), server.gone.cancelled()).await;
            assert!(gone.is_ok(), "{wire}: the connection is still open");
            server.stop().await;
        }
    }
}
