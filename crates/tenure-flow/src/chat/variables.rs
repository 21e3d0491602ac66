//! What a chat has of the declared variables.

use super::talk::Talk;
use crate::variables::RuntimeKeys;
use serde_json::Value;
use std::collections::BTreeMap;
use tenure_core::Error;
use tenure_core::chat::Chat;
use tenure_core::step::Steps;

impl Talk {
    /// Sets what the chat begins with: what it is given, and what the declared variables are.
    pub(super) async fn begin(
        &mut self,
        chat: &Chat,
        keys: RuntimeKeys,
        given: BTreeMap<String, Value>,
        steps: Option<&Steps>,
    ) -> Result<(), Error> {
        let Some(declared) = &self.flow.inner.variables else {
            // The same answer as for a workflow that declares some.
            if let Some(key) = Chat::system_keys().iter().find(|key| given.contains_key(**key)) {
                return Err(Error::invalid(format!(
                    "context variable `{key}` cannot be given to a chat: it comes from the platform"
                )));
            }
            chat.set_variables(given);
            return Ok(());
        };
        let session = declared.open_at(keys, given, steps).await?;
        chat.set_variables(session.values());
        self.session = Some(session);
        Ok(())
    }

    /// Writes what the chat's own ends have changed. What fails now changes nothing of how it ended.
    pub(super) async fn settle(&self, chat: &Chat) {
        let Some(session) = &self.session else { return };
        if let Err(error) = session.settle(chat).await {
            tracing::error!(chat = chat.id(), "what the chat left could not be written: {error}");
        }
    }
}
