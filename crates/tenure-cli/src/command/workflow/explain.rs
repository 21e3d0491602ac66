//! `tenure explain` of a workflow (G12): how speakers are chosen, and what is called when.

use super::super::explain::{confinement_of, points, text as agent_text};
use super::OpenedWorkflow;
use crate::args::Explain;
use crate::exit::{Exit, Stop};
use crate::terminal::sink::print_document;
use crate::terminal::style::{BOLD, CALM, DIM, paint};
use crate::terminal::text::{exact, plural};
use anyhow::Result;
use std::path::Path;
use tenure_cards::team::Explanation;
use tenure_core::hook::Point;
use tenure_flow::{
    HandoffExplanation, SpeakerExplanation, VariableExplanation, Workflow, WorkflowExplanation,
    WorkflowInspection,
};

/// The name of the person among the agents. No agent can have it.
const PERSON: &str = "user";

/// Explains the workflow at `path`, and those that it names.
pub(crate) fn explain(args: &Explain, path: &Path, point: Option<Point>) -> Result<Exit> {
    let opened = OpenedWorkflow::at(path);
    if !opened.complain() {
        return Ok(Exit::Check);
    }
    let confinement = confinement_of(&opened.loaded.cards.project.config.sandbox);
    let mut all = Vec::new();
    flatten(Workflow::builder(opened.loaded).inspect(), &mut all);
    if let Some(name) = &args.agent {
        only_agent(&mut all, name)?;
    }
    if let Some(point) = point {
        all.iter_mut().for_each(|it| only_point(it, point.as_str()));
    }
    if args.json {
        print_document(serde_json::to_value(&all)?)?;
    } else {
        let of_agent = args.agent.is_some();
        let texts = all.iter().map(|it| text(it, of_agent));
        let texts: Vec<_> = confinement.into_iter().chain(texts).collect();
        super::super::say(&texts.join("\n"))?;
    }
    Ok(Exit::Ok)
}

/// A workflow and those that it names, each once.
fn flatten(inspection: WorkflowInspection, all: &mut Vec<WorkflowExplanation>) {
    if all.iter().any(|it| it.file == inspection.workflow.file) {
        return;
    }
    all.push(inspection.workflow);
    for nested in inspection.nested {
        flatten(nested, all);
    }
}

fn only_agent(all: &mut Vec<WorkflowExplanation>, name: &str) -> Result<()> {
    let names = |it: &WorkflowExplanation| {
        let speakers = it.agents.iter().map(|agent| agent.name.clone());
        speakers.chain(it.others.iter().map(|agent| agent.agent.clone())).collect::<Vec<_>>()
    };
    let there: Vec<String> = all.iter().flat_map(names).collect();
    if !there.iter().any(|it| it == name) {
        let there = there.join(", ");
        return Err(Stop::usage(format!("there is no agent `{name}`; there are: {there}")).into());
    }
    for it in all.iter_mut() {
        it.agents.retain(|agent| agent.name == name);
        it.others.retain(|agent| agent.agent == name);
    }
    all.retain(|it| !it.agents.is_empty() || !it.others.is_empty());
    Ok(())
}

fn only_point(it: &mut WorkflowExplanation, point: &str) {
    it.points.retain(|it| it.point == point);
    let speakers = it.agents.iter_mut().filter_map(|speaker| speaker.agent.as_mut());
    for agent in speakers.chain(&mut it.others) {
        agent.points.retain(|it| it.point == point);
    }
}

/// One workflow, for people; of one agent only that.
fn text(it: &WorkflowExplanation, of_agent: bool) -> String {
    let mut text = String::new();
    if !of_agent {
        text.push_str(&head(it));
        text.push_str(&points(&it.points));
        text.push('\n');
    }
    let speakers = it.agents.iter().map(speaker_text);
    let others = it.others.iter().map(|agent| match &*agent.agent {
        PERSON => person_text(agent),
        _ => agent_text(agent),
    });
    text.push_str(&speakers.chain(others).collect::<Vec<_>>().join("\n"));
    text
}

fn head(it: &WorkflowExplanation) -> String {
    let name = paint(BOLD, exact(&it.workflow));
    let mut text =
        format!("{name}  {}\n", paint(DIM, format_args!("workflow  {}", exact(&it.file))));
    let mut about = vec![it.pattern.clone(), format!("{:?}", it.startup_mode)];
    about.extend(it.initial_agent.as_ref().map(|agent| format!("{agent} begins")));
    about.push(format!("at most {}", plural(it.max_turns, "turn")));
    about.push(format!("failures {}", it.error_strategy));
    if it.human_in_the_loop {
        about.push("a person takes part".to_owned());
    }
    text.push_str(&format!("  {}\n", paint(DIM, exact(&about.join(" · ")))));
    if !it.handoffs.is_empty() {
        text.push_str(&format!("  {}\n", paint(CALM, "handoffs")));
        let rows: Vec<_> = it.handoffs.iter().map(|rule| handoff(rule, &it.handoffs)).collect();
        let width = rows.iter().map(|(who, _)| who.chars().count()).max().unwrap_or(0).min(48);
        let wide = rows.iter().map(|(_, when)| when.chars().count()).max().unwrap_or(0).min(48);
        for ((who, when), rule) in rows.into_iter().zip(&it.handoffs) {
            let line = match &rule.declared {
                Some(place) => format!("{when:<wide$}  at {}", exact(place)),
                None => when,
            };
            text.push_str(&format!("       {who:<width$}  {}\n", paint(DIM, line)));
        }
    }
    if !it.variables.is_empty() {
        text.push_str(&format!("  {}\n", paint(CALM, "variables")));
        let width = it.variables.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        for variable in &it.variables {
            let (name, what) = (exact(&variable.name), paint(DIM, of_variable(variable)));
            text.push_str(&format!("       {name:<width$}  {what}\n"));
        }
    }
    for journey in &it.journeys {
        let children = journey.workflow.as_deref().unwrap_or("this workflow");
        let line = format!(
            "journey {}: after {}, chats of {children}, then {}",
            journey.id, journey.trigger_agent, journey.resume_agent
        );
        text.push_str(&format!("  {}\n", paint(DIM, exact(&line))));
    }
    text
}

/// Who takes over from whom, and when.
fn handoff(it: &HandoffExplanation, all: &[HandoffExplanation]) -> (String, String) {
    let is_alone = !all.iter().any(|rule| rule.source == it.source && rule.condition.is_some());
    let when = match (it.kind, &it.condition) {
        ("string_llm", Some(condition)) => format!("if a model says: {condition}"),
        (_, Some(condition)) if it.pre => format!("if {condition}, before it replies"),
        (_, Some(condition)) => format!("if {condition}"),
        (_, None) if is_alone => "after its turn".to_owned(),
        (_, None) => "otherwise".to_owned(),
    };
    (exact(&format!("{} -> {}", it.source, it.target)), exact(&when))
}

fn of_variable(it: &VariableExplanation) -> String {
    let mut about = vec![it.kind.clone(), it.source.to_owned()];
    if !it.agents.is_empty() {
        about.push(format!("told to {}", it.agents.join(", ")));
    }
    exact(&about.join(" · "))
}

/// Whose turn it is when a person speaks.
fn person_text(it: &Explanation) -> String {
    let name = paint(BOLD, exact(&it.agent));
    let about = "a person has the turn · what an answer takes counts for no limit";
    format!("{name}  {}\n  {}\n{}", paint(DIM, "the person"), paint(DIM, about), points(&it.points))
}

fn speaker_text(it: &SpeakerExplanation) -> String {
    let mut about = Vec::new();
    if it.hidden {
        about.push("what it says is not shown".to_owned());
    }
    about.extend(it.output.as_ref().map(|output| format!("answers with {output}")));
    if !it.variables.is_empty() {
        about.push(format!("knows {}", it.variables.join(", ")));
    }
    let about = match about.is_empty() {
        true => String::new(),
        false => format!("  {}\n", paint(DIM, exact(&about.join(" · ")))),
    };
    match (&it.agent, &it.workflow) {
        (Some(agent), _) => {
            let text = agent_text(agent);
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            format!("{first}\n{about}{rest}")
        }
        (None, Some(workflow)) => {
            let name = paint(BOLD, exact(&it.name));
            let line = format!("the workflow {}", exact(workflow));
            format!("{name}  {}\n{about}", paint(DIM, line))
        }
        (None, None) => format!("{}\n{about}", paint(BOLD, exact(&it.name))),
    }
}
