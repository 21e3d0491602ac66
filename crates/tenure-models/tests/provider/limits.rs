//! Bounds of time and of size, and what becomes of a connection.

use crate::provider::server::{Server, Step, chunk, end, head};
use crate::provider::support::{Mode, WIRES, ask, ask_with, ask_within, model_of, providers_at};
use futures_util::future::join_all;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::model::ModelErrorKind as Kind;

/// Limits that a test of size does not meet, also on a machine that is busy.
const PATIENT: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60));
/// Limits for servers that are never silent for long.
const TALKATIVE: (Duration, Duration) =
    (Duration::from_millis(1_400), Duration::from_millis(1_500));

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
async fn a_server_that_only_gives_signs_of_life_is_given_up() {
    let (comment, lines) = (": PROCESSING\n\n", "application/x-ndjson");
    let nothing = [
        ("openai", comment),
        ("openai", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n"),
        // A line that does not end.
        ("openai", "data"),
        ("anthropic", comment),
        ("anthropic", "data: {\"type\":\"ping\"}\n\n"),
        ("google", comment),
        ("google", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]}}]}\n\n"),
        ("ollama", "\n"),
        ("ollama", "{\"message\":{\"content\":\"\"},\"done\":false}\n"),
    ];
    let streamed = nothing.map(|(wire, sign)| (wire, Mode::Streamed, sign));
    // Spaces before the JSON, which some servers send while they wait.
    let whole = WIRES.map(|wire| (wire, Mode::Whole, " "));
    let cases = streamed.into_iter().chain(whole);
    join_all(cases.map(|(wire, mode, sign)| async move {
        let kind = match (mode, wire) {
            (Mode::Whole, _) => "application/json",
            (_, "ollama") => lines,
            _ => "text/event-stream",
        };
        let Step::Raw(sign_bytes) = chunk(sign) else { unreachable!("a piece is raw") };
        let steps = vec![head(kind), Step::Drip(sign_bytes, Duration::from_millis(100))];
        let begun = Instant::now();
        let asking = ask_within(TALKATIVE, wire, mode, steps);
        let asked = tokio::time::timeout(Duration::from_secs(10), asking).await;
        let asked = asked.unwrap_or_else(|_| panic!("{wire} {mode:?} {sign:?} hangs"));
        assert_eq!(asked.kind(), Kind::Timeout, "{wire} {mode:?} {sign:?}: {}", asked.error());
        assert!(asked.error().to_string().ends_with("within 1.5s"), "{}", asked.error());
        assert!(begun.elapsed() >= Duration::from_millis(1_400), "{:?}", begun.elapsed());
    }))
    .await;
}

#[tokio::test]
async fn an_answer_that_goes_on_may_take_longer_than_one_in_one_piece() {
    let frames = [
        (
            "openai",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
            "data: [DONE]\n\n",
        ),
        // What a model thinks is a part of it.
        (
            "openai",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"x\"}}]}\n\n",
            "data: [DONE]\n\n",
        ),
        (
            "anthropic",
            "data: {\"type\":\"content_block_start\",\"index\":0,\
             \"content_block\":{\"type\":\"text\",\"text\":\"x\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n",
        ),
        (
            "google",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        ),
        (
            "ollama",
            "{\"message\":{\"content\":\"x\"},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true}\n",
        ),
    ];
    join_all(frames.map(|(wire, piece, last)| async move {
        let kind = if wire == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
        let mut steps = vec![head(kind)];
        for _ in 0..8 {
            steps.extend([chunk(piece), Step::Wait(Duration::from_millis(300))]);
        }
        steps.extend([chunk(last), end()]);
        let text =
            ask_within(TALKATIVE, wire, Mode::Streamed, steps).await.response().content.into_text();
        let thinks = piece.contains("reasoning");
        assert_eq!(text, if thinks { "" } else { "xxxxxxxx" }, "{wire}");
    }))
    .await;
}

#[tokio::test]
async fn who_wants_no_limit_to_silence_gets_none() {
    let wait = || Step::Wait(Duration::from_millis(1_000));
    let steps = vec![
        head("text/event-stream"),
        wait(),
        chunk(": PROCESSING\n\n"),
        wait(),
        chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n"),
        chunk("data: [DONE]\n\n"),
        end(),
    ];
    let server = Server::one(steps).await;
    let spec = "openai.gpt-4o?streaming_timeout=none";
    let model = providers_at(&server.url).model(spec).unwrap();
    assert_eq!(ask_with(model, Mode::Streamed, |_| {}).await.response().content.text(), "x");
    server.stop().await;
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
            let asked = ask_within(PATIENT, wire, mode, steps).await;
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
        let asked = ask_within(
            PATIENT,
            wire,
            Mode::Streamed,
            vec![raw("text/event-stream"), Step::Endless(frame)],
        )
        .await;
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
