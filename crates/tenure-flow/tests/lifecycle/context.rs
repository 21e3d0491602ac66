//! Context variables: what one leaves is there for the next, live objects too.

use crate::lifecycle::support::{Lab, Seen, calls, first, logged};
use serde_json::json;
use tenure_core::agent::Agent;
use tenure_core::tool::ToolSpec;
use tenure_flow::ChatStatus;
use tenure_flow::lifecycle::Trigger;
use tenure_models::Scripted;

/// A small pool over sqlite3, as a project would have it, and tools as the guide shows them.
const POOL: &str = r#"
import asyncio, sqlite3

class Pool:
    def __init__(self, size):
        self.size = size
        self.connections = [sqlite3.connect(":memory:", check_same_thread=False) for _ in range(size)]
        self.closed = False

    async def close(self):
        for connection in self.connections:
            connection.close()
        self.closed = True

async def create_db_pool():
    await asyncio.sleep(0)
    return Pool(2)

async def allocate_data_resources(context_variables):
    db_pool = await create_db_pool()
    context_variables.data['db_connection'] = db_pool
    return {"status": "allocated", "pool_size": db_pool.size}

async def release_data_resources(context_variables):
    db_pool = context_variables.data.get('db_connection')
    if db_pool:
        await db_pool.close()
        del context_variables.data['db_connection']
    return {"status": "released"}

def count_rows(table, context_variables):
    pool = context_variables.data['db_connection']
    rows = pool.connections[0].execute("select 1 union select 2").fetchall()
    context_variables.data['rows'] = len(rows)
    return f"{table}: {len(rows)} of {pool.size}"

def left(context_variables):
    return sorted(context_variables.data)

def swaps(context_variables):
    context_variables.data['db_connection'] = Pool(9)
    context_variables.data['app_id'] = 'mine'

def sizes(context_variables):
    return context_variables.data['db_connection'].size

def removes(context_variables):
    data = context_variables.data
    data.update(a=1, b=None)
    data['c'] = {'deep': [1]}

def changes(context_variables):
    data = context_variables.data
    data['c']['deep'].append(2)
    del data['a']
    return [data['b'], 'a' in data]
"#;

#[tokio::test]
async fn a_live_object_is_kept_for_tools_and_ends_and_released_once() {
    let mut lab = Lab::new(POOL);
    let mut tools = vec![
        lab.tool(Trigger::BeforeAgent, "allocate_data_resources"),
        lab.tool(Trigger::AfterAgent, "release_data_resources"),
        lab.tool(Trigger::AfterChat, "left"),
    ];
    tools[0].agent = Some("DataProcessorAgent".into());
    tools[1].agent = Some("DataProcessorAgent".into());
    let parameters = json!({
        "type": "object", "properties": { "table": { "type": "string" } }, "required": ["table"],
    });
    let spec = ToolSpec::new("count_rows", "counts").parameters(parameters);
    let model = Scripted::empty().call("count_rows", json!({ "table": "t" })).text("done");
    let agent = Agent::builder("DataProcessorAgent").model(model);
    let agent = agent.tool(lab.python.tool(lab.function("count_rows"), spec));
    let flow = lab.flow_of(&tools, &[], [agent]).max_turns(1).build().expect("a flow");
    let report = flow.run("count").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let seen = lab.seen();
    let results: Vec<_> = seen
        .iter()
        .filter(|it| it.name == "lifecycle.tool_result")
        .map(|it| &it.data["result"])
        .collect();
    assert_eq!(*results[0], json!({ "status": "allocated", "pool_size": 2 }));
    assert_eq!(*results[1], json!({ "status": "released" }));
    assert_eq!(*results[2], json!(["app_id", "chat_id", "rows", "user_id", "workflow_name"]));
    assert_eq!(report.variables["rows"], 2, "what a tool of the model wrote is there");
    assert_eq!(report.variables.get("db_connection"), None, "what was deleted is gone");
    let text = report.messages.iter().any(|it| it.text.contains("done"));
    assert!(text && report.failures.is_empty(), "{:?}", report.failures);
}

#[tokio::test]
async fn a_refused_write_leaves_the_live_object_that_was_there() {
    let mut lab = Lab::new(POOL);
    let tools = ["allocate_data_resources", "swaps", "sizes"];
    let tools: Vec<_> = tools.iter().map(|it| lab.tool(Trigger::BeforeChat, it)).collect();
    let report = lab.flow(&tools).build().expect("a flow").run("hi").await;
    let seen = lab.seen();
    assert_eq!(
        calls(&seen)[2..],
        [
            "call before_chat swaps",
            "error before_chat swaps",
            "call before_chat sizes",
            "result before_chat sizes"
        ]
    );
    let last = seen.iter().rev().find(|it| it.name == "lifecycle.tool_result").expect("a result");
    assert_eq!(last.data["result"], 2);
    assert_eq!(report.variables["db_connection"]["$live"], "Pool", "outside it is opaque");
}

#[tokio::test]
async fn variables_are_set_changed_in_place_updated_and_removed() {
    let mut lab = Lab::new(POOL);
    let tools = ["removes", "changes"].map(|it| lab.tool(Trigger::BeforeChat, it));
    let report = lab.flow(&tools).build().expect("a flow").run("hi").await;
    assert_eq!(report.variables.get("a"), None);
    assert_eq!(report.variables["b"], json!(null), "null is a value");
    assert_eq!(report.variables["c"], json!({ "deep": [1, 2] }));
    let seen = lab.seen();
    let last = seen.iter().rev().find(|it| it.name == "lifecycle.tool_result").expect("a result");
    assert_eq!(last.data["result"], json!([null, false]));
}

const TRIES: &str = r#"
attempts = []

def flaky():
    attempts.append(1)
    if len(attempts) < 3:
        raise OSError("not yet")
    return len(attempts)

def hopeless():
    raise OSError("never")

def only(context_variables):
    return "ran"
"#;

#[tokio::test]
async fn a_failed_call_is_repeated_and_is_one_call_to_whoever_listens() {
    let mut lab = Lab::new(TRIES);
    let mut flaky = lab.tool(Trigger::BeforeChat, "flaky");
    flaky.retries = 2;
    flaky.backoff = Some(std::time::Duration::from_millis(10));
    let mut hopeless = lab.tool(Trigger::AfterChat, "hopeless");
    hopeless.retries = 1;
    hopeless.backoff = Some(std::time::Duration::from_millis(10));
    lab.flow(&[flaky, hopeless]).build().expect("a flow").run("hi").await;
    let seen = lab.seen();
    assert_eq!(
        calls(&seen),
        [
            "call before_chat flaky",
            "result before_chat flaky",
            "call after_chat hopeless",
            "error after_chat hopeless"
        ]
    );
    assert_eq!(first(&seen, "lifecycle.tool_result")["result"], 3);
    assert!(logged(&seen, "attempt 3 follows in 20ms"), "the wait doubles: {seen:#?}");
}

#[tokio::test]
async fn a_condition_sees_variables_the_agent_the_trigger_and_the_outcome() {
    let mut lab = Lab::new(TRIES);
    for (trigger, when, times) in [
        (Trigger::BeforeChat, "variables.flag == 'on' and trigger == 'before_chat'", 1),
        (Trigger::BeforeChat, "variables.flag != 'on'", 0),
        (Trigger::BeforeChat, "variables.missing == 'x'", 0),
        (Trigger::BeforeAgent, "agent.name == 'b'", 1),
        (Trigger::AfterAgent, "outcome == 'ok' and output == 'hello'", 1),
        (Trigger::AfterChat, "outcome == 'max_turns'", 1),
        (Trigger::AfterChat, "outcome == 'ok'", 0),
    ] {
        let mut tool = lab.tool(trigger, "only");
        tool.when = Some(when.into());
        let flow = lab.flow(&[tool]).build().expect("a flow");
        flow.chat().variable("flag", "on").message("hello").run().await;
        let seen = lab.seen();
        let ran: Vec<&Seen> = seen.iter().filter(|it| it.name == "lifecycle.tool_result").collect();
        assert_eq!(ran.len(), times, "{trigger}: {when}");
        assert_eq!(calls(&seen).len(), 2 * times, "a tool that is left out is not called");
    }
}
