//! What follows a decision: writes in their order, then events and metrics, then acts.

use std::time::Duration;

use api::boot::BootSession;
use engine::host::{Act, Anchor, Happening, Phase, Step};
use engine::server::{Scope, Seen};
use kube::api::DeleteParams;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use super::{Case, Decision, HostLoop, shown};
use crate::dialect::{ANCHOR_ANNOTATION, Connection, HostDialect, Outcome, View};
use crate::hands::Job;
use crate::herald::News;
use crate::object::ObjectId;
use crate::writer::{WriteError, with_finalizer};

impl<D: HostDialect> HostLoop<D> {
    /// Stores the anchor, then the status, then hands the acts over: in this order, or not at all.
    pub(super) async fn carry_out(
        &self,
        case: &Case<'_, D>,
        decision: Decision,
    ) -> Result<Option<Duration>, WriteError> {
        let Decision { step, bmc } = decision;
        let key = &case.key;
        if step.finished {
            self.publish_events(case.host, &step);
            self.let_go(case.host, key).await?;
            return Ok(None);
        }
        if step.unclaim {
            self.take_claim_off(case.host, key).await?;
            self.publish_events(case.host, &step);
            return Ok(None);
        }
        if step.undecided {
            self.submit(key, step.record.acted, Vec::new(), step.look);
            return Ok(self.next_time(step.again));
        }
        // A probe whose server is off already ends as soon as it has reported.
        let ended = || case.anchor().filter(|anchor| anchor.probing).and_then(Anchor::session);
        let session = self.session(key, step.record.anchor.session().or_else(ended));
        let kept = case.connection.as_ref().ok().and_then(Connection::kept_credentials);
        let credentials = kept.and_then(|kept| self.vault.data_version(kept));
        let writes = D::render(&Outcome {
            host: case.host,
            related: &self.related,
            depot: self.depot.as_deref(),
            settings: &self.settings,
            goal: &case.goal,
            step: &step,
            seen: shown(bmc.as_ref(), case, step.stranger),
            session: session.as_ref(),
            credentials: credentials.as_deref(),
            now: self.clock.now(),
        });
        let anchored = self.store_anchor(case, &step, writes.object).await?;
        for companion in &writes.companions {
            self.companions.settle(companion, &self.related).await?;
        }
        let host = anchored.as_ref().unwrap_or(case.host);
        if let Some(status) = writes.status {
            self.writer.status(host, status).await?;
        }
        let marks_again = self.mark(host).await;
        self.observe_transition(case, &step);
        self.publish_events(case.host, &step);
        for news in writes.events {
            self.herald.tell(case.host.object_ref(&()), news);
        }
        self.writer.count(&writes.counts);
        self.close_sessions(key, step.record.anchor.session());
        if let Some(stored) = bmc.filter(|_| step.record.inspected) {
            self.hands.drop_hardware(key, &stored);
        }
        self.settle_slot(case, &step);
        if let Some(cause) = &step.cause {
            let acts: Vec<_> = step.acts.iter().map(Act::name).collect();
            let why = cause.tell(D::words());
            info!(host = %key, acts = acts.join(", "), reason = cause.name(), cause = why, "acting on the server");
        }
        self.submit(key, step.record.acted, step.acts, step.look);
        Ok(self.next_time(step.again).into_iter().chain(marks_again).min())
    }

    /// Marks what the host needs. A host that may go without us would leave its marks behind.
    async fn mark(&self, host: &D::Host) -> Option<Duration> {
        let mark = D::MARK.as_ref()?;
        let is_held = host.finalizers().iter().any(|finalizer| finalizer == D::FINALIZER);
        if !is_held || host.meta().deletion_timestamp.is_some() {
            return None;
        }
        self.marks.settle(host, mark, &D::marked(&self.view(host))).await
    }

    /// Keeps the host's place among the deployments only as long as something happens for it.
    fn settle_slot(&self, case: &Case<'_, D>, step: &Step) {
        let name = &case.key;
        let fault = step.record.fault.as_ref();
        let is_held = fault.is_some_and(|fault| fault.inputs == case.inputs && self.clock.now() < fault.next_try);
        match step.record.phase {
            Phase::Preparing | Phase::Provisioning if is_held => self.brake.rest(name),
            Phase::Preparing if case.goal.order.is_some() => {}
            // Its place was taken before a restart, or by another leader.
            Phase::Provisioning => self.brake.resume(name),
            _ => self.brake.done(name),
        }
        self.brake.mark(name, fault.is_some());
    }

    pub(super) fn submit(&self, key: &ObjectId, number: u64, acts: Vec<Act>, look: Option<Scope>) {
        if let Some(look) = look {
            self.hands.submit(key, Job { number, acts, look });
        }
    }

    /// What was told of deployments and probes that are over is of no use any more. What is left behind is found again at the next change.
    fn close_sessions(&self, key: &ObjectId, current: Option<&str>) {
        for stale in self.sessions.stale(key, current) {
            let sessions = stale.api::<BootSession>(&self.client);
            self.herald.spawn(async move {
                let deleted = sessions.delete(&stale.name, &DeleteParams::default()).await;
                deleted.inspect_err(|error| debug!(%error, session = %stale, "cannot delete session")).ok();
            });
        }
    }

    fn next_time(&self, again: Option<jiff::Timestamp>) -> Option<Duration> {
        let pause = self.clock.pause(again?.duration_since(self.clock.now()));
        Some(pause.max(Duration::from_millis(20)))
    }

    /// Stores the anchor, with whatever else the dialect changes of the object, in one write.
    async fn store_anchor(
        &self,
        case: &Case<'_, D>,
        step: &Step,
        change: Option<Value>,
    ) -> Result<Option<D::Host>, WriteError> {
        let host = case.host;
        // A host that was only looked at has nothing to protect: one write less for each of a thousand. One that cannot be looked at is
        // kept where others bear its mark: they may go with it.
        let is_bare = step.record.anchor == Anchor::default() && !host.annotations().contains_key(ANCHOR_ANNOTATION);
        let is_kept = D::MARK.is_some() && step.record.fault.is_some();
        if is_bare && step.acts.is_empty() && change.is_none() && !is_kept {
            return Ok(None);
        }
        let mut patch = change.unwrap_or_else(|| json!({}));
        let is_stored = case.remembered.anchor.as_ref().is_ok_and(|known| known.as_ref() == Some(&step.record.anchor));
        if !step.leave_anchor && !is_stored {
            patch["metadata"]["annotations"][ANCHOR_ANNOTATION] = step.record.anchor.to_json().into();
        }
        let finalizers = host.finalizers();
        if host.meta().deletion_timestamp.is_none() && !finalizers.iter().any(|finalizer| finalizer == D::FINALIZER) {
            patch["metadata"]["finalizers"] = with_finalizer(host, D::FINALIZER);
        }
        if patch == json!({}) {
            return Ok(None);
        }
        self.writer.patch(host, patch, "anchor").await.map(Some)
    }

    async fn let_go(&self, host: &D::Host, key: &ObjectId) -> Result<(), WriteError> {
        if let Some(mark) = &D::MARK {
            self.marks.release(host, mark, &D::marked(&self.view(host))).await?;
        }
        self.companions.release(key, D::COMPANION_FINALIZERS, &self.related).await?;
        self.writer.let_go(host, D::FINALIZER).await?;
        info!(host = %key, "host removed");
        self.retire(key);
        Ok(())
    }

    /// Takes off a claim that nothing was done for. The one thing that this loop writes beside metadata and status.
    async fn take_claim_off(&self, host: &D::Host, key: &ObjectId) -> Result<(), WriteError> {
        self.writer.patch(host, D::without_claim(), "claim").await?;
        info!(host = %key, "stale claim removed");
        Ok(())
    }

    pub(super) async fn pause(
        &self,
        view: &View<'_, D::Host>,
        key: &ObjectId,
        why: &str,
        seen: Option<&Seen>,
    ) -> Result<(), WriteError> {
        self.brake.rest(key);
        match D::paused_status(view, why, seen) {
            Some(status) => self.writer.status(view.object, status).await.map(drop),
            None => Ok(()),
        }
    }

    fn observe_transition(&self, case: &Case<'_, D>, step: &Step) {
        let before = case.remembered.record.as_ref();
        let phase = step.record.phase;
        if let Some(before) = before.filter(|before| before.phase != phase) {
            let spent = step.record.since.duration_since(before.since);
            let [from, to] = [before.phase, phase].map(D::phase_name);
            self.metrics.left_state(D::NAME, from, spent.unsigned_abs());
            if from != to {
                info!(host = %case.key, from, to, "state");
            }
        }
        let fault_before = before.and_then(|before| before.fault.as_ref());
        match (fault_before, &step.record.fault) {
            (known, Some(fault)) => {
                if known.is_none_or(|known| known.count != fault.count || known.failure != fault.failure) {
                    let reason = fault.failure.kind.reason();
                    self.metrics.fault(D::NAME, reason);
                    warn!(host = %case.key, reason, count = fault.count, next_try = %fault.next_try, "{}", fault.failure.tell(D::words()));
                }
            }
            (Some(over), None) => {
                info!(host = %case.key, reason = over.failure.kind.reason(), "recovered");
            }
            (None, None) => {}
        }
    }

    fn publish_events(&self, host: &D::Host, step: &Step) {
        // Of the phases that were passed in one step, only the last is worth an event.
        let is_phase = |event: &Happening| matches!(event, Happening::Entered(..));
        let last = step.events.iter().rposition(is_phase);
        for (position, event) in step.events.iter().enumerate() {
            if is_phase(event) && Some(position) != last {
                continue;
            }
            if let Some(reason) = D::event_reason(event.name()) {
                let (warning, message) = (event.is_warning(), event.tell(D::words()));
                self.herald.tell(host.object_ref(&()), News { warning, reason: reason.to_owned(), message });
            }
        }
    }
}
