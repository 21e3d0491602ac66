//! A turn with any two hooks.

use crate::compose::stage::{Stage, builder, for_pairs, model};
use std::sync::Arc;
use tenure_core::Outcome;
use tenure_core::agent::AgentBuilder;
use tenure_core::model::{ModelError, ModelErrorKind};
use tenure_hooks::ready;
use tenure_models::Scripted;
use tenure_testkit::assert_paired;

/// Hooks whose example keeps the tool itself from running, as they should.
const INSTEAD_OF_TOOLS: [&str; 1] = ["dry_run"];

#[tokio::test]
async fn each_hook_alone_lets_a_turn_pass() {
    for (_, hook) in ready::all() {
        let stage = Stage::new();
        let played = stage.play([stage.hook(hook)]).await;
        let report = match &played.result {
            Ok(report) => report,
            Err(error) => panic!("{}: {error}", hook.name()),
        };
        assert!(report.output().contains("done"), "{}: {}", hook.name(), report.output());
        assert!(report.failures.is_empty(), "{}: {:?}", hook.name(), report.failures);
        let expected = usize::from(!INSTEAD_OF_TOOLS.contains(&hook.name()));
        assert_eq!(played.ran, expected, "{}", hook.name());
        assert_paired(&played.recorder);
    }
}

#[tokio::test]
async fn each_hook_with_itself_under_another_name_lets_a_turn_pass() {
    for (_, hook) in ready::all() {
        let stage = Stage::new();
        let twice = || [stage.hook(hook), stage.hook(hook).named("second")];
        // A tool is there once.
        if !stage.hook(hook).tools().is_empty() {
            let builder = builder(&Arc::default()).model(model());
            let built = twice().into_iter().fold(builder, AgentBuilder::with_lifecycle).build();
            assert!(built.is_err(), "{} brings its tools twice", hook.name());
            continue;
        }
        let played = stage.play(twice()).await;
        let report = match &played.result {
            Ok(report) => report,
            Err(error) => panic!("{}: {error}", hook.name()),
        };
        assert!(report.output().contains("done"), "{}: {}", hook.name(), report.output());
        assert!(report.failures.is_empty(), "{}: {:?}", hook.name(), report.failures);
        let expected = usize::from(!INSTEAD_OF_TOOLS.contains(&hook.name()));
        assert_eq!(played.ran, expected, "{}", hook.name());
        assert_paired(&played.recorder);
    }
}

#[tokio::test]
async fn g1_g3_any_two_hooks_let_a_turn_pass_both_ways_and_everything_ends() {
    for_pairs(async |one, two| {
        let stage = Stage::new();
        let played = stage.play([stage.hook(one), stage.hook(two)]).await;
        let both = format!("{} and {}", one.name(), two.name());
        let report = match &played.result {
            Ok(report) => report,
            Err(error) => panic!("{both}: {error}"),
        };
        assert!(report.output().contains("done"), "{both}: {}", report.output());
        assert!(report.failures.is_empty(), "{both}: {:?}", report.failures);
        let is_instead = |name| INSTEAD_OF_TOOLS.contains(&name);
        let expected = usize::from(!is_instead(one.name()) && !is_instead(two.name()));
        assert_eq!(played.ran, expected, "{both}: how often the tool ran");
        assert_paired(&played.recorder);
    })
    .await;
}

/// Hooks that have another model answer, which is what they are for.
const RECOVERS: [&str; 3] = ["fallback", "adapt", "cheaper_model"];

#[tokio::test]
async fn g1_any_two_hooks_end_a_turn_whose_model_fails() {
    for_pairs(async |one, two| {
        let stage = Stage::new();
        let failing = Scripted::from_fn(|_, _| {
            Err(ModelError::new(ModelErrorKind::Overloaded, "there is no room"))
        });
        let played = stage.play_with(failing, [stage.hook(one), stage.hook(two)]).await;
        let both = format!("{} and {}", one.name(), two.name());
        if RECOVERS.contains(&one.name()) || RECOVERS.contains(&two.name()) {
            assert_paired(&played.recorder);
            return;
        }
        let error = match played.result {
            Ok(report) => panic!("{both}: it answered {:?}", report.output()),
            Err(error) => error,
        };
        assert_eq!(error.outcome(), Outcome::Failed, "{both}: {error}");
        assert_eq!(played.ran, 0, "{both}");
        assert_paired(&played.recorder);
    })
    .await;
}

#[tokio::test]
async fn a_stack_of_all_hooks_is_in_order_whatever_order_they_are_given_in() {
    let stage = Stage::new();
    // What keeps the tool from running has a test of its own.
    let all =
        || ready::all().map(|(_, hook)| hook).filter(|it| !INSTEAD_OF_TOOLS.contains(&it.name()));
    let forward: Vec<_> = all().map(|hook| stage.hook(hook)).collect();
    let mut backward: Vec<_> = all().map(|hook| stage.hook(hook)).collect();
    backward.reverse();
    for hooks in [forward, backward] {
        let played = stage.play_with(model(), hooks).await;
        let report = played.result.unwrap();
        assert!(report.output().contains("done"), "{}", report.output());
        assert_eq!(played.ran, 1);
        assert_paired(&played.recorder);
    }
}
