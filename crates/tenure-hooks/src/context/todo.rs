//! A list of what is to be done, which the model keeps.

use crate::input::marked::{Joint, Marks, Side};
use crate::ready::{About, Makings, Options, Refusal};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::context::{Cx, ToolCx, TurnCx};
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::ModelRequest;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_macros::lifecycle;

/// How far something has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TodoStatus {
    /// Nobody has begun it.
    #[default]
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Todo {
    /// What it is.
    pub content: String,
    /// How far it has come.
    #[serde(default)]
    pub status: TodoStatus,
}

/// The most entries of a list.
const MOST: usize = 100;
/// The most characters of an entry.
const LONGEST: usize = 1000;
/// Where the list is in the agent's state.
const KEY: &str = "_todos";

const TOOL_NAME: &str = "write_todos";
const TOOL_DESCRIPTION: &str = "Writes the list of what is to be done, all of it, in place of the \
    one before. Use it for work of three steps or more: write the steps down, set the one that you \
    are at to `in_progress`, and set it to `completed` at once when it is done. For anything \
    shorter, just do it. Call it once at a time.";
const SYSTEM_PROMPT: &str = "For work of several steps, keep a list of what is to be done with the \
    tool `{tool}`, and keep it up to date. Do not end your work while something is open that you can \
    still do.";

/// Gives the agent a list of what is to be done, and a tool to keep it with. The model sees the list
/// at every step.
///
/// The list is part of the agent's state (`_todos`, with `:` and the tool's name behind for a tool of
/// another name, so that an agent may have several): it stays from turn to turn, and a run that goes
/// on after a crash has it. It is shown with the request and is no part of the conversation, so it
/// never piles up. Several calls of the tool at once are refused, all of them: nobody could say which
/// list counts.
///
/// ```
/// use serde_json::json;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::{TodoList, TodoStatus};
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let todos = json!({ "todos": [{ "content": "water the plants", "status": "in_progress" }] });
/// let agent = Agent::builder("gardener")
///     .model(Scripted::empty().call("write_todos", todos).text("I am at it."))
///     .with_lifecycle(TodoList::new())
///     .build()?;
/// agent.startup().await?;
/// agent.run("Look after the garden").await?;
/// let list = TodoList::of(&agent);
/// assert_eq!((&*list[0].content, list[0].status), ("water the plants", TodoStatus::InProgress));
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TodoList {
    tool_name: Arc<str>,
    tool_description: String,
    system_prompt: String,
}

impl Default for TodoList {
    fn default() -> Self {
        Self::new()
    }
}

impl TodoList {
    /// A list that is kept with the tool `write_todos`.
    pub fn new() -> Self {
        Self {
            tool_name: TOOL_NAME.into(),
            tool_description: TOOL_DESCRIPTION.to_owned(),
            system_prompt: SYSTEM_PROMPT.to_owned(),
        }
    }

    /// What the tool is called.
    pub fn tool_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.tool_name = name.into();
        self
    }

    /// What the model reads about the tool.
    pub fn tool_description(mut self, description: impl Into<String>) -> Self {
        self.tool_description = description.into();
        self
    }

    /// What the model is told about the list at every step; `{tool}` is the tool's name. Nothing, if
    /// it is empty.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = prompt.into();
        self
    }

    /// The list of an agent as it is now that is kept with the tool `write_todos`.
    pub fn of(agent: &tenure_core::agent::Agent) -> Vec<Todo> {
        Self::of_tool(agent, TOOL_NAME)
    }

    /// The same of a list that is kept with a tool of another name.
    pub fn of_tool(agent: &tenure_core::agent::Agent, tool_name: &str) -> Vec<Todo> {
        let list =
            agent.state_value(&key(tool_name)).and_then(|it| serde_json::from_value(it).ok());
        list.unwrap_or_default()
    }
}

/// Where the list is that this tool writes: an agent may have several, each with a tool of its own.
fn key(tool_name: &str) -> String {
    match tool_name {
        TOOL_NAME => KEY.to_owned(),
        name => format!("{KEY}:{name}"),
    }
}

/// A list as it is kept in the agent's state.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
struct List(Vec<Todo>);

impl From<List> for Value {
    fn from(list: List) -> Self {
        json!(list.0)
    }
}

/// What was written, if it was: what is no list there counts as none.
fn list_of(cx: &Cx<'_>, key: &str) -> Option<Arc<List>> {
    cx.state_as(key).ok().flatten()
}

impl IntoRegistration for TodoList {
    fn into_registration(self) -> Registration {
        let tool =
            WriteTodos { name: self.tool_name.clone(), description: self.tool_description.clone() };
        let prompt = self.system_prompt.replace("{tool}", &self.tool_name);
        let open = match &*self.tool_name {
            TOOL_NAME => "<todo_list>".to_owned(),
            name => format!("<todo_list tool=\"{name}\">"),
        };
        hook(Showing::new(prompt, key(&self.tool_name), open))
            .named("todo")
            .kind("todo")
            .with_tool(tool)
            .outside("dedupe")
            .outside("clear_tool_results")
            .outside("select_tools")
            .outside("window")
            .outside("cheaper_model")
    }
}

struct Showing {
    prompt: String,
    key: String,
    /// What the list begins with where it is shown.
    open: String,
    /// What is shown without a list, if anything is.
    empty: Option<Arc<str>>,
    /// The list that was shown last, and how.
    last: Mutex<Option<(Arc<List>, Arc<str>)>>,
    joint: Joint,
}

impl Showing {
    fn new(prompt: String, key: String, open: String) -> Self {
        let (last, joint) = (Mutex::default(), Joint::default());
        let mut showing = Self { prompt, key, open, empty: None, last, joint };
        if !showing.prompt.is_empty() {
            showing.empty = Some(showing.marks().around(&showing.prompt).into());
        }
        showing
    }

    fn marks(&self) -> Marks<'_> {
        Marks { open: &self.open, close: "</todo_list>" }
    }

    /// What is shown of a list. It is made anew once the list is another one.
    fn block(&self, list: Arc<List>) -> Arc<str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, block)) if Arc::ptr_eq(known, &list) || *known == list => block.clone(),
            _ => {
                let block: Arc<str> = self.marks().around(&shown(&self.prompt, &list.0)).into();
                *last = Some((list, block.clone()));
                block
            }
        }
    }
}

/// A list that has something in it, as the model reads it.
fn shown(prompt: &str, list: &[Todo]) -> String {
    let mut text = prompt.to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str("The list as it is now:");
    for todo in list {
        let mark = match todo.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Completed => 'x',
        };
        // Writing to a text does not fail.
        let _ = write!(text, "\n- [{mark}] {}", todo.content.replace('\n', " "));
    }
    text
}

#[lifecycle]
impl AgentLifecycle for Showing {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let block = match list_of(&cx, &self.key).filter(|list| !list.0.is_empty()) {
            Some(list) => Some(self.block(list)),
            None => self.empty.clone(),
        };
        match block {
            Some(block) => self.marks().instruct(request, &block, Side::After, &self.joint),
            None => self.marks().clear(request),
        }
        Ok(Flow::Continue)
    }
}

struct WriteTodos {
    name: Arc<str>,
    description: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    todos: Vec<Todo>,
}

#[async_trait]
impl Tool for WriteTodos {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name.clone(), self.description.clone())
            .effect(Effect::Idempotent)
            .parameters(json!({
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "description": "The whole list, in order",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": { "type": "string", "description": "What is to be done" },
                                "status": {
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed"],
                                },
                            },
                            "required": ["content", "status"],
                            "additionalProperties": false,
                        },
                    },
                },
                "required": ["todos"],
                "additionalProperties": false,
            }))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let at_once = cx.batch().iter().filter(|call| call.name == self.name).count();
        if at_once > 1 {
            return Ok(ToolOutput::error(format!(
                "`{}` was called {at_once} times at once, and each call writes the whole list, so \
                 none of them counts; call it once, with all of it",
                self.name
            )));
        }
        let Arguments { todos } = match serde_json::from_value(arguments.clone()) {
            Ok(arguments) => arguments,
            Err(error) => {
                return Ok(ToolOutput::error(format!(
                    "the list cannot be read: {error}; it was left as it is"
                )));
            }
        };
        if let Some(wrong) = fault(&todos) {
            return Ok(ToolOutput::error(format!("{wrong}; the list was left as it is")));
        }
        let key = key(&self.name);
        let before = list_of(&cx, &key);
        if before.as_ref().map_or(&[][..], |list| &list.0) != todos {
            cx.announce("todo.changed", || json!({ "todos": todos }));
        }
        let open = todos.iter().filter(|it| it.status != TodoStatus::Completed).count();
        let count = todos.len();
        cx.keep_state(&key, List(todos))?;
        Ok(ToolOutput::text(format!("The list is written: {count} entries, {open} of them open.")))
    }
}

fn fault(todos: &[Todo]) -> Option<String> {
    if todos.len() > MOST {
        return Some(format!("the list has {} entries, and at most {MOST} fit", todos.len()));
    }
    let is_blank = |todo: &Todo| todo.content.trim().is_empty();
    if let Some(at) = todos.iter().position(is_blank) {
        return Some(format!("entry {} says nothing", at + 1));
    }
    let is_long = |todo: &Todo| todo.content.chars().count() > LONGEST;
    let at = todos.iter().position(is_long)?;
    Some(format!("entry {} has more than {LONGEST} characters", at + 1))
}

/// What `todo` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TodoOptions {
    /// What the tool is called that writes the list.
    tool_name: String,
    /// What the model reads about the tool.
    tool_description: String,
    /// What the model is told about the list at every step; `{tool}` is the tool's name. Nothing, if
    /// it is empty.
    system_prompt: String,
}

impl Default for TodoOptions {
    fn default() -> Self {
        let TodoList { tool_name, tool_description, system_prompt } = TodoList::new();
        Self { tool_name: tool_name.to_string(), tool_description, system_prompt }
    }
}

impl Options for TodoOptions {
    const ABOUT: About = About {
        name: "todo",
        summary: "Gives the agent a list of what is to be done, and a tool to keep it with.",
        covers: &[],
        peers: &["TodoListMiddleware"],
        example: r#"{ "tool_name": "write_todos" }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        if self.tool_name.is_empty() || !self.tool_name.chars().all(is_name) {
            let why = format!(
                "`{}` is no name of a tool; use letters, digits, `_` and `-`",
                self.tool_name
            );
            return Err(Refusal::new("tool_name", why));
        }
        if self.tool_description.trim().is_empty() {
            return Err(Refusal::new("tool_description", "a model has to know what it is for"));
        }
        let list = TodoList::new()
            .tool_name(self.tool_name)
            .tool_description(self.tool_description)
            .system_prompt(self.system_prompt);
        Ok(list.into_registration())
    }
}
