//! Cards that put agents together.

use crate::resume::support::*;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_cards::build::{Attach, AttachHosts, Attached};
use tenure_core::context::ToolCx;
use tenure_core::step::{MemoryStepLog, StepKey};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};

/// Gives `up` a tool that writes down its keys.
#[derive(Clone, Default)]
struct Shouting(Arc<Mutex<Vec<String>>>);

impl Shouting {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Attach for Shouting {
    fn attach(&self, agent: &str, _: &AttachHosts<'_>) -> Attached {
        let mut attached = Attached::new();
        if agent == "up" {
            attached.tools.push(Arc::new(self.clone()));
        }
        attached
    }
}

#[async_trait::async_trait]
impl Tool for Shouting {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("shout", "Shouts").effect(Effect::Keyed)
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(cx.idempotency_key());
        Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase().into())
    }
}

const PLAN: &str = "turns:
  - when: What has been done so far
    replies: [the sum]
  - replies: ['{\"steps\": [{\"description\": \"s\", \"tasks\": [{\"description\": \"t\", \"agent\": \"up\"}, {\"description\": \"u\", \"agent\": \"up\"}]}], \"is_complete\": true}']
";

fn project() -> Project {
    noting([
        ("up.md", "---\nmodel: script:up.yml\ndescription: Shouts\n---\nx\n"),
        ("up.yml", "- { call: shout, with: { text: '{input}' } }\n- 'UP {result}'\n"),
        ("echo.md", "---\nmodel: passthrough\nuse_history: false\n---\nx\n"),
        ("judge.md", "---\nmodel: script:judge.yml\n---\nx\n"),
        ("judge.yml", "turns:\n  - { when: 'UP', replies: [GOOD] }\n  - { replies: [POOR] }\n"),
        ("pick.yml", "- '{\"agent\": \"up\"}'\n"),
        ("plan.yml", PLAN),
        ("chain.yaml", "type: chain\nname: chain\nsequence: [up, echo, up]\n"),
        ("outer.yaml", "type: chain\nname: outer\nsequence: [chain, up]\n"),
        ("parallel.yaml", "type: parallel\nname: parallel\nfan_out: [up, echo]\nfan_in: up\n"),
        (
            "eval.yaml",
            "type: evaluator_optimizer\nname: eval\ngenerator: up\nevaluator: judge\nmin_rating: EXCELLENT\nmax_refinements: 2\n",
        ),
        ("router.yaml", "type: router\nname: router\nagents: [up, echo]\nmodel: script:pick.yml\n"),
        ("orch.yaml", "type: orchestrator\nname: orch\nagents: [up]\nmodel: script:plan.yml\n"),
        ("maker.yaml", "type: MAKER\nname: maker\nworker: up\nk: 2\n"),
    ])
}

async fn goes_on_everywhere(agent: &str, least: usize) {
    let (project, shouting) = (project(), Shouting::default());
    let (mut expected, mut keys) = (String::new(), Vec::new());
    let check = |cut: usize, left: &[StepKey], log: &MemoryStepLog, result| {
        let shouts = shouting.take();
        let result: Result<tenure_cards::team::Run, _> = result;
        let run = result.unwrap_or_else(|error| panic!("{agent}, cut after {cut}: {error}"));
        assert_ended(log);
        if left.is_empty() {
            assert!(run.output.contains("GO") || run.output == "the sum", "{}", run.output);
            (expected, keys) = (run.output, shouts);
            return;
        }
        assert_eq!(run.output, expected, "{agent}, cut after {cut}");
        let is_shout = |key: &&StepKey| &*key.kind == "tool" && key.name.starts_with("shout");
        let wanted = left.iter().filter(is_shout).count();
        assert_eq!(shouts.len(), wanted, "{agent}, cut after {cut}: {shouts:?}");
        assert!(shouts.iter().all(|key| keys.contains(key)), "{shouts:?} {keys:?}");
        let unique: std::collections::BTreeSet<_> = shouts.iter().collect();
        assert_eq!(unique.len(), shouts.len(), "each call has a key of its own");
    };
    let whole =
        cut_everywhere(|| project.builder().attach(Arc::new(shouting.clone())), agent, check).await;
    assert!(whole.keys().len() >= least, "{agent}: {:#?}", whole.keys());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_goes_on_after_every_step() {
    goes_on_everywhere("chain", 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_of_a_chain_goes_on_after_every_step() {
    goes_on_everywhere("outer", 14).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parallel_goes_on_after_every_step() {
    goes_on_everywhere("parallel", 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evaluator_goes_on_after_every_step() {
    goes_on_everywhere("eval", 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_goes_on_after_every_step() {
    goes_on_everywhere("router", 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orchestrator_goes_on_after_every_step() {
    goes_on_everywhere("orch", 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_maker_goes_on_after_every_step() {
    goes_on_everywhere("maker", 8).await;
}
