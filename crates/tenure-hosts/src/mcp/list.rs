//! What a server offers.

use super::http::cause;
use super::server::Server;
use super::status::{Lists, ToolFacts};
use super::{McpPrompt, McpPromptArgument, McpResource};
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::tool::Effect;
use tokio::time::timeout;

/// How long a server may take to list its tools, or longer if it may take longer to start.
const TOOLS_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to list what an agent can do without.
const EXTRAS_LIMIT: Duration = Duration::from_secs(3);
/// How many pages a list may have. A server that goes in circles has endlessly many.
const MOST_PAGES: usize = 200;

/// Why a list could not be read.
pub(super) struct NoList {
    pub(super) message: String,
    /// Whether the connection itself may be over.
    pub(super) is_lost: bool,
}

impl NoList {
    fn of(what: &str, error: &ServiceError) -> Self {
        let is_lost =
            matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_));
        Self { message: format!("the {what} could not be listed: {}", plain(error)), is_lost }
    }
}

/// An error in words, without what our own library says around it.
pub(super) fn plain(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) => cause(&*error.error),
        other => other.to_string(),
    }
}

/// Reads every page of a list.
macro_rules! pages {
    ($peer:expr, $list:ident, $items:ident, $what:literal) => {{
        let mut all = Vec::new();
        let mut cursor = None;
        for page in 0.. {
            if page == MOST_PAGES {
                let message = format!("the {} fill more than {MOST_PAGES} pages", $what);
                return Err(NoList { message, is_lost: false });
            }
            let next = PaginatedRequestParams::default().with_cursor(cursor);
            // The first page is asked for without anything: some servers want it so.
            let asked = next.cursor.is_some().then_some(next);
            let listed = $peer.$list(asked).await.map_err(|error| NoList::of($what, &error))?;
            all.extend(listed.$items);
            cursor = listed.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(all)
    }};
}

/// Everything that a server offers. Its tools have to be there; of the rest, what could not be
/// read stays as it is known.
pub(super) async fn list(peer: &Peer<RoleClient>, server: &Server) -> Result<Lists, NoList> {
    let (known, limit) = (server.lists(), server.config.start_limit.max(TOOLS_LIMIT));
    let server = server.name();
    let info = peer.peer_info();
    let may = info.as_ref().map(|info| &info.capabilities);
    let has = |some: Option<bool>| some.unwrap_or(true);
    let tools = async {
        if !has(may.map(|may| may.tools.is_some())) {
            return Ok(Vec::new());
        }
        within("tools", limit, tools(peer)).await
    };
    let prompts = async {
        if !has(may.map(|may| may.prompts.is_some())) {
            return Ok(Vec::new());
        }
        within("prompts", EXTRAS_LIMIT, prompts(peer)).await
    };
    let resources = async {
        if !has(may.map(|may| may.resources.is_some())) {
            return Ok(Vec::new());
        }
        within("resources", EXTRAS_LIMIT, resources(peer)).await
    };
    let (tools, prompts, resources) = futures_util::join!(tools, prompts, resources);
    let tools = tools?.into_iter().map(facts).collect();
    Ok(Lists {
        is_known: true,
        tools,
        prompts: match prompts {
            Ok(all) => all.into_iter().map(|it| prompt(server, it)).collect(),
            Err(_) => known.prompts,
        },
        resources: match resources {
            Ok(all) => all.into_iter().map(|it| resource(server, it)).collect(),
            Err(_) => known.resources,
        },
    })
}

async fn within<T>(
    what: &str,
    limit: Duration,
    listing: impl Future<Output = Result<Vec<T>, NoList>>,
) -> Result<Vec<T>, NoList> {
    timeout(limit, listing).await.unwrap_or_else(|_| {
        let message = format!("the {what} were not listed within {limit:?}");
        Err(NoList { message, is_lost: true })
    })
}

async fn tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, NoList> {
    pages!(peer, list_tools, tools, "tools")
}

async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Prompt>, NoList> {
    pages!(peer, list_prompts, prompts, "prompts")
}

async fn resources(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Resource>, NoList> {
    pages!(peer, list_resources, resources, "resources")
}

fn facts(tool: Tool) -> ToolFacts {
    let hints = tool.annotations.as_ref();
    let says = |hint: fn(&rmcp::model::ToolAnnotations) -> Option<bool>| {
        hints.and_then(hint).unwrap_or(false)
    };
    let harmless = says(|hints| hints.read_only_hint) || says(|hints| hints.idempotent_hint);
    ToolFacts {
        description: tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into(),
        parameters: Value::Object((*tool.input_schema).clone()),
        effect: if harmless { Effect::Idempotent } else { Effect::AtMostOnce },
        name: tool.name.into(),
    }
}

fn prompt(server: &Arc<str>, prompt: rmcp::model::Prompt) -> McpPrompt {
    let argument = |it: rmcp::model::PromptArgument| McpPromptArgument {
        name: it.name,
        description: it.description,
        required: it.required.unwrap_or(false),
    };
    McpPrompt {
        server: server.clone(),
        name: prompt.name,
        description: prompt.description.or(prompt.title),
        arguments: prompt.arguments.unwrap_or_default().into_iter().map(argument).collect(),
    }
}

fn resource(server: &Arc<str>, resource: rmcp::model::Resource) -> McpResource {
    McpResource {
        server: server.clone(),
        uri: resource.uri,
        name: resource.name,
        description: resource.description.or(resource.title),
        mime_type: resource.mime_type,
    }
}
