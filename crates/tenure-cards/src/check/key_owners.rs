//! The providers whose keys a text would give away.

use super::Loaded;
use std::collections::BTreeSet;
use tenure_models::provider::Providers;

/// Shorter keys are made up, and may be part of anything.
const LEAST_KEY: usize = 6;

/// The keys of providers as they are now, to be looked for.
pub(crate) struct KeyOwners {
    pub(crate) providers: Providers,
    keys: Vec<(String, String)>,
}

impl Loaded {
    /// Returns the keys of providers, to be looked for.
    pub(crate) fn key_owners(&self) -> KeyOwners {
        KeyOwners { providers: self.providers(), keys: self.provider_keys() }
    }
}

impl KeyOwners {
    /// Returns the providers whose key a value has: because it was made of these variables, or by what it is.
    pub(crate) fn of(&self, variables: &[String], value: &str) -> BTreeSet<String> {
        let named = variables.iter().flat_map(|name| self.providers.owners_of(name));
        let has = |key: &str| key.trim().len() >= LEAST_KEY && value.contains(key.trim());
        let held = self.keys.iter().filter(|(_, key)| has(key)).map(|(owner, _)| owner.clone());
        named.chain(held).collect()
    }
}
