//! One team in the place of another.

use crate::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::Team;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::sources::{Sources, Tracker};
use tenure_cards::team::TeamErrorKind;
use tenure_core::event::Event;
use tenure_testkit::{Recorder, assert_paired};
use tokio::sync::{Notify, Semaphore};

impl Project {
    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).expect("it was there");
    }

    /// The team that the files give now.
    fn successor(&self, old: &Team) -> Team {
        let next = old.successor(self.loaded());
        next.unwrap_or_else(|report| panic!("{:#?}", messages(&report)))
    }

    /// Forgets what the hooks wrote down.
    fn forget(&self) {
        self.write("log.txt", "");
    }
}

fn said(team: &Team, agent: &str) -> Vec<String> {
    let agent = team.agent(agent).expect("it runs");
    agent.history().iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_new_team_starts_before_the_old_one_ends_and_goes_on_with_its_conversations() {
    let project = Project::new([
        ("a.md", &logged("a", "default: true\nagents: [b]")),
        ("b.md", &logged("b", "")),
    ]);
    let (old, recorder) = project.recorded();
    old.start().await.expect("it starts");
    old.run(None, "one").await.expect("it runs");
    project.forget();
    project.write("a.md", &logged("a", "default: true\ndescription: another one\nagents: [b]"));
    let new = project.successor(&old);
    new.start_after(&old).await.expect("it starts");
    assert_eq!(project.log(), ["start b", "start a"], "the old one still lives");
    assert_eq!(said(&new, "a"), ["one", "one"]);
    assert_eq!(said(&new, "b"), [""; 0], "nobody talked to it");
    old.shutdown().await;
    assert_eq!(project.log(), ["start b", "start a", "stop a", "stop b"]);
    new.run(None, "two").await.expect("it runs");
    assert_eq!(said(&new, "a"), ["one", "one", "two", "two"]);
    new.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_team_that_cannot_start_leaves_the_old_one_as_it_is() {
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", &logged("b", ""))]);
    let (old, recorder) = project.recorded();
    old.start().await.expect("it starts");
    old.run(Some("a"), "one").await.expect("it runs");
    let ids = |team: &Team| ["a", "b"].map(|name| team.agent(name).expect("it runs").id());
    let before = ids(&old);
    project.forget();
    project.write(
        "b.md",
        "---\nname: b\nlifecycle_hooks: { on_start: log.py:boom, on_shutdown: log.py:stop }\n---\nx\n",
    );
    let new = project.successor(&old);
    let error = new.start_after(&old).await.expect_err("b cannot start");
    assert_eq!(error.kind(), TeamErrorKind::Start);
    assert!(error.to_string().contains("log.py:boom"), "{error}");
    assert_eq!(project.log(), ["start a", "boom b", "stop b", "stop a"], "what was started ended");
    assert_eq!(ids(&old), before);
    assert_eq!(old.run(Some("a"), "two").await.expect("it runs").output, "two");
    assert_eq!(said(&old, "a"), ["one", "one", "two", "two"]);
    old.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_with_errors_give_no_team() {
    let project = Project::new([("a.md", &logged("a", ""))]);
    let (old, recorder) = project.recorded();
    old.start().await.expect("it starts");
    for broken in [
        "",
        "---\nname: a\nmodel: [\n",
        "---\nname: a\nlifecycle_hooks: { on_start: gone.py:x }\n---\nx\n",
    ] {
        project.write("a.md", broken);
        let loaded = load(&project.path().join("a.md"), &LoadOptions::default());
        let report = old.successor(loaded).map(|_| ()).expect_err("it is broken");
        assert!(report.has_errors(), "{broken:?}");
    }
    assert_eq!(old.run(None, "still there?").await.expect("it runs").output, "still there?");
    old.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_are_gone_end_and_new_ones_begin() {
    let project = Project::new([("a.md", &logged("a", "")), ("b.md", &logged("b", ""))]);
    let (old, recorder) = project.recorded();
    old.start().await.expect("it starts");
    project.forget();
    project.remove("b.md");
    project.write("c.md", &logged("c", ""));
    let new = project.successor(&old);
    new.start_after(&old).await.expect("it starts");
    old.shutdown().await;
    assert_eq!(new.agents(), ["a", "c"]);
    assert_eq!(project.log(), ["start a", "start c", "stop b", "stop a"]);
    new.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_everything_ends_once_over_twenty_reloads() {
    let project = Project::new([("a.md", &logged("a", ""))]);
    let (mut team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    for number in 0..20 {
        assert_eq!(team.run(Some("a"), "hi").await.expect("it runs").output, "hi");
        project.write("a.md", &logged("a", &format!("description: number {number}")));
        if number % 3 == 2 {
            project.write("b.md", &logged("b", ""));
        } else if number % 3 == 0 && number > 0 {
            project.remove("b.md");
        }
        let new = project.successor(&team);
        new.start_after(&team).await.expect("it starts");
        team.shutdown().await;
        team = new;
    }
    assert_eq!(said(&team, "a").len(), 40, "the conversation was never lost");
    team.shutdown().await;
    assert_paired(&recorder);
    let log = project.log();
    let count = |what: &str| log.iter().filter(|line| *line == what).count();
    assert_eq!((count("start a"), count("stop a")), (21, 21));
    assert_eq!(count("start b"), count("stop b"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_goes_on_is_finished_first_and_is_part_of_the_conversation() {
    let project = Project::new([
        ("a.md", &logged("a", "model: script:said.json\nhooks: [{ use: gate }]")),
        ("said.json", r#"[{"text": "slowly"}]"#),
    ]);
    let (gate, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (closed, begins) = (gate.clone(), begun.clone());
    let hook = tenure_core::hook::before_agent(move |_, _| {
        let (closed, begins) = (closed.clone(), begins.clone());
        Box::pin(async move {
            begins.notify_one();
            // It is never given a permit: it goes on once the gate is no more.
            let _gone = closed.acquire().await;
            Ok(tenure_core::hook::Flow::Continue)
        })
    });
    let (bus, recorder) = Recorder::with_bus();
    let catalog = tenure_cards::HookCatalog::new().register("gate", hook);
    let built = project.builder().hook_catalog(catalog).events(&bus).build();
    let old = built.expect("a good team");
    old.start().await.expect("it starts");
    project.forget();
    project.write("said.json", r#"[{"text": "quickly"}]"#);
    let new = project.successor(&old);
    let (run, ()) = tokio::join!(old.run(None, "one"), async {
        begun.notified().await;
        let mut starting = std::pin::pin!(new.start_after(&old));
        let started = async {
            while project.log() != ["start a"] {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            done = &mut starting => panic!("a turn goes on: {done:?}"),
            () = started => {}
        }
        let early = tokio::time::timeout(Duration::from_millis(500), &mut starting).await;
        assert!(early.is_err(), "it waits for the turn: {early:?}");
        gate.close();
        starting.await.expect("it starts");
        assert_eq!(project.log(), ["start a"], "the old one still lives");
        old.shutdown().await;
    });
    assert_eq!(run.expect("nothing cancelled it").output, "slowly");
    assert_eq!(said(&new, "a"), ["one", "slowly"]);
    assert_eq!(new.run(None, "two").await.expect("it runs").output, "quickly");
    new.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_dropped_leaves_the_old_team_alone() {
    let project = Project::new([("a.md", &logged("a", ""))]);
    let (old, mut recorder) = project.recorded();
    old.start().await.expect("it starts");
    project.forget();
    let slow = "---\nname: b\nhooks:\n  - { on: on_start, run: [sleep, '60'] }\n---\nx\n";
    project.write("b.md", slow);
    let new = project.successor(&old);
    let begun = |event: &Event| event.name() == "hook.started" && &*event.agent == "b";
    tokio::select! {
        start = new.start_after(&old) => panic!("it ended by itself: {start:?}"),
        _ = recorder.wait_for(begun) => {}
    }
    new.settled().await;
    assert_eq!(project.log(), ["start a", "stop a"]);
    assert_eq!(old.run(None, "still there?").await.expect("it runs").output, "still there?");
    old.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test]
async fn a_conversation_that_never_began_is_the_one_of_the_new_card() {
    let card = |more: &str| format!("---\nname: a\n{more}\n---\nx\n");
    let project = Project::new([
        ("a.md", &card("messages: before.txt")),
        ("before.txt", "---USER\nhi\n---ASSISTANT\nhello\n"),
    ]);
    let old = project.team();
    old.start().await.expect("it starts");
    project.write("before.txt", "---USER\nhi\n---ASSISTANT\ngood evening\n");
    let new = project.successor(&old);
    new.start_after(&old).await.expect("it starts");
    assert_eq!(said(&new, "a"), ["hi", "good evening"]);
    // One that goes on is worth more than what the card knows.
    new.run(None, "more").await.expect("it runs");
    project.write("before.txt", "---USER\nhi\n---ASSISTANT\nbye\n");
    let newest = project.successor(&new);
    newest.start_after(&new).await.expect("it starts");
    assert_eq!(said(&newest, "a"), ["hi", "good evening", "more", "more"]);
    // And an agent that keeps no history gets none.
    project.write("a.md", &card("use_history: false"));
    let forgetful = project.successor(&newest);
    forgetful.start_after(&newest).await.expect("it starts");
    assert_eq!(said(&forgetful, "a"), [""; 0]);
    for team in [old, new, newest, forgetful] {
        team.shutdown().await;
    }
}

#[tokio::test]
async fn a_successor_has_the_settings_of_the_team() {
    let project = Project::new([
        ("a.md", "---\nname: a\nmodel: silent\nhooks: [{ use: loud }]\n---\nx\n"),
        ("said.json", r#"["from the script"]"#),
    ]);
    let loud = tenure_core::hook::before_agent(|_, input| {
        input.content = input.content.text().to_uppercase().into();
        Box::pin(async { Ok(tenure_core::hook::Flow::Continue) })
    });
    let catalog = tenure_cards::HookCatalog::new().register("loud", loud);
    let builder = project.builder().hook_catalog(catalog).model_override("script:said.json");
    let old = builder.build().expect("a good team");
    old.start().await.expect("it starts");
    let new = project.successor(&old);
    new.start_after(&old).await.expect("it starts");
    assert_eq!(new.run(None, "hi").await.expect("it runs").output, "from the script");
    assert_eq!(said(&new, "a")[0], "HI");
    assert_eq!(new.model_override(), Some("script:said.json"));
    old.shutdown().await;
    new.shutdown().await;
}

#[test]
fn a_team_knows_every_file_that_it_comes_from() {
    let card = "---
name: a
model: script:said.json
messages: before.txt
skills: [skills]
function_tools: ['tools.py:add']
lifecycle_hooks: { on_start: log.py:start }
hooks:
  - { on: before_agent, run: [sh, audit.sh, --log, audit.txt, limits.txt], writes: audit.txt }
---
{{file:rules.txt}}
{{file_silent:later.txt}}
";
    let project = Project::new([
        ("a.md", card),
        ("b.md", "---\nname: b\nmodel: passthrough\n---\nx\n"),
        ("said.json", "[\"x\"]"),
        ("before.txt", "hi"),
        ("skills/one/SKILL.md", "---\nname: one\ndescription: it\n---\nx\n"),
        ("tools.py", "from package import more\ndef add(a: int) -> int:\n    return a\n"),
        ("package/more.py", ""),
        ("audit.sh", "#!/bin/sh\necho {}\n"),
        ("audit.txt", "this is written by every run"),
        ("limits.txt", "this is read by every run"),
        ("rules.txt", "be kind"),
        ("notes.txt", "nobody names this"),
        ("node_modules/x/setup.py", ""),
        ("package/__pycache__/more.cpython-312.pyc", ""),
    ]);
    let mut tracker = Tracker::new(project.team().sources());
    assert!(!tracker.look());
    let mut changed = |name: &str| {
        let before = std::fs::read_to_string(project.path().join(name)).ok();
        project.write(name, &(before.clone().unwrap_or_default() + "\n# more\n"));
        let told = tracker.look();
        let users: Vec<_> = tracker.touched().iter().map(ToString::to_string).collect();
        match before {
            Some(before) => project.write(name, &before),
            None => project.remove(name),
        }
        tracker.look();
        (told, users.join(","))
    };
    let all = |name: &str| (true, name.to_owned());
    for name in [
        "a.md",
        "said.json",
        "before.txt",
        "skills/one/SKILL.md",
        "skills/two/SKILL.md",
        "tools.py",
        "log.py",
        "package/more.py",
        "package/new.py",
        "audit.sh",
        "limits.txt",
        "rules.txt",
        "later.txt",
    ] {
        assert_eq!(changed(name), all("a"), "{name}");
    }
    assert_eq!(changed("b.md"), all("b"));
    assert_eq!(changed("tenure.toml"), all("a,b"));
    assert_eq!(changed("c.md"), all(""), "a new card is nobody's yet");
    for name in ["audit.txt", "notes.txt", "node_modules/x/setup.py", ".tenure/x.md", "sub/c.md"] {
        assert_eq!(changed(name), (false, String::new()), "{name}");
    }
}

#[test]
fn a_card_by_itself_counts_with_those_that_it_names() {
    let project = Project::new([
        ("a.md", "---\nname: a\nagents: [b]\n---\nx\n"),
        ("b.md", "---\nname: b\n---\nx\n"),
        ("c.md", "---\nname: c\n---\nx\n"),
    ]);
    let loaded = || load(&project.path().join("a.md"), &LoadOptions::default());
    let mut tracker = Tracker::new(Sources::of(&loaded()));
    project.write("c.md", "---\nname: c\n---\ny\n");
    assert!(!tracker.look(), "nobody named it");
    project.write("b.md", "---\nname: b\n---\ny\n");
    assert!(tracker.look());
    // A card that is missing may be in any file.
    project.remove("b.md");
    assert!(tracker.look());
    tracker.consider(Sources::of(&loaded()));
    project.write("c.md", "---\nname: b\n---\ny\n");
    assert!(tracker.look());
}

#[test]
fn what_hooks_import_from_elsewhere_in_the_project_counts() {
    let card = "---\nname: a\nlifecycle_hooks: { on_start: hooks/hook.py:start }\n---\nx\n";
    let project = Project::new([
        ("cards/a.md", card),
        ("cards/b.md", "---\nname: b\nmodel: passthrough\n---\nx\n"),
        ("cards/hooks/hook.py", "from shared.words import x\ndef start(ctx): pass\n"),
        ("shared/words.py", "x = 1\n"),
        ("shared/unused.py", ""),
    ]);
    let loaded = load(&project.path().join("cards"), &LoadOptions::default());
    let mut tracker = Tracker::new(Sources::of(&loaded));
    project.write("shared/unused.py", "# more\n");
    assert!(!tracker.look());
    project.write("shared/words.py", "x = 2\n");
    assert!(tracker.look());
    assert_eq!(tracker.touched().iter().map(|it| &**it).collect::<Vec<_>>(), ["a"]);
}
