//! An instance that is part of a recorded run: its begin and its end are on record, and the ends of
//! those that died before it are delivered first.

use super::instance::OnShutdown;
use super::{Agent, Inner, Label};
use crate::error::Error;
use crate::hook::Point;
use crate::id::InstanceId;
use crate::kernel::{Ends, Site, sequence};
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::step::{ScopeEnd, ScopeRecord, StepScope, Steps};
use crate::sync::atomic::AtomicUsize;
use std::sync::Arc;

impl Agent {
    /// Makes the life of this instance part of a recorded run, before it is started: its begin and
    /// its end are recorded once each, and what happens in it. Its turns are recorded each by itself:
    /// [`Request::recorded`](super::Request::recorded).
    ///
    /// If an earlier life of the run left an instance of this name at this place without an end, its
    /// `on_shutdown` hooks are called first when this one starts, with
    /// [`ExitReason::Crashed`]; the hooks of this one see that it is
    /// [resumed](crate::context::Cx::resumed).
    pub fn record(&self, steps: &Steps) -> Result<(), Error> {
        let inner = self.inner();
        if inner.cell.life() != Phase::Uninitialized {
            return Err(Error::not_ready(inner.phase().state(), "uninitialized"));
        }
        let here = steps.at(format_args!("@{}", inner.config().name));
        let scope = StepScope::new(here.of_life(here.log().life()));
        inner.extra().steps.set(scope).map_err(|_| {
            Error::invalid(format!("agent `{}` is part of a recorded run already", inner.name()))
        })
    }
}

impl Inner {
    fn scope_record(&self, scope: &StepScope) -> ScopeRecord {
        ScopeRecord::instance(&scope.steps, self.name(), self.id)
    }

    /// Puts on record that the instance has begun, and passed so many entries.
    pub(super) async fn recorded_as_begun(&self, entered: usize) -> Result<(), Error> {
        let Some(scope) = self.steps() else { return Ok(()) };
        let mut record = self.scope_record(scope);
        record.entered = entered;
        scope.log().begin(record).await
    }

    /// Puts on record that the instance is over.
    pub(crate) async fn recorded_as_ended(&self, reason: ExitReason) {
        let Some(scope) = self.steps() else { return };
        let end = ScopeEnd::of_instance(reason);
        if let Err(error) = scope.log().end(&self.scope_record(scope), end).await {
            // The next life of the run ends it again.
            tracing::error!(agent = self.name(), "an end was not recorded: {error}");
        }
    }

    /// Delivers the ends of instances that earlier lives of the run have left here.
    pub(super) async fn bury_the_dead(self: &Arc<Self>) -> Result<(), Error> {
        let Some(scope) = self.steps() else { return Ok(()) };
        for dead in scope.log().unended(scope.place()) {
            self.bury(scope, &dead).await?;
        }
        Ok(())
    }

    async fn bury(self: &Arc<Self>, scope: &StepScope, dead: &ScopeRecord) -> Result<(), Error> {
        let Some(id) = dead.instance else { return Ok(()) };
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnShutdown) {
            let corpse = self.corpse(dead, id, &scope.steps);
            let count = chain.entries.len();
            let entered = AtomicUsize::new(dead.entered.min(count));
            let ended = AtomicUsize::new(0);
            let mut site = Site::of_instance(&corpse, 1);
            site.signal = None;
            let ends = Ends::Within(self.config().limits.ends);
            let reason = ExitReason::Crashed;
            let mut end = OnShutdown { entered: &entered, ended: &ended, count, reason };
            // Ends are always continued; there is nothing to fail with.
            let _ = sequence(&site, chain, ends, &mut end).await;
            if let Some(trouble) = scope.log().trouble() {
                return Err(trouble);
            }
        }
        scope.log().end(dead, ScopeEnd::of_instance(ExitReason::Crashed)).await
    }

    /// What is left of an instance whose process died: who it was.
    fn corpse(self: &Arc<Self>, dead: &ScopeRecord, id: InstanceId, steps: &Steps) -> Arc<Inner> {
        let label = Label::Given(dead.agent.clone());
        let mut corpse = Inner::new(self.blueprint.clone(), label, self.bus.clone(), None);
        if let Some(inner) = Arc::get_mut(&mut corpse) {
            inner.id = id;
        }
        let extra = corpse.extra();
        // It is new; nobody else has set them.
        let _ = extra.steps.set(StepScope::new(steps.of_instance(dead)));
        if let Some(context) = self.if_extra().and_then(|extra| extra.context.get()) {
            let _ = extra.context.set(context.clone());
        }
        let _ = corpse.cell.go(Phase::Uninitialized, Phase::ShuttingDown);
        corpse
    }
}
