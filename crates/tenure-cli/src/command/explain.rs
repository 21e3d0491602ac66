//! `tenure explain` (G12).

use super::project::Opened;
use super::workflow::{self, Meant, meant};
use crate::args::Explain;
use crate::exit::{Exit, Stop};
use crate::terminal::sink::print_document;
use crate::terminal::size::columns;
use crate::terminal::style::{BOLD, CALM, DIM, WARN, paint};
use crate::terminal::text::{columns_of, exact, human, wrap};
use anstyle::Style;
use anyhow::Result;
use tenure_cards::sandbox::SandboxSettings;
use tenure_cards::team::{
    EntryExplanation, Explanation, ModelExplanation, PointExplanation, ServerExplanation, Team,
};
use tenure_core::hook::{Limit, Origin, Point, Policy};
use tenure_core::tool::Effect;

/// The hook that asks the person in a workflow.
const ASKS_PERSON: &str = "ask_person";

pub(super) fn run(args: &Explain) -> Result<Exit> {
    let point = args.point.as_deref().map(str::parse::<Point>).transpose();
    let point = point.map_err(|error| Stop::usage(error.to_string()))?;
    let has_cards = || Opened::at(&args.path).is_ok_and(|opened| opened.has_cards());
    if let Meant::Workflow(path) = meant(&args.path, None, has_cards)? {
        return workflow::explain(args, &path, point);
    }
    let opened = Opened::at(&args.path)?;
    if !opened.complain() {
        return Ok(Exit::Check);
    }
    if let Some(name) = &args.agent
        && opened.loaded.card(name).is_none()
    {
        return Err(opened.no_agent(name));
    }
    let confinement = confinement_of(&opened.loaded.project.config.sandbox);
    let mut agents = Team::builder(opened.loaded).inspect().agents;
    if let Some(name) = &args.agent {
        agents.retain(|agent| agent.agent == *name);
    }
    if let Some(point) = point {
        for agent in &mut agents {
            agent.points.retain(|it| it.point == point.as_str());
        }
    }
    if args.json {
        print_document(serde_json::to_value(&agents)?)?;
    } else {
        let texts: Vec<_> = confinement.into_iter().chain(agents.iter().map(text)).collect();
        super::say(&texts.join("\n"))?;
    }
    Ok(Exit::Ok)
}

/// One agent, for people.
pub(super) fn text(agent: &Explanation) -> String {
    let name = paint(BOLD, exact(&agent.agent));
    let head = format!("{}  {}", exact(&agent.kind), exact(&agent.file));
    let mut text = format!("{name}  {}\n", paint(DIM, head));
    let mut about = vec![format!("model {}", model_of(agent))];
    if !agent.tools.is_empty() {
        let tools: Vec<_> = agent.tools.iter().map(|tool| tool_of(agent, tool)).collect();
        about.push(format!("tools {}", tools.join(", ")));
    }
    about.push(format!("at most {} model calls", agent.max_steps));
    text.push_str(&dimmed(&about.join(" · "), 2));
    for server in &agent.servers {
        text.push_str(&dimmed(&server_line(server), 2));
    }
    text.push_str(&points(&agent.points));
    text
}

/// Returns the confinement of every process of a project, if its configuration says anything of that.
pub(super) fn confinement_of(settings: &SandboxSettings) -> Option<String> {
    let grant = Some(settings.grant.to_string()).filter(|grant| !grant.is_empty());
    let processes = settings.processes.map(|most| format!("at most {most} processes"));
    let memory = settings.memory_mib.map(|most| format!("at most {most} MiB of memory each"));
    let said: Vec<String> = [grant, processes, memory].into_iter().flatten().collect();
    let line = format!("sandbox of every process: {}", said.join(", "));
    (!said.is_empty()).then(|| dimmed(&line, 0))
}

/// Foreign text in lines that fit on the terminal, if there is one.
fn dimmed(text: &str, indent: usize) -> String {
    let room = columns().map_or(usize::MAX, |columns| columns.saturating_sub(indent));
    let lines = wrap(&exact(text), room);
    lines.iter().map(|line| format!("{:indent$}{}\n", "", paint(DIM, line))).collect()
}

/// A tool, with what a crash means for a call of it and with its confinement, if these are said.
fn tool_of(agent: &Explanation, tool: &str) -> String {
    let effect = agent.effects.get(tool).filter(|effect| **effect != Effect::default());
    let sandbox = agent.sandboxes.get(tool).map(|sandbox| format!("sandbox {sandbox}"));
    let said = effect.map(|effect| effect.as_str().to_owned()).into_iter().chain(sandbox);
    match said.collect::<Vec<_>>() {
        said if said.is_empty() => tool.to_owned(),
        said => format!("{tool} ({})", said.join(", ")),
    }
}

/// What is called at each point, for people.
pub(super) fn points(points: &[PointExplanation]) -> String {
    if points.is_empty() {
        return "  no hooks\n".to_owned();
    }
    let mut text = String::new();
    let rows: Vec<Vec<[String; 4]>> =
        points.iter().map(|point| point.entries.iter().map(row).collect()).collect();
    let columns = Columns::of(&rows);
    for (point, rows) in points.iter().zip(&rows) {
        text.push_str(&format!("  {}", paint(CALM, point.point)));
        if let Some(order) = order_of(point.point, point.entries.len()) {
            text.push_str(&format!("  {}", paint(DIM, order)));
        }
        text.push('\n');
        for (at, (row, entry)) in rows.iter().zip(&point.entries).enumerate() {
            let style = if entry.policy == Policy::Deny { WARN } else { DIM };
            text.push_str(&columns.line(at + 1, row, style));
        }
    }
    text
}

/// The columns of a list of hooks.
struct Columns {
    name: usize,
    runs: usize,
    policy: usize,
    /// The columns of the terminal, if a row is too long for it.
    narrow: Option<usize>,
}

impl Columns {
    fn of(rows: &[Vec<[String; 4]>]) -> Self {
        let widest = |column: usize| {
            let cells = rows.iter().flatten().map(|row| columns_of(&row[column]));
            cells.max().unwrap_or(0).min(48)
        };
        let own = Self { name: widest(0), runs: widest(1), policy: widest(2), narrow: None };
        let mut lines = rows.iter().flatten().map(|row| columns_of(&own.line(1, row, DIM)));
        let narrow = columns().filter(|room| lines.any(|line| line > *room));
        Self { narrow, ..own }
    }

    /// A row: on one line, or with what it runs and the rest beneath one another.
    fn line(&self, number: usize, row: &[String; 4], style: Style) -> String {
        let [name, runs, policy, rest] = row;
        let width = if runs.is_empty() && self.narrow.is_some() { 0 } else { self.policy };
        let policy = paint(style, format_args!("{policy:<width$}"));
        let head = format!("  {number:>3}  {name:<0$}  ", self.name);
        let Some(room) = self.narrow else {
            let line = format!("{head}{runs:<0$}  {policy}  {rest}", self.runs);
            return format!("{}\n", line.trim_end());
        };
        let indent = columns_of(&head).min(room / 3);
        let mut text = format!("{head}{policy}");
        let mut below = vec![rest];
        // What runs stands beside the policy if it has room there.
        match columns_of(&text) + 2 + columns_of(runs) <= room {
            true => text.push_str(&format!("  {runs}")),
            false => below.insert(0, runs),
        }
        let mut text = format!("{}\n", text.trim_end());
        for line in below.into_iter().flat_map(|said| wrap(said, room - indent)) {
            text.push_str(&format!("{:indent$}{}\n", "", paint(DIM, line)));
        }
        text
    }
}

/// The model as it is named, and where it is.
fn model_of(agent: &Explanation) -> String {
    let Some(remote) = &agent.remote else { return agent.model.clone() };
    let ModelExplanation { provider, model, host, key, host_by_project, .. } = remote;
    let by = if *host_by_project { ", which the project chose" } else { "" };
    format!("{} ({provider} {model} at {host}{by}, key {key})", agent.model)
}

/// A server, and what is taken of it.
fn server_line(server: &ServerExplanation) -> String {
    let taken =
        [("tools", &server.tools), ("resources", &server.resources), ("prompts", &server.prompts)];
    let taken = taken.into_iter().filter_map(|(what, names)| {
        let names = names.as_ref()?;
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Some(format!(" · {what} {names}"))
    });
    let sandbox = server.sandbox.iter().map(|sandbox| format!(" · sandbox {sandbox}"));
    let more: String = taken.chain(sandbox).collect();
    format!("server {}: {}{more}", server.name, server.runs)
}

/// Name, what runs, policy, and the rest.
fn row(entry: &EntryExplanation) -> [String; 4] {
    let limit = Limit::new(entry.limit).map_or_else(|_| human(entry.limit), |it| it.to_string());
    let mut rest = match (&*entry.name, entry.origin) {
        // Its limit is for everything else.
        (ASKS_PERSON, Origin::Platform) => vec!["waits for as long as it takes".to_owned()],
        _ if entry.within_budget => {
            vec![format!("limit {limit} or what is left of a startup or shutdown")]
        }
        _ => vec![format!("limit {limit}")],
    };
    if let Some(description) = &entry.description {
        rest.insert(0, description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(transition) = &entry.transition {
        rest.push(format!("on {transition}"));
    }
    if let Some(when) = &entry.when {
        rest.push(format!("when {when}"));
    }
    if entry.retries > 0 {
        rest.push(format!("retries {}", entry.retries));
    }
    if entry.observes {
        rest.push("only observes".to_owned());
    }
    if entry.again_on_resume {
        rest.push("again on resume".to_owned());
    }
    if !entry.writes.is_empty() {
        rest.push(format!("writes {}", entry.writes.join(", ")));
    }
    if let Some(sandbox) = &entry.sandbox {
        rest.push(format!("sandbox {sandbox}"));
    }
    if let Some(parent) = &entry.inherited {
        rest.push(format!("guard of {parent}, when it calls this agent"));
    }
    match (&entry.declared, entry.origin) {
        (Some(declared), _) => rest.push(format!("at {declared}")),
        (None, Origin::Platform) => rest.push("built in".to_owned()),
        (None, _) => {}
    }
    // A hook without a name of its own is called what it runs; that need not be said twice.
    let runs = if entry.runs == entry.name { "" } else { &entry.runs };
    [exact(&entry.name), exact(runs), entry.policy.as_str().to_owned(), exact(&rest.join(" · "))]
}

/// What the order of several entries means.
fn order_of(point: &str, entries: usize) -> Option<&'static str> {
    match point {
        _ if entries < 2 => None,
        "wrap_model_call" | "wrap_tool_call" => Some("the first is outermost"),
        _ => Some("in this order"),
    }
}
