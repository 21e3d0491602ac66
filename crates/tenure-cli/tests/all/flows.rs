//! Workflows to run the program on.

use crate::support::Sandbox;

pub(crate) const ORCHESTRATOR: &str = "workflow_name: story
orchestration_pattern: DefaultPattern
startup_mode: AgentDriven
initial_agent: writer
initial_message: a lighthouse
max_turns: 4
";
pub(crate) const AGENTS: &str = "agents:
  - name: writer
    model: script:writer.json
    system_message: Write.
  - name: editor
    model: script:editor.json
    system_message: Read.
";
pub(crate) const HANDOFFS: &str = "handoff_rules:
  - { source_agent: writer, target_agent: editor, handoff_type: after_work }
  - { source_agent: editor, target_agent: terminate, handoff_type: after_work }
";
pub(crate) const TOOLS: &str = "tools: []
lifecycle_tools:
  - { trigger: before_chat, agent: null, file: desk.py, function: open_desk }
  - { trigger: after_agent, agent: null, file: desk.py, function: count }
  - { trigger: after_chat, agent: null, file: desk.py, function: close_desk }
";
pub(crate) const DESK: &str = "def open_desk(context_variables):
    data = context_variables.data
    names = ['workflow_name', 'app_id', 'user_id', 'chat_id']
    open('began.txt', 'w').write(' '.join(str(data.get(name)) for name in names) + '\\n')
    data['drafts'] = 0


async def count(context_variables):
    context_variables.data['drafts'] += 1
    return {'drafts': context_variables.data['drafts']}


def close_desk(context_variables):
    drafts = context_variables.data.get('drafts')
    with open('ended.txt', 'a') as file:
        file.write(f'drafts {drafts}\\n')
";

/// A writer and an editor; what is given comes in place of, or beside, the usual files of the
/// workflow.
pub(crate) fn story(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::with(&[("tenure.toml", "")]);
    let usual = [
        ("orchestrator.yaml", ORCHESTRATOR),
        ("agents.yaml", AGENTS),
        ("handoffs.yaml", HANDOFFS),
        ("tools.yaml", TOOLS),
        ("tools/desk.py", DESK),
        ("writer.json", "[\"a draft about {input}\"]"),
        ("editor.json", "[\"it is good\"]"),
    ];
    for (name, text) in usual.iter().chain(files) {
        sandbox.write(&format!("workflows/story/{name}"), text);
    }
    sandbox
}

/// The same with a person who speaks after the writer, and ends it.
pub(crate) fn story_with_a_person(files: &[(&str, &str)]) -> Sandbox {
    let orchestrator = format!("{ORCHESTRATOR}human_in_the_loop: true\n");
    let handoffs = "handoff_rules:
  - { source_agent: writer, target_agent: user, handoff_type: after_work }
  - { source_agent: user, target_agent: editor, handoff_type: after_work }
  - { source_agent: editor, target_agent: terminate, handoff_type: after_work }
";
    let editor = "[\"the person said {input}\"]";
    let own = [
        ("orchestrator.yaml", &*orchestrator),
        ("handoffs.yaml", handoffs),
        ("editor.json", editor),
    ];
    story(&[&own[..], files].concat())
}
