//! The loop of objects that are neither host nor claim nor cluster, such as a BMC that is a resource of its own: object → step → writes,
//! then a look.

use std::sync::Arc;
use std::time::Duration;

use engine::failure::Failure;
use engine::host::BmcSight;
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use crate::clock::Clock;
use crate::companions::Companions;
use crate::depot::Depot;
use crate::dialect::{Connection, Settings, View, Writes};
use crate::drive::Loop;
use crate::fingerprint;
use crate::hands::{Hands, Job};
use crate::herald::Herald;
use crate::host::{connect, spread};
use crate::object::{Object, ObjectId};
use crate::relatives::{Dependents, Related, Relative};
use crate::vault::Vault;
use crate::watches::Change;
use crate::writer::{Ownership, WriteError, Writer, with_finalizer};

/// How often one reconcile may step: once, and once more to tell that there is no way to the BMC.
const STEPS: usize = 2;

/// A kind of resource that is neither host nor claim nor cluster, and how it is to be understood.
pub trait ObjectDialect: Send + Sync + 'static {
    /// The resource.
    type Object: Object;

    /// The dialect's name, for metrics and logs.
    const NAME: &'static str;
    /// Keeps the object until it may go.
    const FINALIZER: &'static str;
    /// What is ours in its status.
    const OURS: Ownership;
    /// The fields that name its credentials and its certificate authorities.
    const SECRET_FIELDS: [&'static str; 2];

    /// Kinds of objects that it depends on, beside Secrets.
    fn relatives() -> Vec<Relative> {
        Vec::new()
    }

    /// The related objects that this one names, by name. A change of one wakes it. Its credentials need not be among them.
    fn depends_on(_: &View<'_, Self::Object>) -> Vec<ObjectId> {
        Vec::new()
    }

    /// How to speak to its BMC, or what is wrong with what it says about that; `None` if it has no BMC.
    fn connection(_: &View<'_, Self::Object>) -> Option<Result<Connection, Failure>> {
        None
    }

    /// Decides what follows from the object and from what was last seen of its BMC. Pure.
    fn step(view: &View<'_, Self::Object>, look: &Look<'_>) -> Decision;
}

/// What was last seen of the BMC of an object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// What the BMC would be spoken to with now; empty if the object has none.
    pub inputs: &'a str,
    /// What was seen with these.
    pub sight: Option<&'a BmcSight>,
    /// Differs between objects, so that they are not all looked at in the same moment.
    pub spread: u8,
}

/// What follows. First everything is written, then the job is begun.
#[derive(Debug, Default)]
pub struct Decision {
    /// Whether the object must not go without our knowledge.
    pub protect: bool,
    /// What is to be written.
    pub writes: Writes,
    /// What is to be done at the BMC.
    pub job: Option<Job>,
    /// When to decide again, if nothing happens before.
    pub again: Option<Timestamp>,
    /// Whether the object, which is being deleted, may go.
    pub finished: bool,
}

/// What all reconciles of one dialect share.
pub(crate) struct ObjectLoop<D: ObjectDialect> {
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) related: Related,
    pub(crate) companions: Companions,
    pub(crate) vault: Vault,
    pub(crate) hands: Arc<Hands>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) depot: Option<Arc<Depot>>,
    pub(crate) herald: Arc<Herald>,
    pub(crate) writer: Writer<D::Object>,
    pub(crate) settings: Arc<Settings>,
}

impl<D: ObjectDialect> Loop for ObjectLoop<D> {
    type Object = D::Object;

    fn writer(&self) -> &Writer<D::Object> {
        &self.writer
    }

    fn take(&self, change: &Change<'_, D::Object>) {
        match change {
            Change::Seen(object) => self.hands.welcome(&ObjectId::of(*object)),
            Change::Gone(key) => {
                self.retire(key);
                self.writer.forget(key);
            }
            Change::Begin | Change::Complete => {}
        }
    }

    fn halt(&self, key: &ObjectId) {
        self.hands.forget(key);
    }

    fn resume(&self, key: &ObjectId) {
        self.hands.welcome(key);
    }

    async fn decide(&self, seen: Arc<D::Object>) -> Result<Option<Duration>, WriteError> {
        let object = self.writer.newest(seen);
        let object = object.as_ref();
        let key = ObjectId::of(object);
        let ours = object.finalizers().iter().any(|finalizer| finalizer == D::FINALIZER);
        if !self.hands.knows(&key) || (object.meta().deletion_timestamp.is_some() && !ours) {
            self.retire(&key);
            return Ok(None);
        }
        let now = self.clock.now();
        let view = View { object, related: &self.related, depot: self.depot.as_deref(), settings: &self.settings, now };
        let decision = self.step(&view, &key).await;
        if decision.finished {
            self.writer.let_go(object, D::FINALIZER).await?;
            self.retire(&key);
            return Ok(None);
        }
        self.write(object, ours, decision.writes, decision.protect).await?;
        if let Some(job) = decision.job {
            self.hands.submit(&key, job);
        }
        let pause = |again: Timestamp| self.clock.pause(again.duration_since(self.clock.now()));
        Ok(decision.again.map(pause).map(|pause| pause.max(Duration::from_millis(20))))
    }
}

impl<D: ObjectDialect> ObjectLoop<D> {
    /// Decides, and takes up a way to the BMC if there is something to do there.
    async fn step(&self, view: &View<'_, D::Object>, key: &ObjectId) -> Decision {
        let connection = D::connection(view);
        let known = connection.iter().flatten().flat_map(Connection::secrets).cloned();
        self.dependents.set(key, known.chain(D::depends_on(view)).collect());
        let inputs = match &connection {
            Some(Ok(connection)) => fingerprint::inputs(connection, &self.vault, []),
            Some(Err(failure)) => fingerprint::digest(&failure.to_string()),
            None => return D::step(view, &Look::default()),
        };
        let mut decision = Decision::default();
        for _ in 0..STEPS {
            let sight = self.hands.sight(key).filter(|sight| sight.inputs == inputs);
            decision = D::step(view, &Look { inputs: &inputs, sight: sight.as_ref(), spread: spread(key) });
            let Some(job) = &decision.job else { break };
            if self.hands.is_connected(key, &inputs) {
                break;
            }
            let way = match &connection {
                Some(Ok(connection)) => {
                    connect(&self.hands, &self.vault, key, connection, D::SECRET_FIELDS, vec![]).await
                }
                Some(Err(failure)) => Err(failure.clone()),
                None => break,
            };
            match way {
                Ok(()) => break,
                Err(failure) => self.hands.refuse(key, &inputs, job.number, failure),
            }
        }
        decision
    }

    /// The object with its finalizer, its companions, its status: in this order, or not at all.
    async fn write(&self, object: &D::Object, ours: bool, writes: Writes, protect: bool) -> Result<(), WriteError> {
        let Writes { object: change, companions, status, events, counts } = writes;
        let mut patch = change.unwrap_or_else(|| json!({}));
        if protect && !ours && object.meta().deletion_timestamp.is_none() {
            patch["metadata"]["finalizers"] = with_finalizer(object, D::FINALIZER);
        }
        let is_changed = patch != json!({});
        let written = if is_changed { Some(self.writer.patch(object, patch, "object").await?) } else { None };
        for companion in &companions {
            self.companions.settle(companion, &self.related).await?;
        }
        if let Some(status) = status {
            self.writer.status(written.as_ref().unwrap_or(object), status).await?;
        }
        for news in events {
            self.herald.tell(object.object_ref(&()), news);
        }
        self.writer.count(&counts);
        Ok(())
    }

    fn retire(&self, key: &ObjectId) {
        self.hands.forget(key);
        self.dependents.remove(key);
    }
}
