//! What the context variables of a workflow need of the machine.

use crate::file::LoadedWorkflow;
use crate::variables::Source;
use tenure_cards::diagnostic::{Code, Diagnostic, Report};
use tenure_cards::source::Span;

/// The environment variables that no chat of the workflow can start without, and that are not set
/// here. Those of the workflows that it names are not among them: those may never be needed.
pub fn unset_variables(loaded: &LoadedWorkflow) -> Report {
    let file = &loaded.workflow;
    let is_of_variables =
        |path: &std::path::Path| path.file_stem().is_some_and(|stem| stem == "context_variables");
    let source = file.sources.iter().find(|(path, _)| is_of_variables(path));
    let source = source.map_or(&file.orchestrator.source, |(_, source)| source);
    let mut unset = Report::new();
    for definition in &file.variables.definitions {
        let Source::Config(config) = &definition.source else { continue };
        let is_needed = config.required && config.default.is_none();
        if !is_needed || loaded.cards.environ().value(&config.env_var).is_some() {
            continue;
        }
        let (name, env_var) = (&definition.name, &config.env_var);
        let at = source.text().find(env_var.as_str());
        let span = at.map_or(Span::at(0), |at| Span::new(at, at + env_var.len()));
        let message = format!(
            "the context variable `{name}` needs the environment variable {env_var}, which is not set"
        );
        let help = format!("export {env_var}=…, or give the variable a `default`");
        unset.push(Diagnostic::new(Code::UnsetVariable, source, span, message).help(help));
    }
    unset
}
