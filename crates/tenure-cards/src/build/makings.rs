//! What ready-made hooks are made with in a project.

use super::model::read_script;
use crate::feature::Feature;
use crate::project::confine_new;
use crate::sandbox::{Grant, sandboxed};
use crate::trust::CommandChecks;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::cache::{Cache, MemoryCache};
use tenure_core::model::Model;
use tenure_hooks::ready::{Makings, Shared};
use tenure_hosts::{Environment, StartCheck};
use tenure_models::provider::{ProviderErrorKind, Providers};
use tenure_models::{Passthrough, Playback, Silent, Slow};

/// What all hooks of a run are made with.
#[derive(Clone, Default)]
pub(super) struct Supplies {
    pub(super) root: PathBuf,
    pub(super) providers: Option<Providers>,
    pub(super) environment: Environment,
    /// `limits.tool` of the project.
    pub(super) tool_limit: Option<Duration>,
    pub(super) shared: Shared,
    pub(super) cache: Option<Arc<dyn Cache>>,
    /// The names of all agents, sorted; none, if some are not known.
    pub(super) agents: Option<Arc<[String]>>,
    /// What to do where an agent is not among them.
    pub(super) more_agents: Option<Arc<str>>,
    /// The commands of the project.
    pub(super) commands: Option<CommandChecks>,
}

impl Supplies {
    pub(super) fn root(&self) -> &Path {
        &self.root
    }
}

/// What is said of a hook that could be made.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// A part of it is hardly meant so.
    Doubt { field: String, message: String },
    /// It cannot run here, which is not the file's fault.
    Need { message: String, help: String },
}

/// The place of one hook: whose it is, and what its file says of it beside its options.
#[derive(Clone, Copy)]
pub(super) struct HookSite<'a> {
    /// The folder that paths start from.
    pub(super) dir: &'a Path,
    /// The files that its commands are declared to write.
    pub(super) writes: &'a [PathBuf],
    /// The agent's own model.
    pub(super) own_model: Option<&'a str>,
    /// The confinement that its file asks for.
    pub(super) sandbox: Option<&'a Grant>,
}

/// What one hook is made with.
pub(super) struct HookMakings<'a> {
    supplies: &'a Supplies,
    site: HookSite<'a>,
    said: RefCell<Vec<Said>>,
}

impl<'a> HookMakings<'a> {
    pub(super) fn new(supplies: &'a Supplies, site: HookSite<'a>) -> Self {
        Self { supplies, site, said: RefCell::default() }
    }

    pub(super) fn into_said(self) -> Vec<Said> {
        self.said.into_inner()
    }
}

impl Makings for HookMakings<'_> {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let text = name.trim();
        if let Some(path) = text.strip_prefix("script:") {
            let script = read_script(path.trim(), self.site.dir, &self.supplies.root)?;
            // By its name it is told apart from the agent's own, and from others.
            return Ok(Arc::new(script.named(text)));
        }
        Ok(match text {
            "passthrough" => Arc::new(Passthrough::new()),
            "playback" => Arc::new(Playback::loading()),
            "slow" => Arc::new(Slow::new()),
            "silent" => Arc::new(Silent::new()),
            _ => {
                let Some(providers) = &self.supplies.providers else {
                    return Err(format!("there is no provider for the model `{text}` here"));
                };
                match providers.model(text) {
                    Ok(model) => Arc::new(model),
                    Err(error) => match error.kind() {
                        ProviderErrorKind::NoKey
                        | ProviderErrorKind::KeyFile
                        | ProviderErrorKind::HostNotAllowed
                        | ProviderErrorKind::BadVariable => {
                            let message = format!("a hook cannot use the model `{text}`: {error}");
                            let help = error.help().to_owned();
                            self.said.borrow_mut().push(Said::Need { message, help });
                            // It is not run: what is needed is missing.
                            Arc::new(Passthrough::new())
                        }
                        ProviderErrorKind::NotBuilt => {
                            let missing =
                                Feature::Providers.missing(&format!("the model `{text}`"));
                            return Err(format!("{missing}; {}", Feature::Providers.help()));
                        }
                        _ => return Err(format!("{error}; {}", error.help())),
                    },
                }
            }
        })
    }

    fn may_send(&self, variable: &str, url: &str) -> Result<(), String> {
        let Some(providers) = &self.supplies.providers else { return Ok(()) };
        for owner in providers.owners_of(variable) {
            let target = providers.check_key_target(&owner, url);
            target.map_err(|error| format!("{variable} is not sent: {error}; {}", error.help()))?;
        }
        Ok(())
    }

    fn own_model(&self) -> Option<&str> {
        self.site.own_model
    }

    fn agents(&self) -> Option<&[String]> {
        self.supplies.agents.as_deref()
    }

    fn more_agents(&self) -> Option<&str> {
        self.supplies.more_agents.as_deref()
    }

    fn path(&self, path: &str) -> Result<PathBuf, String> {
        let found = confine_new(&self.supplies.root, self.site.dir, Path::new(path));
        found.map_err(|error| format!("the path `{path}` {error}"))
    }

    fn root(&self) -> PathBuf {
        self.supplies.root.clone()
    }

    /// Where nothing is recorded, answers are kept for as long as the process lives.
    fn cache(&self) -> Option<Arc<dyn Cache>> {
        let in_process = || self.supplies.shared.part("cache", "process", MemoryCache::new);
        Some(self.supplies.cache.clone().unwrap_or_else(|| in_process()))
    }

    fn environment(&self) -> Environment {
        sandboxed(&self.supplies.environment, self.site.sandbox)
    }

    fn tool_limit(&self) -> Option<Duration> {
        self.supplies.tool_limit
    }

    fn start_check(&self, argv: &[String], dir: &Path) -> Option<StartCheck> {
        self.supplies
            .commands
            .as_ref()
            .map(|commands| commands.check_argv(argv, dir, self.site.writes))
    }

    fn shared(&self) -> &Shared {
        &self.supplies.shared
    }

    fn warn(&self, field: &str, message: String) {
        self.said.borrow_mut().push(Said::Doubt { field: field.to_owned(), message });
    }
}
