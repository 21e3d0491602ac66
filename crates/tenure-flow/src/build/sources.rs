//! The files that a workflow comes from.

use crate::file::LoadedWorkflow;
use crate::lifecycle::Run;
use crate::variables::Source;
use tenure_cards::sources::Sources;

/// The files that a workflow comes from, with those of its agents and of the workflows that it
/// names. Executes nothing.
pub fn sources(loaded: &LoadedWorkflow) -> Sources {
    let mut found = Sources::of(&loaded.cards);
    let file = &loaded.workflow;
    for (path, _) in &file.sources {
        found.insert(path);
    }
    let functions = file
        .lifecycle
        .iter()
        .filter_map(|tool| match &tool.run {
            Run::Python(function) => Some(function),
            _ => None,
        })
        .chain(file.message_hooks.iter().map(|hook| &hook.function))
        .chain(file.tools.iter().map(|entry| &entry.tool.function));
    for function in functions {
        found.insert(function.file.path());
    }
    found.insert(loaded.cards.project.root.join(crate::file::PLATFORM));
    for definition in &file.variables.definitions {
        if let Source::File(source) = &definition.source {
            let there = source.located(&loaded.cards.project.root, &file.dir);
            found.insert(there.unwrap_or(file.dir.join(&source.path)));
        }
    }
    let context = &loaded.cards.project.config.context;
    for path in [&context.concept_overview, &context.schema_overview].into_iter().flatten() {
        found.insert(path);
    }
    for nested in &loaded.nested {
        found.extend(sources(nested));
    }
    found
}
