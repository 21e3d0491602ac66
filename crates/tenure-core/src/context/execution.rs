//! The orchestrator's view of a request: immutable, handed down.

use crate::id::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// What the orchestrator says about a request. Agents read it; nobody changes it (G9).
///
/// A change is a new context: [`ExecutionContext::with_metadata`] keeps the parent,
/// [`ExecutionContext::child`] makes this one the parent.
///
/// ```
/// use tenure_core::context::ExecutionContext;
///
/// let root = ExecutionContext::new("trace-1");
/// let child = root.child("summarise the report");
/// assert_eq!(child.trace_id(), "trace-1");
/// assert_eq!(child.parent().map(|parent| parent.trace_id()), Some("trace-1"));
/// assert!(root.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[doc(alias = "Context")]
pub struct ExecutionContext {
    trace_id: Arc<str>,
    #[serde(default)]
    request_id: String,
    #[serde(default = "default_profile")]
    profile: String,
    #[serde(default)]
    user_intent: String,
    #[serde(default)]
    user_id: String,
    #[serde(default)]
    memory_scope: String,
    #[serde(default)]
    conversation_id: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(skip)]
    parent: Option<Arc<ExecutionContext>>,
    created_at: SystemTime,
}

fn default_profile() -> String {
    "default".to_owned()
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident / $with:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> &str {
            &self.$name
        }

        #[doc = concat!("The same context with another `", stringify!($name), "`.")]
        #[must_use]
        pub fn $with(mut self, value: impl Into<String>) -> Self {
            self.$name = value.into();
            self
        }
    )+};
}

impl ExecutionContext {
    /// A context for this trace.
    pub fn new(trace_id: impl Into<String>) -> Self {
        Self {
            trace_id: trace_id.into().into(),
            request_id: String::new(),
            profile: default_profile(),
            user_intent: String::new(),
            user_id: String::new(),
            memory_scope: String::new(),
            conversation_id: String::new(),
            session_id: String::new(),
            metadata: Map::new(),
            parent: None,
            created_at: SystemTime::now(),
        }
    }

    /// A context for a new trace.
    pub fn unique() -> Self {
        Self::new(TraceId::unique().to_string())
    }

    /// The trace that everything under this context belongs to.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    pub(crate) fn shared_trace_id(&self) -> Arc<str> {
        self.trace_id.clone()
    }

    fields! {
        /// The request this belongs to.
        request_id / with_request_id;
        /// The profile it runs under.
        profile / with_profile;
        /// What the user wants.
        user_intent / with_user_intent;
        /// Who the user is.
        user_id / with_user_id;
        /// The part of memory it may see; needs a user id.
        memory_scope / with_memory_scope;
        /// The conversation; needs a session id.
        conversation_id / with_conversation_id;
        /// The session.
        session_id / with_session_id;
    }

    /// Whatever else the orchestrator says.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The same context with `key` added to its metadata.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// A child of this context with an intent of its own: same trace, new creation time.
    #[must_use]
    #[doc(alias = "with_user_intent")]
    pub fn child(&self, user_intent: impl Into<String>) -> Self {
        Self {
            user_intent: user_intent.into(),
            parent: Some(Arc::new(self.clone())),
            created_at: SystemTime::now(),
            ..self.clone()
        }
    }

    /// The context this is a child of.
    #[doc(alias = "parent_context")]
    pub fn parent(&self) -> Option<&ExecutionContext> {
        self.parent.as_deref()
    }

    /// When it was made.
    pub fn created_at(&self) -> SystemTime {
        self.created_at
    }

    /// Everything that is wrong with it.
    pub fn validate(&self) -> Result<(), Vec<ContextDefect>> {
        let mut defects = Vec::new();
        if self.trace_id.is_empty() {
            defects.push(ContextDefect::NoTraceId);
        }
        if !self.memory_scope.is_empty() && self.user_id.is_empty() {
            defects.push(ContextDefect::MemoryScopeWithoutUser);
        }
        if !self.conversation_id.is_empty() && self.session_id.is_empty() {
            defects.push(ContextDefect::ConversationWithoutSession);
        }
        if defects.is_empty() { Ok(()) } else { Err(defects) }
    }
}

/// What can be wrong with an [`ExecutionContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContextDefect {
    /// It has no trace id.
    NoTraceId,
    /// It has a memory scope but no user.
    MemoryScopeWithoutUser,
    /// It has a conversation but no session.
    ConversationWithoutSession,
}

impl fmt::Display for ContextDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTraceId => "trace_id is required",
            Self::MemoryScopeWithoutUser => "memory_scope needs a user_id",
            Self::ConversationWithoutSession => "conversation_id needs a session_id",
        })
    }
}

impl std::error::Error for ContextDefect {}
