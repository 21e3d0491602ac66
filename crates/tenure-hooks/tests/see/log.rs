//! Lines of JSON.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::model::ModelErrorKind;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::see::StructuredLog;
use tenure_models::{Passthrough, Scripted};

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the log is there");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn agent(log: StructuredLog) -> Agent {
    let model = Scripted::empty().call("search", json!({ "q": "larkspur" })).text("heliotrope");
    let search = FnTool::new(ToolSpec::new("search", "Finds"), |_| Ok("moonstone".into()));
    Agent::builder("clerk")
        .model(model)
        .tool(search)
        .with_lifecycle(log)
        .build()
        .expect("it builds")
}

#[tokio::test]
async fn each_begin_and_end_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs/agent.log");
    let agent = agent(StructuredLog::to_file(&path));
    let report = agent.scoped(async |agent| agent.run("of larkspur").await).await.unwrap();
    let lines = lines(&path);
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let all = [
        "turn.started",
        "model.started",
        "model.ended",
        "tool.started",
        "tool.ended",
        "model.started",
        "model.ended",
        "turn.ended",
    ];
    assert_eq!(events, all);
    for line in &lines {
        assert_eq!((&line["agent"], &line["level"]), (&json!("clerk"), &json!("info")), "{line}");
        assert_eq!(line["run"], json!(report.run), "{line}");
        assert_eq!(line["trace"], json!(report.trace_id()), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    let end = lines.last().unwrap();
    assert_eq!((&end["outcome"], &end["steps"]), (&json!("ok"), &json!(2)));
    assert_eq!(end["usage"]["output"], json!(report.usage.output));
    assert!(end["took_ms"].as_f64().unwrap() > 0.0);
    let text = std::fs::read_to_string(&path).unwrap();
    for word in ["larkspur", "moonstone", "heliotrope"] {
        assert!(!text.contains(word), "{word} in:\n{text}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn what_was_said_is_written_if_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.log");
    let agent = agent(StructuredLog::to_file(&path).content(true));
    agent.scoped(async |agent| agent.run("of larkspur").await).await.unwrap();
    let lines = lines(&path);
    assert_eq!(lines[1]["input"], "of larkspur");
    assert_eq!(lines[3]["arguments"], r#"{"q":"larkspur"}"#);
    assert_eq!(lines[4]["result"], "moonstone");
    assert_eq!(lines[7]["output"], "heliotrope");
}

#[tokio::test]
async fn a_failure_matters_more_and_its_words_are_content() {
    for told in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let model = Scripted::empty().error(ModelErrorKind::Overloaded, "too busy");
        let log = StructuredLog::to_file(&path).failures_only().content(told);
        let agent = Agent::builder("a").model(model).with_lifecycle(log).build().unwrap();
        agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
        let lines = lines(&path);
        let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["model.ended", "turn.ended"]);
        for line in &lines {
            assert_eq!((&line["level"], &line["error"]), (&json!("error"), &json!("overloaded")));
            let reason = line["reason"].as_str();
            assert_eq!(reason.is_some_and(|reason| reason.contains("too busy")), told, "{line}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_full_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.log");
    let log = StructuredLog::to_file(&path).max_bytes(2000).keep(2);
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(log).build().unwrap();
    agent
        .scoped(async |agent| {
            for _ in 0..20 {
                agent.run("hello").await?;
            }
            Ok::<_, tenure_core::Error>(())
        })
        .await
        .unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["agent.log", "agent.log.1", "agent.log.2"]);
    for name in &names {
        let file = folder.path().join(name);
        assert!(std::fs::metadata(&file).unwrap().len() <= 2000);
        assert!(!lines(&file).is_empty());
    }
    let last = lines(&path);
    assert_eq!(last.last().unwrap()["event"], "turn.ended");
}

/// A subscriber that takes its time.
struct Slow {
    seen: Arc<Mutex<Vec<String>>>,
    delay: Duration,
}

impl tracing::Subscriber for Slow {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tenure::log"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 = format!("{value:?}");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.seen.lock().expect("nobody panicked").push(text.0);
        std::thread::sleep(self.delay);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn whoever_reads_slowly_holds_nobody_up_and_is_told_what_it_missed() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let slow = Slow { seen: seen.clone(), delay: Duration::from_millis(40) };
    let _mine = tracing::subscriber::set_default(slow);
    let log = StructuredLog::to_tracing().queue(4);
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(log.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    for _ in 0..50 {
        agent.run("hello").await.unwrap();
    }
    // 200 lines at 40 ms each would take 8 s.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(log.lost() > 0);
    agent.shutdown().await;
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|line| line.contains("turn.started")), "{seen:?}");
    assert!(seen.iter().any(|line| line.contains("log.lost")), "{seen:?}");
}

#[tokio::test]
async fn what_is_not_written_is_told_of_to_the_last_line() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let slow = Slow { seen: seen.clone(), delay: Duration::from_millis(2) };
    let _mine = tracing::subscriber::set_default(slow);
    let log = StructuredLog::to_tracing().queue(6);
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(log.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..50 {
        agent.run("hello").await.unwrap();
    }
    agent.shutdown().await;
    assert_eq!(log.lost(), 0);
    let seen = seen.lock().unwrap();
    let (mut written, mut lost) = (0, 0);
    for line in seen.iter() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["event"] == "log.lost" {
            lost += line["lines"].as_u64().unwrap();
        } else {
            written += 1;
        }
    }
    assert!(lost > 0 && written >= 6, "{written} written, {lost} lost");
    assert_eq!(written + lost, 200);
}

#[tokio::test]
async fn every_line_is_written_at_the_end_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.log");
    let log = StructuredLog::to_file(&path).max_bytes(1 << 30);
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(log).build().unwrap();
    let mut runs = Vec::new();
    agent.startup().await.unwrap();
    for _ in 0..300 {
        runs.push(json!(agent.run("hello").await.unwrap().run));
    }
    agent.shutdown().await;
    let lines = lines(&path);
    let all = ["turn.started", "model.started", "model.ended", "turn.ended"];
    let wanted = runs.iter().flat_map(|run| all.map(|event| (run.clone(), json!(event))));
    let found = lines.iter().map(|line| (line["run"].clone(), line["event"].clone()));
    assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_line_comes_soon_while_the_agent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.log");
    let model = Scripted::empty().text("fine").error(ModelErrorKind::Overloaded, "too busy");
    let log = StructuredLog::to_file(&path);
    let agent = Agent::builder("a").model(model).with_lifecycle(log).build().unwrap();
    agent.startup().await.unwrap();
    for lines_wanted in [4, 8] {
        let _ = agent.run("hello").await;
        let began = Instant::now();
        while lines(&path).len() < lines_wanted {
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", lines(&path));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(lines(&path)[7]["level"], "error");
    agent.shutdown().await;
    assert_eq!(lines(&path).len(), 8);
}

#[tokio::test]
async fn a_line_says_the_trace_of_its_request_and_the_time_of_day() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.log");
    let agent = agent(StructuredLog::to_file(&path));
    let context = tenure_core::context::ExecutionContext::new("request 7");
    // The clock may be set a little meanwhile.
    let leeway = Duration::from_millis(5);
    let before = std::time::SystemTime::now() - leeway;
    let run = agent.scoped(async |agent| agent.request("hello").context(context).run().await);
    assert_eq!(run.await.unwrap().trace_id(), "request 7");
    let after = std::time::SystemTime::now() + leeway;
    let moment = |time: std::time::SystemTime| {
        let millis = time.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        (millis / 1000 % 60, millis % 1000)
    };
    let lines = lines(&path);
    assert_eq!(lines.len(), 8);
    for line in &lines {
        assert_eq!(line["trace"], "request 7", "{line}");
        let time = line["time"].as_str().unwrap();
        let (second, millis) = (time[17..19].parse().unwrap(), time[20..23].parse().unwrap());
        // A test does not take a minute.
        let (from, to) = (moment(before), moment(after));
        let is_within = if from <= to {
            from <= (second, millis) && (second, millis) <= to
        } else {
            from <= (second, millis) || (second, millis) <= to
        };
        assert!(is_within, "{time}: {from:?} to {to:?}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_leaves_the_agent_alone() {
    let log = StructuredLog::to_file("/proc/no/such/log");
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(log).build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    let said = format!("{:?}", agent.failures());
    assert!(said.contains("cannot be opened"), "{said}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_link_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (target, path) = (folder.path().join("target"), folder.path().join("agent.log"));
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let missing = || !target.exists();
    for text in [None, Some("mine")] {
        if let Some(text) = text {
            std::fs::write(&target, text).unwrap();
        }
        let agent = agent(StructuredLog::to_file(&path));
        agent.startup().await.unwrap();
        assert_eq!(agent.run("hello").await.unwrap().output(), "heliotrope");
        let said = format!("{:?}", agent.failures());
        assert!(said.contains("is a link"), "{said}");
        agent.shutdown().await;
        match text {
            Some(text) => assert_eq!(std::fs::read_to_string(&target).unwrap(), text),
            None => assert!(missing()),
        }
    }
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("log").unwrap().make(&with, &Bench::new());
    for with in [
        json!({}),
        json!({ "file": "agent.log" }),
        json!({ "to": "file", "file": "a" }),
        json!({ "file": "a", "max_bytes": 2048, "keep": 1 }),
        json!({ "to": "tracing" }),
    ] {
        assert!(make(with).is_ok());
    }
    for (with, field, says) in [
        (json!({ "to": "file" }), "file", "name"),
        (json!({ "to": "stderr", "file": "x" }), "file", "leave out"),
        (json!({ "to": "paper" }), "to", "paper"),
        (json!({ "file": "/etc/log" }), "file", "leads out"),
        (json!({ "max_bytes": 10 }), "max_bytes", "1024"),
        (json!({ "max_bytes": 2048 }), "max_bytes", "do not go to a file"),
        (json!({ "to": "tracing", "keep": 1 }), "keep", "do not go to a file"),
        (json!({ "queue": 0 }), "queue", "1 or more"),
        (json!({ "content": true, "content_limit": 0 }), "content_limit", "false"),
    ] {
        let refused = make(with).unwrap_err();
        assert_eq!(refused.field(), field, "{refused}");
        assert!(refused.message().contains(says), "{refused}");
    }
}
