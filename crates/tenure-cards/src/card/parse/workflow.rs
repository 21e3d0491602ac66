//! The fields of the other types.

use super::{mcp, model};
use crate::card::{
    A2aCard, A2aTransport, CardKind, CardType, ChainCard, EvaluatorOptimizerCard,
    IterativePlannerCard, MakerCard, MatchStrategy, OrchestratorCard, ParallelCard, PlanType,
    Rating, Reader, RouterCard, present,
};
use crate::diagnostic::Code;
use crate::source::{Node, Value};
use std::time::Duration;

const RATINGS: &[(&str, Rating)] = &[
    ("EXCELLENT", Rating::Excellent),
    ("GOOD", Rating::Good),
    ("FAIR", Rating::Fair),
    ("POOR", Rating::Poor),
];
const PLANS: &[(&str, PlanType)] = &[("full", PlanType::Full), ("iterative", PlanType::Iterative)];
const MATCHES: &[(&str, MatchStrategy)] = &[
    ("exact", MatchStrategy::Exact),
    ("normalized", MatchStrategy::Normalized),
    ("structured", MatchStrategy::Structured),
];
const TRANSPORTS: &[(&str, A2aTransport)] =
    &[("JSONRPC", A2aTransport::JsonRpc), ("HTTP+JSON", A2aTransport::HttpJson)];

/// The fields of every type but agent; none if one that is needed is missing.
pub(super) fn read(tree: &Node, reader: &mut Reader<'_>, card_type: CardType) -> Option<CardKind> {
    Some(match card_type {
        CardType::Agent => return None,
        CardType::Chain => CardKind::Chain(ChainCard {
            sequence: reader.some_agents(tree, "sequence"),
            cumulative: reader.truth(tree, "cumulative").unwrap_or(false),
        }),
        CardType::Parallel => CardKind::Parallel(ParallelCard {
            fan_out: reader.some_agents(tree, "fan_out"),
            fan_in: reader.agent(tree, "fan_in"),
            include_request: reader.truth(tree, "include_request").unwrap_or(true),
        }),
        CardType::EvaluatorOptimizer => evaluator(tree, reader)?,
        CardType::Router => CardKind::Router(Box::new(RouterCard {
            agents: reader.some_agents(tree, "agents"),
            model: model::read(tree, reader, card_type),
            mcp: mcp::read(tree, reader),
        })),
        CardType::Orchestrator => CardKind::Orchestrator(Box::new(OrchestratorCard {
            agents: reader.some_agents(tree, "agents"),
            model: model::read(tree, reader, card_type),
            plan_type: reader.one_of(tree, "plan_type", PLANS).unwrap_or(PlanType::Full),
            plan_iterations: iterations(tree, reader, Some(5)),
        })),
        CardType::IterativePlanner => CardKind::IterativePlanner(Box::new(IterativePlannerCard {
            agents: reader.some_agents(tree, "agents"),
            model: model::read(tree, reader, card_type),
            plan_iterations: iterations(tree, reader, None),
        })),
        CardType::Maker => maker(tree, reader)?,
        CardType::A2a => a2a(tree, reader)?,
    })
}

fn evaluator(tree: &Node, reader: &mut Reader<'_>) -> Option<CardKind> {
    let generator = reader.agent(tree, "generator");
    let evaluator = reader.agent(tree, "evaluator");
    let min_rating = reader.one_of(tree, "min_rating", RATINGS).unwrap_or(Rating::Good);
    let max_refinements = reader.count(tree, "max_refinements").unwrap_or(3);
    let refinement_instruction = reader.words(tree, "refinement_instruction");
    Some(CardKind::EvaluatorOptimizer(EvaluatorOptimizerCard {
        generator: generator?,
        evaluator: evaluator?,
        min_rating,
        max_refinements,
        refinement_instruction,
    }))
}

/// `plan_iterations`: a count, or -1 for no limit.
fn iterations(tree: &Node, reader: &mut Reader<'_>, default: Option<u32>) -> Option<u32> {
    match present(tree, "plan_iterations") {
        None => default,
        Some(node) if node.value == Value::Int(-1) => None,
        Some(node) => match node.value {
            Value::Int(count) if count < 1 => {
                reader.problem_help(
                    Code::OutOfRange,
                    node.span,
                    format!("`plan_iterations` is {count}, but must be 1 or more, or -1"),
                    "give a number of 1 or more, or -1 for no limit",
                );
                default
            }
            _ => reader.count(tree, "plan_iterations").or(default),
        },
    }
}

fn maker(tree: &Node, reader: &mut Reader<'_>) -> Option<CardKind> {
    let worker = reader.agent(tree, "worker");
    let k = reader.count(tree, "k").unwrap_or(3);
    let max_samples = reader.count(tree, "max_samples").unwrap_or(50);
    let match_strategy = reader.one_of(tree, "match_strategy", MATCHES);
    let red_flag_max_length = reader.count(tree, "red_flag_max_length");
    if max_samples < k {
        let place = tree.field("max_samples").or_else(|| tree.field("k"));
        reader.problem_help(
            Code::OutOfRange,
            place.map_or(tree.span, |node| node.span),
            format!("no answer can lead by {k} with at most {max_samples} samples"),
            "make `max_samples` at least as large as `k`",
        );
    }
    Some(CardKind::Maker(MakerCard {
        worker: worker?,
        k,
        max_samples,
        match_strategy: match_strategy.unwrap_or(MatchStrategy::Exact),
        red_flag_max_length,
    }))
}

fn a2a(tree: &Node, reader: &mut Reader<'_>) -> Option<CardKind> {
    let url = reader.words(tree, "url").map(|url| url.trim().to_owned());
    if let Some(url) = &url
        && !url.contains("${")
        && !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
    {
        let span = tree.field("url").map_or(tree.span, |node| node.span);
        reader.problem_help(
            Code::NotOneOf,
            span,
            format!("`url` is `{url}`, which is not an address"),
            "write an address that begins with `https://` or `http://`",
        );
    }
    let transport = reader.one_of(tree, "transport", TRANSPORTS);
    let streaming = reader.truth(tree, "streaming").unwrap_or(true);
    let polling = reader.truth(tree, "polling").unwrap_or(false);
    let modes = reader.texts(tree, "accepted_output_modes").unwrap_or_default();
    let headers = reader.secrets(tree, "headers");
    let auth = reader.secrets(tree, "auth");
    let relative_card_path = reader.words(tree, "relative_card_path");
    let timeout = reader.seconds(tree, "request_timeout_seconds");
    Some(CardKind::A2a(A2aCard {
        url: url?,
        transport: transport.unwrap_or(A2aTransport::JsonRpc),
        streaming,
        polling,
        accepted_output_modes: modes.into_iter().map(|(mode, _)| mode).collect(),
        headers,
        auth,
        relative_card_path,
        request_timeout: timeout.unwrap_or(Duration::from_secs(120)),
    }))
}
