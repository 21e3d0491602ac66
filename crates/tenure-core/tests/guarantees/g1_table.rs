//! G1, as a table: however a turn ends and however it was started, every entry that was entered
//! ends once, with the right outcome, and nothing is left behind. Every cell is run with somebody
//! listening to the events and without: hooks are called on another path then.

use crate::guarantees::support::{
    Acts, Does, Entry, Events, Fault, Held, Log, Saw, Says, Watch, agent,
};
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::drive::TurnReport;
use tenure_core::hook::{self, Policy};
use tenure_core::message::HistoryDefect;
use tenure_core::{Error, ErrorKind, ExitReason, Outcome};
use tokio::time::{sleep, timeout};

/// How the turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Ok,
    ToolError,
    ToolPanic,
    FatalToolError,
    ModelError,
    Denied,
    Cancelled,
    TimedOut,
    Panic,
    HookPanic,
    Dropped,
    MaxSteps,
    ShutdownWhileBusy,
    FailingSibling,
}

/// How the turn is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Run,
    Stream,
    Scoped,
    Clone,
    AgentTool,
}

const WAYS: [Way; 5] = [Way::Run, Way::Stream, Way::Scoped, Way::Clone, Way::AgentTool];
const FAULTS: [Fault; 4] = [Fault::None, Fault::Fails, Fault::Panics, Fault::Hangs];

const CHAIN: [&str; 4] = ["outer", "faulty", "inner", "last"];

impl Ending {
    /// What the hooks of the agent that runs the turn get to see.
    fn outcome(self) -> Option<Outcome> {
        Some(match self {
            Self::Ok | Self::ToolError | Self::ToolPanic => Outcome::Ok,
            Self::FatalToolError | Self::ModelError => Outcome::Failed,
            Self::Denied => Outcome::Denied,
            Self::Cancelled | Self::Dropped | Self::ShutdownWhileBusy => Outcome::Cancelled,
            Self::TimedOut => Outcome::TimedOut,
            Self::Panic | Self::HookPanic => Outcome::Panicked,
            Self::MaxSteps => Outcome::MaxSteps,
            Self::FailingSibling => return None,
        })
    }

    /// What a parent sees whose tool the agent is: failures of the tool are for its model to read.
    fn outcome_of_parent(self) -> Outcome {
        match self {
            Self::Cancelled | Self::Dropped | Self::ShutdownWhileBusy => Outcome::Cancelled,
            _ => Outcome::Ok,
        }
    }

    fn model(self) -> Says {
        match self {
            Self::Ok | Self::Denied | Self::HookPanic | Self::FailingSibling => Says::Done,
            Self::ToolError | Self::ToolPanic | Self::FatalToolError => Says::Calls("tool"),
            Self::MaxSteps => Says::Repeats("tool"),
            Self::ModelError => Says::Fails,
            Self::Panic => Says::Panics,
            Self::Cancelled | Self::Dropped | Self::TimedOut | Self::ShutdownWhileBusy => {
                Says::Hangs
            }
        }
    }

    fn tool(self) -> Does {
        match self {
            Self::ToolError => Does::Fails,
            Self::ToolPanic => Does::Panics,
            Self::FatalToolError => Does::Fatal,
            _ => Does::Works,
        }
    }

    /// How many entries of [`CHAIN`] the turn passes.
    fn entered(self) -> usize {
        match self {
            Self::Denied | Self::HookPanic => 3,
            Self::FailingSibling => 0,
            _ => CHAIN.len(),
        }
    }

    /// Why the agent is over when its turn is, if it is.
    fn exit(self) -> Option<ExitReason> {
        match self {
            Self::FatalToolError => Some(ExitReason::Fatal),
            Self::ShutdownWhileBusy => Some(ExitReason::Completed),
            Self::FailingSibling => Some(ExitReason::StartupFailed),
            _ => None,
        }
    }
}

/// The agent whose turn it is.
fn subject(ending: Ending, end: Fault, log: &Log, held: &Held, events: &Events) -> Blueprint {
    let watch = |name| Watch::new(name, log).holding(held);
    let faulty = watch("faulty").after_agent(end).on_shutdown(end);
    let mut inner = hook::hook(watch("inner"));
    if ending == Ending::Denied {
        let guard = watch("inner").before_agent(Fault::Fails);
        inner = hook::hook(guard)
            .policy_at(hook::Point::BeforeAgent, Policy::Deny)
            .policy_at(hook::Point::OnStart, Policy::Abort);
    }
    if ending == Ending::HookPanic {
        inner = hook::hook(watch("inner").before_agent(Fault::Panics));
    }
    let mut last = watch("last");
    if ending == Ending::FailingSibling {
        last = last.on_start(Fault::Fails);
    }
    let mut builder = agent("subject", ending.model())
        .tool(Acts("tool", ending.tool()))
        .max_steps(3)
        .events(&events.bus)
        .with_lifecycle(watch("outer"))
        .with_lifecycle(faulty)
        .with_lifecycle(inner)
        .with_lifecycle(last);
    if ending == Ending::TimedOut {
        builder = builder.turn_limit(Duration::from_secs(5));
    }
    builder.blueprint().unwrap()
}

type Ran = Option<Result<TurnReport, Error>>;

/// Runs a turn of `agent` and meanwhile does to it what `ending` takes. `None` if it was dropped.
async fn run(agent: &Agent, ending: Ending, stream: bool) -> Ran {
    let turn =
        async { if stream { agent.stream("go").finish().await } else { agent.run("go").await } };
    let moment = Duration::from_secs(1);
    match ending {
        Ending::Dropped => timeout(moment, turn).await.ok(),
        Ending::Cancelled => {
            let (result, ()) = tokio::join!(turn, async {
                sleep(moment).await;
                agent.cancel();
            });
            Some(result)
        }
        Ending::ShutdownWhileBusy => {
            let (result, ()) = tokio::join!(turn, async {
                sleep(moment).await;
                agent.shutdown().await;
            });
            Some(result)
        }
        _ => Some(turn.await),
    }
}

/// Starts `agent`, runs the turn and looks at it before it is shut down.
async fn start_and_run(agent: Agent, ending: Ending, way: Way, what: &str) -> Ran {
    if way == Way::Scoped {
        let mut ran = None;
        let result: Result<(), Error> = agent
            .scoped(async |agent: &Agent| {
                ran = run(agent, ending, false).await;
                Ok(())
            })
            .await;
        return match result {
            Ok(()) => ran,
            Err(error) => Some(Err(error)),
        };
    }
    if let Err(error) = agent.startup().await {
        assert_eq!(agent.exit_reason(), Some(ExitReason::StartupFailed), "{what}");
        return Some(Err(error));
    }
    let ran = run(&agent, ending, way == Way::Stream).await;
    agent.blueprint().settled().await;
    if way != Way::AgentTool && ending.exit().is_some() {
        assert_eq!(agent.exit_reason(), ending.exit(), "{what}");
    } else if ending == Ending::ShutdownWhileBusy {
        assert_eq!(agent.exit_reason(), Some(ExitReason::Completed), "{what}");
    } else {
        agent.ready().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!(HistoryDefect::find(&agent.history()), None, "{what}");
    agent.shutdown().await;
    ran
}

/// Checks what came out of a turn.
fn check_result(ran: &Ran, outcome: Outcome, dropped: bool, what: &str) {
    match ran {
        None => assert!(dropped, "{what}: the turn was dropped"),
        Some(Ok(report)) => {
            assert_eq!(outcome, Outcome::Ok, "{what}");
            assert_eq!((report.outcome, report.output()), (Outcome::Ok, "done"), "{what}");
        }
        Some(Err(error)) => {
            assert_eq!(error.outcome(), outcome, "{what}: {error}");
            assert_eq!(error.report().map(|it| it.outcome), Some(outcome), "{what}: {error}");
        }
    }
}

/// A failing end is recorded, and nothing more (G5).
fn check_failures(ran: &Ran, end: Fault, what: &str) {
    let report = match ran {
        None => return,
        Some(Ok(report)) => report,
        Some(Err(error)) => error.report().expect("a turn's error has its report"),
    };
    let ends: Vec<_> = report.failures.iter().filter(|it| &*it.point == "after_agent").collect();
    assert_eq!(ends.len(), usize::from(end != Fault::None), "{what}: {ends:?}");
}

async fn cell(ending: Ending, way: Way, end: Fault, watched: bool) {
    let what = format!("{ending:?} by {way:?}, end hook {end:?}, watched: {watched}");
    let (log, held) = (Log::default(), Held::default());
    let mut events = if watched { Events::new() } else { Events::unwatched() };
    let blueprint = subject(ending, end, &log, &held, &events);

    let (ran, name) = match way {
        Way::Run | Way::Stream | Way::Scoped => {
            (start_and_run(blueprint.instance(), ending, way, &what).await, "subject")
        }
        Way::Clone => {
            let root = blueprint.instance();
            let ran = if ending == Ending::FailingSibling {
                // A root whose chain cannot start cannot be the parent of a clone: the clone is
                // spawned from one that has not been started.
                root.spawn_detached_instance(None)
                    .await
                    .map(|_| None)
                    .unwrap_or_else(|e| Some(Err(e)))
            } else {
                root.startup().await.unwrap();
                let clone = root.spawn_detached_instance(None).await.unwrap();
                let ran = start_and_run(clone, ending, way, &what).await;
                root.shutdown().await;
                ran
            };
            (ran, "subject#1")
        }
        Way::AgentTool => {
            let parent = agent("parent", Says::Calls("agent__subject"))
                .agent_tool(&blueprint)
                .events(&events.bus)
                .with_lifecycle(Watch::new("parent", &log))
                .blueprint()
                .unwrap();
            let ran = start_and_run(parent.instance(), ending, way, &what).await;
            let wanted = ending.outcome_of_parent();
            check_result(&ran, wanted, ending == Ending::Dropped, &what);
            let ended = log.of("parent");
            let reason = ExitReason::Completed;
            let whole = [Saw::Start, Saw::Before, Saw::After(wanted), Saw::Shutdown(reason)];
            assert_eq!(ended, whole, "{what}");
            (ran, "subject#1[tool]")
        }
    };
    let settled = timeout(Duration::from_secs(60), blueprint.settled()).await;
    assert!(settled.is_ok(), "{what}: something is left on the tracker");

    // Where there are two, the clone was started after its root.
    let started = |it: &&Entry| it.hook == "outer" && it.saw == Saw::Start;
    let instance = log.entries().iter().rfind(started).expect("it was started").instance;
    let begun = ending.outcome();
    if let (Some(outcome), true) = (begun, way != Way::AgentTool) {
        check_result(&ran, outcome, ending == Ending::Dropped, &what);
        check_failures(&ran, end, &what);
    }
    if let (None, true) = (begun, way != Way::AgentTool) {
        let error = ran.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Startup, "{what}");
        assert!(error.to_string().contains("last is broken"), "{what}: {error}");
    }
    let exit = ending.exit().unwrap_or(ExitReason::Completed);
    for (place, hook) in CHAIN.into_iter().enumerate() {
        let mut wanted = vec![Saw::Start];
        if let Some(outcome) = begun.filter(|_| place < ending.entered()) {
            wanted.extend([Saw::Before, Saw::After(outcome)]);
        }
        wanted.push(Saw::Shutdown(exit));
        assert_eq!(log.of_instance(hook, instance), wanted, "{what}: {hook}");
    }
    check_order(&log, way, &what);
    check_released(&log, &held, &what);
    if events.are_watched() {
        assert_eq!(events.instances(name), [instance], "{what}");
        assert_eq!(events.turn_ends(instance), Vec::from_iter(begun), "{what}");
        assert_eq!(events.exits(instance), [exit], "{what}");
        check_phases(&mut events, &what);
        events.assert_paired(&what);
    }
}

/// What a start acquired is released, and the hook has seen the end of every start.
fn check_released(log: &Log, held: &Held, what: &str) {
    let entries = log.entries();
    let of_chain = || entries.iter().filter(|it| CHAIN.contains(&&*it.hook));
    let starts = of_chain().filter(|it| it.saw == Saw::Start).count();
    let stops = of_chain().filter(|it| matches!(it.saw, Saw::Shutdown(_))).count();
    assert!(starts >= CHAIN.len(), "{what}");
    assert_eq!(stops, starts, "{what}");
    assert_eq!(held.counts(), [starts; 2], "{what}: what was acquired is released");
}

/// Ends run last to first, and children end before their parents (G2).
fn check_order(log: &Log, way: Way, what: &str) {
    let entries = log.entries();
    let ends: Vec<_> = entries.iter().filter(|it| matches!(it.saw, Saw::After(_))).collect();
    let mut wanted: Vec<_> = CHAIN.into_iter().rev().collect();
    if way == Way::AgentTool {
        wanted.push("parent");
    }
    wanted.retain(|hook| ends.iter().any(|it| it.hook == *hook));
    let ends: Vec<_> = ends.into_iter().map(|it| it.hook.as_str()).collect();
    assert_eq!(ends, wanted, "{what}");
    if way == Way::AgentTool {
        let stopped = entries
            .iter()
            .rposition(|it| it.hook != "parent" && matches!(it.saw, Saw::Shutdown(_)));
        let parent =
            entries.iter().position(|it| it.hook == "parent" && matches!(it.saw, Saw::After(_)));
        assert!(stopped < parent, "{what}: the child stops before its parent's turn ends");
    }
}

/// Every arrow is legal, and begins where the one before it ended.
fn check_phases(events: &mut Events, what: &str) {
    for name in ["subject", "subject#1", "subject#1[tool]", "parent"] {
        for instance in events.instances(name) {
            let mut at = tenure_core::phase::Phase::Uninitialized;
            for (from, to) in events.phases(instance) {
                assert!(from.may_go_to(to), "{what}: {name} from {from} to {to}");
                assert_eq!(from, at, "{what}: {name} goes to {to}");
                at = to;
            }
        }
    }
}

async fn row(ending: Ending) {
    for way in WAYS {
        for end in FAULTS {
            for watched in [true, false] {
                cell(ending, way, end, watched).await;
            }
        }
    }
}

macro_rules! rows {
    ($($name:ident: $ending:ident;)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            row(Ending::$ending).await;
        }
    )+};
}

rows! {
    g1_a_turn_that_goes_well_ends_once: Ok;
    g1_a_tool_error_ends_once: ToolError;
    g1_a_tool_panic_ends_once: ToolPanic;
    g1_a_fatal_tool_error_ends_once_and_shuts_down: FatalToolError;
    g1_a_model_error_ends_once: ModelError;
    g1_a_denied_turn_ends_what_it_entered: Denied;
    g1_a_cancelled_turn_ends_once: Cancelled;
    g1_a_timed_out_turn_ends_once: TimedOut;
    g1_a_panic_ends_once: Panic;
    g1_a_hook_panic_ends_what_it_entered: HookPanic;
    g1_dropped_run_still_ends: Dropped;
    g1_max_steps_ends_once: MaxSteps;
    g1_shutdown_while_busy_ends_turn_and_life_once: ShutdownWhileBusy;
    g1_a_failing_sibling_at_startup_undoes_those_before_it: FailingSibling;
}
