//! What the documents point to is there. Their code is compiled and run by the doc tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is part of the repository");
    entries.map(|entry| entry.expect("the folder can be read").path()).collect()
}

fn guide() -> Vec<PathBuf> {
    let mut pages: Vec<_> = files("docs")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let tops = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let pages = tops.iter().map(|name| root().join(name)).chain(guide());
    let mut dead = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let path = link.split('#').next().unwrap_or(link);
            if !page.parent().unwrap().join(path).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_page_of_the_guide_is_a_doc_test_and_in_the_readme() {
    // A page is tested in the crate whose code it shows.
    let crates = ["tenure", "tenure-flow", "tenure-hosts", "tenure-models", "tenure-store"];
    let lib = |name| fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).unwrap();
    let tested: String = crates.iter().map(lib).collect();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for page in guide() {
        let name = format!("docs/{}", page.file_name().unwrap().to_string_lossy());
        assert!(tested.contains(&name), "{name} is in no module `guide`");
        assert!(readme.contains(&name), "the README has no link to {name}");
    }
}

#[test]
fn the_code_map_has_every_module_and_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let names = |folder: &str| -> BTreeSet<String> {
        files(folder)
            .into_iter()
            .filter(|path| path.is_dir() || path.extension().is_some_and(|it| it == "rs"))
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() { format!("`{name}/`") } else { format!("`{name}`") }
            })
            .collect()
    };
    let mapped = [
        "tenure-core",
        "tenure-hosts",
        "tenure-cards",
        "tenure-flow",
        "tenure-store",
        "tenure-cli",
    ];
    for module in mapped.iter().flat_map(|krate| names(&format!("crates/{krate}/src"))) {
        let root = ["`lib.rs`", "`main.rs`"].contains(&module.as_str());
        assert!(root || map.contains(&module), "{module} is not in the code map");
    }
    for krate in names("crates") {
        let krate = krate.replace('/', "");
        let path = krate.replace('`', "");
        let mapped = map.contains(&krate) || map.contains(&format!("`crates/{path}`"));
        assert!(mapped, "{krate} is not in the code map");
    }
}

#[test]
fn the_tests_that_prove_the_guarantees_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = text.split('`').filter(|word| {
        (word.starts_with("guarantees/") || word.starts_with("semantics/")) && word.ends_with(".rs")
    });
    let missing: Vec<_> =
        named.filter(|file| !root().join("crates/tenure-core/tests").join(file).exists()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// The names of one design that Tenure grew out of, and how a reader who knows them finds their way.
struct Design {
    /// Its section in docs/migrating.md.
    section: &'static str,
    /// Public items that have the name, but for case and underscores, as the search of rustdoc has it.
    kept: &'static str,
    /// Names that are a doc alias of an item, and a row of the section.
    renamed: &'static str,
    /// Names without an item: a row of the section says what there is in their place.
    told: &'static str,
}

const DESIGNS: [Design; 5] = [
    Design {
        section: "### Agent lifecycle hooks, as fast-agent planned them",
        kept: "AgentConfig lifecycle_hooks tool_hooks on_start on_shutdown agent context config \
               hook_type agent_name has_context name shutdown spawn_detached_instance",
        renamed: "AgentLifecycleContext HookContext AgentProtocol Context LifecycleHookFunction \
                  HookFunction load_hook_function lifecycle_hook_loader agent_card_loader \
                  AgentLifecycleHooks VALID_LIFECYCLE_HOOK_TYPES LlmDecorator McpAgent \
                  initialize initialized AgentConfigError agent_id PassthroughLLM",
        told: "_run_lifecycle_hook _lifecycle_hooks _initialized id(ctx.agent)",
    },
    Design {
        section: "### The agent lifecycle contract of cugar-agent",
        kept: "AgentState UNINITIALIZED INITIALIZING READY BUSY PAUSED ERROR SHUTTING_DOWN \
               TERMINATED AgentLifecycleProtocol startup shutdown owns_state set_state pause \
               resume StateOwnership AGENT MEMORY ORCHESTRATOR LifecycleConfig retry_on_failure \
               max_retries cleanup_on_error state_persistence LifecycleMetrics ManagedAgent \
               _do_startup _do_shutdown requires_state agent_lifecycle ExecutionContext trace_id \
               orchestrate target load update flush register deregister",
        renamed: "get_state get_metrics timeout_seconds process StartupError StateViolationError \
                  FatalError RecoverableError _agent_state _memory_dirty persist emit emitter \
                  agent.startup OrchestratorProtocol CoordinatorAgent PlannerAgent WorkerAgent \
                  make_routing_decision get_lifecycle initialize teardown LifecycleStage \
                  ErrorPropagation with_user_intent parent_context to_thread \
                  test_lifecycle_compliance test_state_ownership test_resource_cleanup \
                  test_startup_failure_cleanup",
        told: "__init__ _config _state _do_process _do_work ShutdownError history embeddings \
               routing user_history connection.close task.cancel os.remove _get_agent",
    },
    Design {
        section: "### Lifecycle hooks in Rust, as Patinox decided on them",
        kept: "AgentLifecycle before_agent before_model wrap_model_call after_model \
               wrap_tool_call after_agent with_lifecycle HookAction Continue Approve Reject \
               Modify Agent AgentConfig Tool Message run config tools messages name arguments \
               Text",
        renamed: "LLMProvider provider complete ProviderResponse ToolCalls ProviderResult \
                  execute ToolResult call_with_model_wrapper call_with_tool_wrapper \
                  max_iterations iteration tool_defs system_prompt HITL bicameral MAPE-K",
        told: "lifecycle FnOnce user_message tool_result_message",
    },
    Design {
        section: "### Phase transition hooks of AutoByteus",
        kept: "BOOTSTRAPPING IDLE AgentConfig phase_hooks execute",
        renamed: "AgentOperationalPhase SHUTDOWN_COMPLETE INITIALIZING_PROMPT BasePhaseHook \
                  source_phase target_phase old_phase new_phase get_name get_order \
                  AgentPhaseManager _transition_phase EventType \
                  AGENT_PHASE_BOOTSTRAPPING_STARTED AGENT_PHASE_IDLE_ENTERED",
        told: "queue_init prompt_processing is_mandatory",
    },
    Design {
        section: "### Lifecycle tools of Mozaiks",
        kept: "trigger agent file function description before_chat after_chat before_agent \
               after_agent context_variables ContextVariables workflow_name app_id chat_id \
               user_id concept_overview schema_overview",
        renamed: "lifecycle_tools LifecycleToolManager data CONTEXT_AWARE lifecycle.tool_call \
                  lifecycle.tool_result lifecycle.tool_error log_workflow_start \
                  log_workflow_completion run_workflow_orchestration SelectSpeakerEvent \
                  InputRequestEvent",
        told: "tools.json context_variables.json status elapsed_ms result \
               logs/workflow_lifecycle.py _stream_events select_speaker",
    },
];

#[test]
fn every_name_of_the_designs_leads_to_an_item_or_a_row_of_the_guide() {
    let sources = sources();
    let items: BTreeSet<_> = sources.iter().flat_map(|text| items(text)).map(folded).collect();
    let aliases: BTreeSet<_> = sources.iter().flat_map(|text| aliases(text)).collect();
    let guide = fs::read_to_string(root().join("docs/migrating.md")).unwrap();
    let mut lost = Vec::new();
    for design in &DESIGNS {
        let (_, after) = guide.split_once(design.section).expect("the guide has the section");
        let section = after.split("\n##").next().unwrap_or(after);
        let olds: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("| ")).collect();
        let has_row = |name: &str| {
            olds.iter().any(|row| mentions(row.split(" | ").next().unwrap_or(row), name))
        };
        let mut expect = |name: &str, there: bool, what: &str| {
            if !there {
                lost.push(format!("{name}: no {what} ({})", design.section));
            }
        };
        for name in design.kept.split_whitespace() {
            expect(name, items.contains(&folded(name)), "public item");
            expect(name, mentions(section, name), "word in the guide");
        }
        for name in design.renamed.split_whitespace() {
            expect(name, aliases.contains(name), "doc alias");
            expect(name, has_row(name), "row in the guide");
        }
        for name in design.told.split_whitespace() {
            expect(name, has_row(name), "row in the guide");
        }
    }
    assert_eq!(lost, Vec::<String>::new());
}

/// The text of every source file of the crates.
fn sources() -> Vec<String> {
    let mut folders: Vec<_> = files("crates").into_iter().map(|krate| krate.join("src")).collect();
    folders.retain(|folder| folder.is_dir());
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is part of the repository") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).expect("a source file can be read"));
            }
        }
    }
    texts
}

/// The names of the public items of a file: also fields, methods of public traits and variants of
/// public enums, which rustfmt indents by one step.
fn items(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.starts_with(|c: char| c.is_alphabetic() || c == '}') {
            open = line.starts_with("pub trait ") || line.starts_with("pub enum ");
        }
        let member = line.strip_prefix("    ").filter(|_| open);
        let Some(mut rest) = line.trim_start().strip_prefix("pub ").or(member) else { continue };
        let keywords =
            ["async ", "const ", "unsafe ", "fn ", "struct ", "enum ", "trait ", "type "];
        while let Some(shorter) = keywords.iter().find_map(|word| rest.strip_prefix(word)) {
            rest = shorter;
        }
        let end = rest.find(|c: char| !is_part_of_a_name(c)).unwrap_or(rest.len());
        names.extend(Some(&rest[..end]).filter(|name| !name.is_empty()));
    }
    names
}

fn aliases(text: &str) -> impl Iterator<Item = &str> {
    let attributes = text.split("#[doc(alias = \"").skip(1);
    attributes.filter_map(|rest| rest.split('"').next())
}

fn folded(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_part_of_a_name) && !after.is_some_and(is_part_of_a_name)
    })
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
