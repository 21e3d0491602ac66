//! Good folders, of every generation: what was written is what is read.

use crate::loading::support::{Project, here, options};
use serde_json::json;
use std::time::Duration;
use tenure_cards::Code;
use tenure_cards::card::{CardKind, Environ};
use tenure_flow::contract::ErrorStrategy;
use tenure_flow::file::{AgentKind, ToolType, UiMode};
use tenure_flow::journey::{MergeMode, OnPartialFailure, SpawnMode};
use tenure_flow::lifecycle::{Run, Trigger};
use tenure_flow::output::FieldType;
use tenure_flow::route::handoff::{HandoffKind, Scope, Source as From};
use tenure_flow::route::{Pattern, Target};
use tenure_flow::variables::{Source, Trigger as Change};
use tenure_flow::{LoadedWorkflow, StartupMode, Workflow, is_workflow, load, workflows_of};

fn good(text: &str) -> (Project, LoadedWorkflow) {
    let project = Project::with(text);
    let loaded = project.load();
    assert!(!loaded.report.has_errors(), "{}", project.report(&loaded));
    (project, loaded)
}

fn full() -> (Project, LoadedWorkflow) {
    good(&std::fs::read_to_string(here().join("good/full_json.txt")).expect("it is there"))
}

#[test]
fn the_orchestrator_says_how_a_chat_goes() {
    let (project, loaded) = full();
    assert_eq!(project.report(&loaded), "");
    let file = &loaded.workflow.orchestrator;
    assert_eq!(&*loaded.workflow.name, "Full");
    assert_eq!(file.max_turns, 12);
    assert!(file.human_in_the_loop);
    assert_eq!(file.startup_mode, StartupMode::UserDriven);
    assert_eq!(file.pattern, Pattern::Default);
    assert_eq!(file.initial_message, None);
    assert_eq!(file.initial_message_to_user.as_deref(), Some("Hello 🚀"));
    assert_eq!(file.initial_agent.as_deref(), Some("Planner"));
    let backoff = Duration::from_millis(250);
    assert_eq!(file.error_strategy, ErrorStrategy::Retry { attempts: 2, backoff });
    assert_eq!(file.seed, 7);
    assert_eq!(file.selector_model.as_deref(), Some("passthrough"));
    assert_eq!(&*file.hooks.declared[0].name, "open");
    assert_eq!(loaded.workflow.sources.len(), 9);
}

#[test]
fn agents_become_cards_and_can_point_to_cards_and_workflows() {
    let (_project, loaded) = full();
    let names: Vec<&str> = loaded.workflow.agents.iter().map(|agent| &*agent.name).collect();
    assert_eq!(names, ["Planner", "Writer", "Critic", "scribe", "Inner"]);
    let planner = loaded.workflow.agent("Planner").expect("it is there");
    assert!(planner.auto_tool_mode);
    assert_eq!(planner.output.as_deref(), Some("Plan"));
    assert_eq!(planner.max_consecutive_auto_reply, Some(20));
    let told = |name: &str| loaded.cards.card(name).and_then(|card| card.instruction.clone());
    assert_eq!(told("Planner").as_deref(), Some("[ROLE]\nYou plan.\n\nSay NEXT."));
    assert_eq!(told("Writer").as_deref(), Some("[ROLE]\nYou write."));
    assert_eq!(told("Critic").as_deref(), Some("You judge."));
    assert_eq!(told("scribe").as_deref(), Some("You write it down."));
    let kind = |name: &str| loaded.workflow.agent(name).map(|agent| agent.kind.clone());
    assert_eq!(kind("scribe"), Some(AgentKind::Card("scribe".into())));
    assert_eq!(kind("Inner"), Some(AgentKind::Workflow("Other".into())));
    assert_eq!(loaded.nested.len(), 1);
    let other = loaded.nested("Other").expect("it is there");
    assert_eq!(other.workflow.orchestrator.pattern, Pattern::RoundRobin);
    assert_eq!(loaded.cards.card("Writer").map(|card| card.hooks.declared.len()), Some(1));
}

#[test]
fn tools_belong_to_the_cards_of_their_agents_and_injected_parameters_to_no_model() {
    let (_project, loaded) = full();
    let tools = |name: &str| match &loaded.cards.card(name).expect("it is there").kind {
        CardKind::Agent(card) => {
            card.function_tools.iter().map(|it| it.spec.clone()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let spec = &tools("Writer")[0];
    assert_eq!((&*spec.name, &*spec.description), ("look_up", "Finds it."));
    assert_eq!(spec.parameters["required"], json!(["query"]));
    assert_eq!(spec.parameters["properties"].as_object().map(|it| it.len()), Some(1));
    assert_eq!(tools("Critic").len(), 1);
    assert!(tools("Planner").is_empty(), "auto_tool_mode leaves the model no tools");
    let [first, second] = loaded.workflow.tools.as_slice() else { panic!("two tools") };
    assert_eq!(first.tool_type, ToolType::Agent);
    assert!(!first.auto_invoke && second.auto_invoke);
    let ToolType::Ui(ui) = &second.tool_type else { panic!("a tool that people see") };
    assert_eq!((ui.component.as_deref(), ui.mode), (Some("PlanCard"), Some(UiMode::Artifact)));
    assert_eq!(
        &*loaded.workflow.hidden().map(|it| &**it).collect::<Vec<_>>().join(" "),
        "Planner Critic scribe Inner"
    );
}

#[test]
fn lifecycle_tools_are_in_the_order_in_which_they_run() {
    let (_project, loaded) = full();
    let tools = &loaded.workflow.lifecycle;
    let of = |trigger: Trigger| -> Vec<&str> {
        tools.iter().filter(|it| it.trigger == trigger).map(|it| &*it.name).collect()
    };
    assert_eq!(of(Trigger::BeforeChat), ["first", "start"]);
    assert_eq!(of(Trigger::AfterChat), ["start#2"]);
    assert_eq!(of(Trigger::BeforeAgent), ["nothing_taken", "stop"]);
    assert_eq!(of(Trigger::AfterAgent), ["audit"]);
    let named = |name: &str| tools.iter().find(|it| &*it.name == name).expect("it is there");
    let Run::Python(start) = &named("start").run else { panic!("a function") };
    assert_eq!(start.takes.iter().map(|it| &**it).collect::<Vec<_>>(), ["context_variables"]);
    assert_eq!((&*named("start").file, &*named("start").function), ("helpers.py", "start"));
    let Run::Python(nothing) = &named("nothing_taken").run else { panic!("a function") };
    assert!(nothing.takes.is_empty());
    assert_eq!(named("nothing_taken").retries, 2);
    assert!(matches!(&named("first").run, Run::Command { argv, .. } if argv == &["true"]));
    assert!(matches!(&named("audit").run, Run::Use { with, .. } if with == &json!({"level": 2})));
    assert_eq!(named("audit").when.as_deref(), Some("outcome == 'ok'"));
    assert_eq!(named("stop").agent.as_deref(), Some("user"));
    let declared = named("start").declared.as_deref().expect("it is declared somewhere");
    assert!(declared.ends_with("tools.json:9"), "{declared}");
}

#[test]
fn handoffs_are_read_with_their_aliases_and_the_rule_for_conditions() {
    let (_project, loaded) = full();
    let rules = &loaded.workflow.handoffs;
    assert_eq!(rules[0].source, From::User);
    assert_eq!(rules[0].kind, HandoffKind::After);
    assert!(matches!(&rules[1].kind,
        HandoffKind::Expression { scope: Scope::Pre, condition } if condition.text() == "${planned} == True"));
    assert!(matches!(&rules[2].kind, HandoffKind::Model { .. }));
    assert_eq!(rules[3].target, Target::User);
    assert_eq!(rules[4].target, Target::End);
    assert_eq!(rules[4].description.as_deref(), Some("done"));
}

#[test]
fn variables_of_every_generation_are_read() {
    let (_project, loaded) = full();
    let definitions = &loaded.workflow.variables.definitions;
    let of = |name: &str| definitions.iter().find(|it| it.name == name).expect("it is there");
    let kinds: Vec<&str> = definitions.iter().map(|it| it.source.as_str()).collect();
    assert_eq!(
        kinds,
        ["state", "state", "config", "static", "computed", "file", "data_reference", "state"]
    );
    let Source::State(planned) = &of("planned").source else { panic!("a state") };
    assert!(matches!(&planned.triggers[0].trigger,
        Change::AgentText { agent, ui_hidden: true, matches } if agent == "Planner" && matches.matches(" next ")));
    let Source::State(answer) = &of("answer").source else { panic!("a state") };
    assert_eq!(answer.triggers[0].to, Some(json!("yes")));
    let Source::DataReference(concept) = &of("concept").source else { panic!("a reference") };
    assert_eq!(concept.query_template["app_id"], json!("{{runtime.app_id}}"));
    assert_eq!(concept.fields, ["Overview"]);
    let exposures = &loaded.workflow.variables.exposures;
    assert_eq!((&*exposures[0].agent, exposures[0].variables.len()), ("Writer", 2));
    assert_eq!(exposures[1].variables, ["planned"]);
}

#[test]
fn outputs_message_hooks_and_journeys_are_read() {
    let (_project, loaded) = full();
    let workflow = &loaded.workflow;
    let plan = &workflow.outputs.models[0];
    assert_eq!(plan.required.as_deref(), Some(&["steps".to_owned()][..]));
    assert_eq!(plan.fields[0].ty, FieldType::List(Box::new(FieldType::Model("Step".into()))));
    assert_eq!(plan.fields[2].ty, FieldType::Union(vec![FieldType::Str, FieldType::Null]));
    assert_eq!(workflow.outputs.registry["Writer"], None);
    assert_eq!(workflow.message_hooks[0].agent.as_deref(), Some("Writer"));
    assert_eq!(workflow.message_hooks[1].agent, None);
    let journey = &workflow.journeys[0];
    assert_eq!(journey.fan_out.workflow.as_deref(), Some("Other"));
    assert_eq!(journey.fan_out.spawn_mode, SpawnMode::GeneratorSubrun);
    assert_eq!(journey.fan_out.timeout, Some(Duration::from_secs(30)));
    assert_eq!(journey.fan_out.child_context_seed["depth"], json!(1));
    assert_eq!(journey.fan_in.merge_mode, MergeMode::Structured);
    assert_eq!(journey.fan_in.on_partial_failure, OnPartialFailure::RetryFailed);
    assert_eq!(journey.fan_in.inject_as, "parts");
}

#[test]
fn handoffs_with_from_and_to_work() {
    let (_project, loaded) = good(
        "=== handoffs.yaml\nhandoffs:\n\
         - {from: Writer, to: Critic, trigger: NEXT, conditions: [context_variables.kpis is not null]}\n\
         - {from: Critic, to: TERMINATE, trigger: DONE}\n\
         - {from: Critic, to: Writer}\n\
         === context_variables.yaml\ncontext_variables:\n  kpis: {type: object, default: null}\n",
    );
    let workflow = &loaded.workflow;
    let names: Vec<&str> =
        workflow.variables.definitions.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["kpis", "said_NEXT_by_Writer", "said_DONE_by_Critic"]);
    let Source::State(said) = &workflow.variables.definitions[1].source else { panic!("a state") };
    let set_by = |text: &str| {
        said.triggers.iter().find_map(|it| match &it.trigger {
            Change::AgentText { matches, .. } if matches.matches(text) => it.to.clone(),
            _ => None,
        })
    };
    assert_eq!(set_by("I have them all.\nNEXT"), Some(json!(true)));
    assert_eq!(set_by("next"), Some(json!(true)));
    assert_eq!(set_by("what comes NEXT is not clear"), Some(json!(false)));
    let HandoffKind::Expression { condition, scope: Scope::Post } = &workflow.handoffs[0].kind
    else {
        panic!("an expression")
    };
    let holds = |said: bool, kpis: serde_json::Value| {
        condition.holds(|name| match name {
            "said_NEXT_by_Writer" => Some(said.into()),
            _ => Some(kpis.clone()),
        })
    };
    assert_eq!(holds(true, json!({"a": 1})), Ok(true));
    assert_eq!(holds(true, json!(null)), Ok(false));
    assert_eq!(holds(false, json!({"a": 1})), Ok(false));
    assert_eq!(workflow.handoffs[1].target, Target::End);
    assert_eq!(workflow.handoffs[2].kind, HandoffKind::After);
}

#[test]
fn the_defaults_are_those_of_the_origin() {
    let (project, loaded) = good("=== orchestrator.yaml\nworkflow_name: Demo\n");
    let file = &loaded.workflow.orchestrator;
    assert_eq!((file.max_turns, file.human_in_the_loop), (50, false));
    assert_eq!((file.pattern, file.startup_mode), (Pattern::Auto, StartupMode::AgentDriven));
    assert_eq!(file.error_strategy, ErrorStrategy::FailFast);
    assert_eq!(project.report(&loaded), "");
}

#[test]
fn fields_that_mean_nothing_are_warnings_each_by_name() {
    let (_project, loaded) = good(
        "=== orchestrator.yaml\nworkflow_name: Demo\nentry_point: true\nmetadata: {version: 1}\n\
         triggers: [{type: manual}]\ninputs: {a: 1}\noutputs: {b: 1}\nruntime_extensions: []\n\
         === tools.yaml\nlifecycle_tools:\n- {trigger: before_chat, agent: null, file: helpers.py, \
         function: start, tool_type: UI_Tool, auto_invoke: true, ui: {component: X}}\n\
         === handoffs.yaml\nhandoff_rules: [{source_agent: Writer, target_agent: Critic}]\n\
         === ui_config.yaml\nui_config: {icon: chart, visual_agents: [Writer]}\n",
    );
    let said: Vec<&str> = loaded.report.iter().map(|it| it.message.as_str()).collect();
    for name in [
        "entry_point",
        "metadata",
        "triggers",
        "inputs",
        "outputs",
        "tool_type",
        "auto_invoke",
        "ui",
        "icon",
        "handoffs",
    ] {
        assert!(said.iter().any(|it| it.contains(name)), "{name} in {said:#?}");
    }
    assert_eq!(said.len(), 10, "{said:#?}");
}

#[test]
fn what_the_files_take_from_the_environment_is_known_as_a_secret() {
    let project = Project::with(
        "=== tools.yaml\nlifecycle_tools:\n- {trigger: before_chat, agent: null, run: [\"true\", \
         \"${API_TOKEN}\"]}\n=== handoffs.yaml\nhandoff_rules:\n- {source_agent: Writer, \
         target_agent: Critic, handoff_type: condition, condition: \"${ready}\"}\n\
         === context_variables.yaml\nready: {type: bool, default: false}\n",
    );
    let environ = [("API_TOKEN", "s3cr3t-value"), ("ready", "no")];
    let environ = tenure_cards::card::Environ::of(environ);
    let options = crate::loading::support::options().environ(environ);
    let loaded = tenure_flow::load(&project.workflow(), &options);
    assert!(!loaded.report.has_errors(), "{}", project.report(&loaded));
    let Run::Command { argv, .. } = &loaded.workflow.lifecycle[0].run else { panic!("a command") };
    assert_eq!(argv[1], "s3cr3t-value");
    assert_eq!(loaded.workflow.expansions[0].name, "API_TOKEN");
    assert!(!loaded.cards.redactor().redact("it is s3cr3t-value").contains("s3cr3t"));
    let rule = &loaded.workflow.handoffs[0];
    assert_eq!(rule.variables(), ["ready"], "a condition's variables are the chat's");
}

#[test]
fn a_workflow_is_its_folder_or_its_orchestrator_file() {
    let (project, _) = full();
    let folder = project.workflow();
    assert!(is_workflow(&folder) && is_workflow(&folder.join("orchestrator.json")));
    assert!(!is_workflow(&project.root()) && !is_workflow(&folder.join("agents.json")));
    let found = workflows_of(&project.root());
    let names: Vec<_> = found.iter().filter_map(|it| it.file_name()).collect();
    assert_eq!(names, ["Demo", "Other"]);
    let options = crate::loading::support::options();
    let loaded = tenure_flow::load(&folder.join("orchestrator.json"), &options);
    assert_eq!(loaded.report.errors(), 0, "{}", project.report(&loaded));
    assert_eq!(loaded.workflow.agents.len(), 5);
}

#[test]
fn a_folder_of_cards_beside_workflows_is_still_one() {
    let (project, _) = full();
    std::fs::write(project.root().join("echo.md"), "---\nmodel: passthrough\n---\nYou repeat.\n")
        .expect("there is room");
    let loaded = tenure_cards::load(&project.root(), &crate::loading::support::options());
    assert!(!loaded.report.has_errors());
    assert_eq!(loaded.cards.len(), 1);
}

#[test]
fn the_pack_of_a_project_is_checked() {
    let (project, _) = good(
        "=== ../_pack/workflow_graph.json\n{\"version\": 2, \"workflows\": [{\"id\": \"Demo\"}, \
         {\"id\": \"Demi\", \"dependencies\": [\"Demo\"]}], \"journeys\": []}\n",
    );
    let report =
        tenure_flow::file::check_pack(&project.root(), &crate::loading::support::options());
    let said: Vec<&str> = report.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(said, ["this entry names the workflow `Demi`, which is not there"]);
}

const VARIABLES: &str = "=== context_variables.yaml\ndefinitions:\n\
    - {name: region, type: str, source: {type: state, default: eu}}\n\
    - {name: total, type: int, source: {type: state, default: 0}}\n\
    agents: {Writer: [region, total]}\n";

#[test]
fn variables_that_an_agent_sees_are_no_unknown_templates() {
    let agents = "=== agents.yaml\n\
        - {name: Writer, model: passthrough, system_message: \"Sell {{ total }} in ${region}.\"}\n\
        - {name: Critic, model: passthrough, system_message: You judge.}\n";
    let (project, loaded) = good(&format!("{agents}{VARIABLES}"));
    assert_eq!(project.report(&loaded), "");
    let writer = loaded.cards.card("Writer").expect("it is there");
    assert!(writer.expansions.is_empty(), "nobody has to set it: {:?}", writer.expansions);
}

#[test]
fn a_variable_in_an_instruction_of_an_agent_that_does_not_see_it_is_told() {
    let agents = "=== agents.yaml\n\
        - {name: Writer, model: passthrough, system_message: You write.}\n\
        - name: Critic\n  model: passthrough\n  system_message: |\n    Judge {{total}}.\n    \
        For ${region}, and {{nobody}}.\n";
    let (_project, loaded) = good(&format!("{agents}{VARIABLES}"));
    let said: Vec<(&str, &str)> =
        loaded.report.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
    assert_eq!(
        said,
        [
            ("T0903", "`{{total}}` stays as it is: `Critic` does not see this variable"),
            ("T0903", "`${region}` stays as it is: `Critic` does not see this variable"),
            ("T0903", "`{{nobody}}` is not a template that is known here, and stays as it is"),
        ]
    );
    let first = loaded.report.iter().next().expect("there are three");
    assert_eq!(first.source.line_col(first.span.start as usize).line, 5);
    assert_eq!(
        first.help.as_deref(),
        Some("add `total` to what `Critic` sees, under `agents` in context_variables")
    );
}

#[test]
fn a_trigger_can_wait_for_the_person_and_for_whole_words() {
    let (_project, loaded) = good(
        "=== context_variables.yaml\ndefinitions:\n- name: approved\n  type: bool\n  source:\n    \
         type: state\n    default: false\n    triggers:\n    - {type: agent_text, agent: user, \
         match: {regex: '\\byes\\b'}}\n",
    );
    let Source::State(approved) = &loaded.workflow.variables.definitions[0].source else {
        panic!("a state")
    };
    let Change::AgentText { agent, matches, .. } = &approved.triggers[0].trigger else {
        panic!("a text")
    };
    assert_eq!(agent, "user");
    assert!(matches.matches("well, YES.") && !matches.matches("yesterday"));
}

#[test]
fn handoffs_know_where_they_stand_and_the_last_without_a_condition_counts() {
    let (_project, loaded) = good(
        "=== orchestrator.yaml\nworkflow_name: Demo\norchestration_pattern: DefaultPattern\n\
         === handoffs.yaml\nhandoff_rules:\n- {source_agent: Writer, target_agent: Critic}\n\
         - {source_agent: Critic, target_agent: Writer}\n\
         - {source_agent: Writer, target_agent: terminate}\n",
    );
    let places: Vec<&str> =
        loaded.workflow.handoffs.iter().filter_map(|it| it.declared.as_deref()).collect();
    assert_eq!(places.len(), 3);
    for (place, line) in places.iter().zip(2..) {
        assert!(place.ends_with(&format!("workflows/Demo/handoffs.yaml:{line}")), "{place}");
    }
    let [found] = loaded.report.iter().collect::<Vec<_>>()[..] else {
        panic!("{:?}", loaded.report)
    };
    assert_eq!(found.code.as_str(), "T0907");
    assert_eq!(found.source.line_col(found.span.start as usize).line, 2);
    assert_eq!(
        found.message,
        "this handoff never happens: of those of `Writer` without a condition the last counts, and \
         that is the one on line 4"
    );
}

#[test]
fn json_may_be_indented_with_tabs() {
    let (project, loaded) = good(
        "=== -agents.yaml\n=== agents.json\n{\n\t\"agents\": [\n\t\t{\n\t\t\t\"name\": \
         \"Writer\",\n\t\t\t\"model\": \"passthrough\",\n\t\t\t\"system_message\":\t\"You \
         write.\"\n\t\t}\n\t]\n}\n",
    );
    assert_eq!(project.report(&loaded), "");
    assert_eq!(&*loaded.workflow.agents[0].name, "Writer");
}

#[test]
fn an_agent_whose_name_has_a_space_is_refused_with_the_name_to_write() {
    let project = Project::with(
        "=== agents.yaml\n- {name: Good Writer, model: passthrough, system_message: You write.}\n",
    );
    let loaded = project.load();
    let [found] = loaded.report.iter().collect::<Vec<_>>()[..] else {
        panic!("{}", project.report(&loaded))
    };
    assert_eq!(found.message, "an agent cannot have the name `Good Writer`");
    assert_eq!(found.help.as_deref(), Some("a name is one word; write `Good_Writer`"));
}

#[test]
fn a_declared_variable_goes_before_one_of_the_environment() {
    let project = Project::with(
        "=== agents.yaml\nagents:\n  - name: Writer\n    model: passthrough\n    system_message: \"${tone} ${HOUSE} ${HOUSE:none} ${STREET:a street}\"\n=== context_variables.yaml\ndefinitions:\n  - { name: tone, type: str, \
         source: { type: state, default: calm } }\nagents:\n  Writer: [tone]\n",
    );
    let environ = Environ::of([("tone", "of the environment"), ("HOUSE", "Tenure")]);
    let loaded = load(&project.workflow(), &options().environ(environ));
    assert!(!loaded.report.has_errors(), "{}", project.report(&loaded));
    let card = loaded.cards.card("Writer").expect("it is there");
    assert_eq!(card.instruction.as_deref(), Some("${tone} Tenure Tenure a street"));
    let plain = Project::with(
        "=== agents.yaml\nagents:\n  - name: Writer\n    model: passthrough\n    system_message: \"${tone}\"\n\
         === context_variables.yaml\ndefinitions:\n  - { name: tone, type: str, source: { type: \
         state } }\nagents:\n  Writer: [tone]\n",
    );
    let environ = Environ::of([("tone", "of the environment")]);
    let loaded = load(&plain.workflow(), &options().environ(environ));
    let card = loaded.cards.card("Writer").expect("it is there");
    assert!(card.expansions.is_empty(), "{:?}", card.expansions);
}

#[test]
fn a_pattern_that_is_not_known_says_nothing_about_the_handoffs() {
    let handoffs = "=== handoffs.yaml\nhandoff_rules:\n  - { source_agent: Writer, target_agent: \
                    terminate, handoff_type: after_work }\n";
    let unused = |pattern: &str| {
        let orchestrator = format!("=== orchestrator.yaml\norchestration_pattern: {pattern}\n");
        let loaded = Project::with(&format!("{orchestrator}{handoffs}")).load();
        loaded.report.iter().any(|found| found.code == Code::UnusedHandoffs)
    };
    assert!(!unused("DefualtPattern"));
    assert!(!unused("[DefaultPattern]"));
    assert!(!unused("DefaultPattern"));
    assert!(unused("AutoPattern"));
}

#[test]
fn a_selector_that_only_repeats_the_question_is_warned_of() {
    let warned = |orchestrator: &str, project_says: &str| {
        let project = Project::with(&format!("=== orchestrator.yaml\n{orchestrator}\n"));
        std::fs::write(project.root().join("tenure.toml"), project_says).expect("there is room");
        let inspection = Workflow::builder(project.load()).inspect();
        assert!(!inspection.report.has_errors(), "{:?}", inspection.report);
        let mut found = inspection.report.iter();
        found.any(|it| it.code == Code::MeaninglessField && it.message.contains("passthrough"))
    };
    assert!(warned("orchestration_pattern: AutoPattern", ""));
    assert!(warned("workflow_name: Demo", ""));
    assert!(!warned("selector_model: passthrough", ""));
    assert!(!warned("workflow_name: Demo", "default_model = \"silent\"\n"));
    assert!(!warned("orchestration_pattern: RoundRobinPattern", ""));
}
