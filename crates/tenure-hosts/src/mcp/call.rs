//! Calls of a server, from the request to the answer.

use super::calls::{Heard, OpenCall};
use super::link::Link;
use super::list::plain;
use super::server::Server;
use super::{content, elicit};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, DEFAULT_MRTR_MAX_ROUNDS,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult,
    InputResponses, MetaObject, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, RequestMetaObject, ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::tool::ToolOutput;
use tokio::time::timeout;

/// How long a server may take to get a prompt or a resource, where nothing else is said.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// The first pause before a server that asks for no input, only for another round, is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Where in the `_meta` of a call its key is.
const KEY: &str = "tenure/idempotencyKey";

/// Calls a tool. The error says why there is no answer.
///
/// What was sent is never sent again: nobody knows what became of it.
pub(super) async fn call(
    server: &Server,
    tool: &str,
    cx: &ToolCx<'_>,
    arguments: &Value,
) -> Result<ToolOutput, String> {
    let link = server.link().await?;
    let mut open = link.calls.open();
    let (mut input_responses, mut request_state) = (None, None);
    let meta = keyed(cx);
    let mut pause = FIRST_PAUSE;
    for _round in 0..DEFAULT_MRTR_MAX_ROUNDS {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.meta = Some(meta.clone());
        params.arguments = arguments.as_object().cloned();
        params.input_responses = input_responses.take();
        params.request_state = request_state.take();
        match round(server, &link, &mut open, cx, params).await? {
            ServerResult::CallToolResult(result) => return Ok(content::output(result)),
            ServerResult::InputRequiredResult(InputRequiredResult {
                input_requests,
                request_state: state,
                ..
            }) => {
                let asked = input_requests.unwrap_or_default();
                if asked.is_empty() {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                } else {
                    let mut answers = InputResponses::new();
                    for (key, request) in asked {
                        let answer = elicit::input(cx, server.name(), request).await?;
                        answers.insert(key, answer);
                    }
                    input_responses = Some(answers);
                }
                request_state = state;
            }
            ServerResult::CreateTaskResult(_) => {
                let name = server.name();
                return Err(format!("`{name}` made a task of the call, which was not asked for"));
            }
            _ => return Err(format!("`{}` answered what is no tool's result", server.name())),
        }
    }
    Err(format!("`{}` asked for input {DEFAULT_MRTR_MAX_ROUNDS} times", server.name()))
}

/// The key of the call, for a server that knows by it what it has done already.
fn keyed(cx: &ToolCx<'_>) -> RequestMetaObject {
    let mut meta = MetaObject::new();
    meta.insert(KEY.to_owned(), cx.idempotency_key().into());
    meta.into()
}

/// One request of a call, and what the server says until it answers.
async fn round(
    server: &Server,
    link: &Link,
    open: &mut OpenCall,
    cx: &ToolCx<'_>,
    params: CallToolRequestParams,
) -> Result<ServerResult, String> {
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(open.tag());
    let sent = link.send(ClientRequest::CallToolRequest(request)).await;
    let mut flight = match sent {
        Ok(flight) => flight,
        Err(error) => return Err(failure(server, link, &error).await),
    };
    let mut asking: Option<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = None;
    let answer = loop {
        tokio::select! {
            biased;
            answer = flight.answer() => break answer,
            () = async { if let Some(asking) = &mut asking { asking.await } },
                if asking.is_some() => asking = None,
            heard = open.hear(), if asking.is_none() => match heard {
                Heard::Progress(progress) => report(cx, progress),
                Heard::Elicit(params, reply) => {
                    asking = Some(Box::pin(elicit::answer(cx, server.name(), *params, reply)));
                }
            },
        }
    };
    // What came before the answer belongs before it.
    for heard in open.heard() {
        if let Heard::Progress(progress) = heard {
            report(cx, progress);
        }
    }
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(failure(server, link, &error).await),
    }
}

fn report(cx: &ToolCx<'_>, progress: rmcp::model::ProgressNotificationParam) {
    cx.progress(progress.progress, progress.total, progress.message.as_deref());
}

/// Why there is no answer.
async fn failure(server: &Server, link: &Link, error: &ServiceError) -> String {
    let name = server.name();
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportClosed => {
            let why = link.reason().await;
            format!(
                "the tool server `{name}` went away during the call: {why}. \
                 Whether the call was carried out is not known"
            )
        }
        ServiceError::TransportSend(_) => {
            link.changes.doubt.notify_one();
            let why = server.config.transport.redacted(plain(error));
            format!("the call did not get through to the tool server `{name}`: {why}")
        }
        other => format!("the tool server `{name}` did not answer the call: {other}"),
    }
}

impl Server {
    /// Gets a prompt.
    pub(super) async fn get_prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<GetPromptResult, String> {
        let link = self.link().await?;
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            let values = arguments.into_iter().map(|(name, value)| (name, Value::String(value)));
            params.arguments = Some(values.collect::<Map<_, _>>());
        }
        match self.bounded(&link, link.peer.get_prompt_once(params)).await? {
            GetPromptResponse::Complete(got) => Ok(got),
            _ => Err(self.wants_input("prompt", name)),
        }
    }

    /// Reads a resource.
    pub(super) async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, String> {
        let link = self.link().await?;
        let params = ReadResourceRequestParams::new(uri);
        match self.bounded(&link, link.peer.read_resource_once(params)).await? {
            ReadResourceResponse::Complete(read) => Ok(read),
            _ => Err(self.wants_input("resource", uri)),
        }
    }

    async fn bounded<T>(
        &self,
        link: &Link,
        request: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, String> {
        let limit = self.config.call_limit.unwrap_or(READ_LIMIT).min(READ_LIMIT);
        match timeout(limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failure(self, link, &error).await),
            Err(_) => {
                Err(format!("the tool server `{}` did not answer within {limit:?}", self.name()))
            }
        }
    }

    fn wants_input(&self, what: &str, name: &str) -> String {
        format!("the {what} `{name}` of `{}` wants input, which only calls can give", self.name())
    }
}
