//! Starting and stopping.

use crate::support::*;
use crate::team::plain_log;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_cards::team::TeamErrorKind;
use tenure_core::Outcome;
use tenure_testkit::{assert_paired, ran_alone};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_start_children_first_and_stop_in_reverse() {
    let project = Project::new([
        ("a.md", &logged("a", "agents: [z]")),
        ("b.md", &logged("b", "agents: [a, m]")),
        ("m.md", &logged("m", "")),
        ("z.md", &logged("z", "")),
    ]);
    let (team, recorder) = project.recorded();
    assert_eq!(team.agents(), ["m", "z", "a", "b"]);
    team.start().await.expect("it starts");
    team.shutdown().await;
    team.shutdown().await;
    let expected = ["m", "z", "a", "b"].map(|name| format!("start {name}")).into_iter();
    let expected: Vec<_> =
        expected.chain(["b", "a", "z", "m"].map(|name| format!("stop {name}"))).collect();
    assert_eq!(project.log(), expected);
    assert_paired(&recorder);
    let error = team.run(None, "too late").await.expect_err("it is over");
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (TeamErrorKind::NotRunning, "the team has been stopped")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_says_which_hook_and_rolls_back_in_reverse_order() {
    let failing = "---\nname: c\nlifecycle_hooks: { on_start: log.py:boom, on_shutdown: log.py:stop }\n---\nx\n";
    let project = Project::new([
        ("a.md", &logged("a", "")),
        ("b.md", &logged("b", "")),
        ("c.md", failing),
        ("d.md", &logged("d", "")),
    ]);
    let (team, recorder) = project.recorded();
    let error = team.start().await.expect_err("c cannot start");
    assert_eq!(error.kind(), TeamErrorKind::Start);
    assert_eq!(
        error.to_string(),
        "agent `c`: on_start `log.py:boom` failed: ValueError: the disk is full"
    );
    assert_eq!(
        project.log(),
        ["start a", "start b", "boom c", "stop c", "stop b", "stop a"],
        "d never started"
    );
    assert_paired(&recorder);
    let error = team.start().await.expect_err("it is over");
    assert_eq!(error.to_string(), "the team has been stopped; build another one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_hook_that_hangs_or_exits_is_told_apart() {
    let hooks =
        "import os, time\ndef hang(ctx):\n    time.sleep(60)\ndef leave(ctx):\n    os._exit(3)\n";
    for (hook, message) in [
        ("{ run: 'bad.py:hang', timeout: 300ms }", "agent `a`: on_start `bad.py:hang` timed out: "),
        ("bad.py:leave", "agent `a`: on_start `bad.py:leave` exited with a failure: "),
    ] {
        let card = format!("---\nname: a\nlifecycle_hooks:\n  on_start: {hook}\n---\nx\n");
        let project = Project::new([("bad.py", hooks), ("a.md", &card)]);
        let team = project.team();
        let error = team.start().await.expect_err("it cannot start").to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_fails_at_start_is_named_as_written() {
    let card = "---\nname: a\nhooks:\n  - { on: on_start, run: [sh, -c, 'echo no >&2; exit 4'] }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let error = project.team().start().await.expect_err("it cannot start").to_string();
    assert!(
        error
            .starts_with("agent `a`: on_start `sh -c echo no >&2; exit 4` exited with a failure: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_hook_that_fails_or_hangs_stops_nothing() {
    let bad = "---\nname: b\nlifecycle_hooks: { on_start: log.py:start, on_shutdown: log.py:boom }\n---\nx\n";
    let hang = "---\nname: c\nhooks:\n  - { on: on_shutdown, run: [sleep, '60'], timeout: 200ms }\n---\nx\n";
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", bad), ("c.md", hang)]);
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let before = std::time::Instant::now();
    team.shutdown().await;
    assert!(before.elapsed() < Duration::from_secs(10));
    assert_eq!(project.log(), ["start a", "start b", "boom b", "stop a"]);
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_ends_its_clones_and_leaves_the_team_running() {
    let project = Project::new([
        ("child.md", &logged("child", "model: slow")),
        ("parent.md", &logged("parent", "default: true\nmodel: passthrough\nagents: [child]")),
    ]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let (result, ()) = tokio::join!(
        team.run(None, r#"***CALL_TOOL agent__child {"message": "take your time"}"#),
        async {
            recorder
                .wait_for(|event| {
                    event.name() == "model.started" && event.agent.ends_with("[tool]")
                })
                .await;
            team.cancel();
        }
    );
    assert_eq!(result.expect_err("it was cancelled").outcome(), Outcome::Cancelled);
    assert_eq!(
        plain_log(&project),
        ["start child", "start parent", "start child", "stop child"],
        "the clone is over when the run is"
    );
    assert_eq!(team.run(None, "still there?").await.expect("it runs").output, "still there?");
    team.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_run_and_a_dropped_team_end_everything() {
    let project = Project::new([
        ("child.md", &logged("child", "model: slow")),
        ("parent.md", &logged("parent", "default: true\nagents: [child]")),
    ]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let call = r#"***CALL_TOOL agent__child {"message": "take your time"}"#;
    let busy = |event: &tenure_core::event::Event| {
        event.name() == "model.started" && event.agent.ends_with("[tool]")
    };
    tokio::select! {
        run = team.run(None, call) => panic!("it ended by itself: {run:?}"),
        _ = recorder.wait_for(busy) => {}
    }
    drop(team);
    let ended = |event: &tenure_core::event::Event| {
        event.name() == "agent.phase.shutdown_completed" && &*event.agent == "child"
    };
    recorder.wait_for(ended).await.expect("the child itself ends last");
    assert_paired(&recorder);
    let log = plain_log(&project);
    assert_eq!(log[3..], ["stop child", "stop parent", "stop child"], "{log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_start_stops_what_it_started() {
    let slow = "---\nname: b\nhooks:\n  - { on: on_start, run: [sleep, '60'] }\n---\nx\n";
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", slow)]);
    let (team, mut recorder) = project.recorded();
    let begun =
        |event: &tenure_core::event::Event| event.name() == "hook.started" && &*event.agent == "b";
    tokio::select! {
        start = team.start() => panic!("it ended by itself: {start:?}"),
        _ = recorder.wait_for(begun) => {}
    }
    team.settled().await;
    assert_eq!(project.log(), ["start a", "stop a"]);
    assert_paired(&recorder);
    let again = team.start().await.expect_err("a dropped start is not made up for");
    assert_eq!(again.to_string(), "the team has been stopped; build another one");
    team.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dropped_run_left_behind_can_be_waited_for_while_the_team_runs() {
    let project = Project::new([
        ("child.md", &logged("child", "model: slow")),
        ("parent.md", &logged("parent", "default: true\nagents: [child]")),
    ]);
    let (team, mut recorder) = project.recorded();
    team.settled().await;
    team.start().await.expect("it starts");
    team.settled().await;
    let busy = |event: &tenure_core::event::Event| {
        event.name() == "model.started" && event.agent.ends_with("[tool]")
    };
    let call = r#"***CALL_TOOL agent__child {"message": "take your time"}"#;
    tokio::select! {
        run = team.run(None, call) => panic!("it ended by itself: {run:?}"),
        _ = recorder.wait_for(busy) => {}
    }
    team.settled().await;
    assert_eq!(plain_log(&project)[2..], ["start child", "stop child"], "the clone is over");
    assert_eq!(team.run(None, "still there?").await.expect("it runs").output, "still there?");
    team.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_shutdown_can_be_waited_for() {
    let slow = "---\nname: b\nhooks:\n  - { on: on_shutdown, run: [sleep, '0.3'] }\n---\nx\n";
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", slow)]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let begun =
        |event: &tenure_core::event::Event| event.name() == "hook.started" && &*event.agent == "b";
    tokio::select! {
        () = team.shutdown() => panic!("it ended by itself"),
        _ = recorder.wait_for(begun) => {}
    }
    team.settled().await;
    assert_eq!(project.log(), ["start a", "stop a"]);
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_cancels_what_runs_first() {
    let project = Project::new([("a.md", &logged("a", "model: slow"))]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let (result, ()) = tokio::join!(team.run(None, "go"), async {
        recorder.wait_for(|event| event.name() == "model.started").await;
        team.shutdown().await;
    });
    assert_eq!(result.expect_err("it was cancelled").outcome(), Outcome::Cancelled);
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interpreter_that_is_not_there_any_more_fails_the_start() {
    let project = Project::new([
        ("a.md", &logged("a", "")),
        ("gone/python", ""),
        ("tenure.toml", "[python]\ninterpreter = \"gone/python\"\n"),
    ]);
    let team = project.team();
    std::fs::remove_file(project.path().join("gone/python")).expect("removed");
    let error = team.start().await.expect_err("there is no interpreter").to_string();
    assert!(
        error.starts_with("agent `a`: on_start `log.py:start` could not be started: "),
        "{error}"
    );
}

#[tokio::test]
async fn files_that_changed_since_they_were_checked_fail_the_start() {
    let project = Project::new([
        ("a.md", "---\nname: a\nmodel: script:said.json\n---\nx\n"),
        ("said.json", "[\"hello\"]"),
    ]);
    let team = project.team();
    std::fs::write(project.path().join("said.json"), "[]").expect("a file");
    let error = team.start().await.expect_err("the script is bad now").to_string();
    assert!(error.starts_with("the files have changed since they were checked: "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_cancelled_also_while_its_chat_begins() {
    let card = "---\nname: a\nhooks:\n  - { on: before_chat, run: [sleep, '60'] }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let (result, ()) = tokio::join!(team.run(None, "go"), async {
        recorder.wait_for(|event| event.name() == "hook.started").await;
        team.cancel();
    });
    assert_eq!(result.expect_err("it was cancelled").outcome(), Outcome::Cancelled);
    team.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_at_the_same_time_go_to_forks_that_start_and_stop() {
    let project = Project::new([
        ("a.md", &logged("a", "model: script:said.json")),
        ("said.json", r#"[{"text": "you said {input}", "wait": "300ms"}]"#),
    ]);
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let (one, two, three) =
        tokio::join!(team.run(None, "1"), team.run(None, "2"), team.run(None, "3"));
    for (run, said) in [(one, "1"), (two, "2"), (three, "3")] {
        assert_eq!(run.expect("it runs").output, format!("you said {said}"));
    }
    team.shutdown().await;
    assert_paired(&recorder);
    let log = plain_log(&project);
    assert_eq!(log.iter().filter(|line| *line == "start a").count(), 3, "{log:?}");
    assert_eq!(log.iter().filter(|line| *line == "stop a").count(), 3, "{log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_is_left_when_a_team_is_over() {
    if ran_alone() {
        return;
    }
    let hooks = "import subprocess\ndef start(ctx):\n    subprocess.Popen(['sleep', '300'])\n";
    let card = "---\nname: a\nlifecycle_hooks: { on_start: 'child.py:start' }\n---\nx\n";
    let project = Project::new([("a.md", card), ("child.py", hooks)]);
    let team = project.team();
    team.start().await.expect("it starts");
    assert!(descendants() > 0, "a worker runs");
    team.shutdown().await;
    for _ in 0..400 {
        if descendants() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} processes were left behind", descendants());
}

/// How many processes descend from this one.
fn descendants() -> usize {
    let parent_of = |stat: String| -> Option<(u32, u32)> {
        let (head, tail) = stat.rsplit_once(')')?;
        let pid = head.split_once(' ')?.0.parse().ok()?;
        Some((pid, tail.split_whitespace().nth(1)?.parse().ok()?))
    };
    let entries = std::fs::read_dir("/proc").expect("there is /proc");
    let all: Vec<(u32, u32)> = entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter_map(parent_of)
        .collect();
    let mut family = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(all.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    family.len() - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registered_hook_that_panics_at_start_is_told_and_rolled_back() {
    let panics = tenure_core::hook::on_start(|_| Box::pin(async { panic!("oh no") }));
    let catalog = tenure_cards::HookCatalog::new().register("panics", panics);
    let card = "---\nname: b\nhooks: [{ use: panics }]\n---\nx\n";
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", card)]);
    let team = project.builder().hook_catalog(catalog).build().expect("a good team");
    let error = team.start().await.expect_err("b cannot start");
    assert_eq!(error.to_string(), "agent `b`: on_start `use panics` crashed: oh no");
    assert_eq!(project.log(), ["start a", "stop a"]);
}

/// A catalog with `note`, which writes down whose `on_shutdown` has run, and `hang`, which never ends.
fn stops() -> (tenure_cards::HookCatalog, Arc<Mutex<Vec<String>>>) {
    let stopped = Arc::new(Mutex::new(Vec::new()));
    let noted = stopped.clone();
    let note = tenure_core::hook::on_shutdown(move |cx, _| {
        let noted = noted.clone();
        Box::pin(async move {
            let name = cx.agent_name().to_owned();
            // What a good end needs: a little time.
            tokio::time::sleep(Duration::from_millis(100)).await;
            noted.lock().expect("nobody panicked").push(name);
            Ok(())
        })
    });
    let hang = tenure_core::hook::on_shutdown(|_, _| Box::pin(std::future::pending()));
    (tenure_cards::HookCatalog::new().register("note", note).register("hang", hang), stopped)
}

/// Eight agents that hang, and beneath one of them a good one with a good child.
fn hanging() -> Project {
    let card = |name: &str, hook: &str, more: &str| {
        format!("---\nname: {name}\nhooks: [{{ use: {hook} }}]\n{more}---\nx\n")
    };
    let hangs = |number: usize| card(&format!("hang{number}"), "hang", "");
    Project::new([
        ("a.md", &card("a", "note", "")),
        ("b.md", &card("b", "note", "agents: [a]\n")),
        ("h1.md", &hangs(1)),
        ("h2.md", &hangs(2)),
        ("h3.md", &hangs(3)),
        ("h4.md", &hangs(4)),
        ("h5.md", &hangs(5)),
        ("h6.md", &hangs(6)),
        ("h7.md", &hangs(7)),
        ("h8.md", &card("hang8", "hang", "agents: [b]\n")),
    ])
}

#[tokio::test(start_paused = true)]
async fn agents_that_hang_take_no_time_from_the_others() {
    let project = hanging();
    let (catalog, stopped) = stops();
    let team = project.builder().hook_catalog(catalog).build().expect("a good team");
    team.start().await.expect("it starts");
    let before = tokio::time::Instant::now();
    team.shutdown().await;
    assert_eq!(*stopped.lock().expect("nobody panicked"), ["b", "a"], "the parent first");
    // 5 s, the limit of an end, for each that hangs.
    let took = before.elapsed().as_secs();
    assert!((40..50).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn within_a_budget_everybody_gets_a_share() {
    let project = hanging();
    let (catalog, stopped) = stops();
    let team = project.builder().hook_catalog(catalog).build().expect("a good team");
    team.start().await.expect("it starts");
    let before = tokio::time::Instant::now();
    team.shutdown_within(Duration::from_secs(3)).await;
    assert_eq!(*stopped.lock().expect("nobody panicked"), ["b", "a"], "the parent first");
    let took = before.elapsed();
    assert!(took < Duration::from_millis(3500), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_end_in_python_comes_after_ends_that_hang() {
    let hang = |name: &str| {
        format!(
            "---\nname: {name}\nlifecycle_hooks:\n  \
             on_shutdown: {{ run: 'hang.py:hang', timeout: 200ms }}\n---\nx\n"
        )
    };
    let project = Project::new([
        ("a.md", &logged("a", "")),
        ("b.md", &hang("b")),
        ("c.md", &hang("c")),
        ("d.md", &logged("d", "agents: [a]")),
        ("hang.py", "import time\ndef hang(ctx):\n    time.sleep(60)\n"),
    ]);
    let (team, recorder) = project.recorded();
    assert_eq!(team.agents(), ["a", "b", "c", "d"]);
    team.start().await.expect("it starts");
    team.shutdown().await;
    assert_eq!(project.log(), ["start a", "start d", "stop d", "stop a"]);
    assert_paired(&recorder);
}
