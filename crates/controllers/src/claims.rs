//! The loop of a claim: object → goal and memory → step → id and finalizer, placing, provider id, status.
//!
//! Every write bears the resourceVersion that it was decided on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::capi::BLOCK_MOVE_ANNOTATION;
use engine::claim::{self, Act, Goal, Memory, Owner, Refusal, Sight, Standing, step};
use engine::failure::Failure;
use engine::host::Consumer;
use engine::placement::{BootWay, Pool, Request};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::runtime::reflector::Store;
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::cluster_api::{ClusterApi, MachineView, cluster_named, paused_itself};
use crate::companions::{Companion, Companions};
use crate::consumer;
use crate::depot::{ImageCheck, NetworkBoots, Question};
use crate::dialect::HostDialect;
use crate::drive::Loop;
use crate::herald::{Herald, News};
use crate::metrics::Metrics;
use crate::nodes::{Awaited, Nodes};
use crate::object::{Object, ObjectId, api};
use crate::placer::{Placer, Wanted};
use crate::relatives::{Dependents, Related, Relative};
use crate::roster::{Bearer, Holding, Roster};
use crate::vault::Vault;
use crate::watches::Change;
use crate::writer::{Ownership, WriteError, Writer, patch, with_finalizer};

/// How often one reconcile may decide: once, and once more after each write to the object itself.
const DECISIONS: usize = 4;
/// How often it is looked again while something outside is in the way.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Whatever a host waits for that lasts so long is told by its claim, too. Most waits do not, and each would be a write.
pub(crate) const LASTING: SignedDuration = SignedDuration::from_secs(15);

/// How long the watch is given to show what the API server already says.
const CATCH_UP: Duration = Duration::from_millis(500);

/// A kind of resource that claims hosts, and how it is to be understood.
pub(crate) trait ClaimDialect: Send + Sync + 'static {
    /// The resource.
    type Claim: Object;
    /// The hosts that it claims.
    type Hosts: HostDialect;

    /// The dialect's name, for metrics and logs.
    const NAME: &'static str;
    /// All words that [`ClaimDialect::phase`] answers.
    const PHASES: &'static [&'static str];
    /// Keeps the object until its host is free again.
    const FINALIZER: &'static str;
    /// What is ours in its status.
    const OURS: Ownership;
    /// Labels of hosts that make failure domains where a cluster does not say which.
    const DOMAIN_KEYS: &'static [&'static str];
    /// Whether its claims are for Machines of Cluster API. Others are for nobody but their authors.
    const CLUSTER_API: bool;

    /// Kinds of objects that its claims depend on, beside Secrets and those of Cluster API.
    fn relatives() -> Vec<Relative> {
        Vec::new()
    }
    /// The related objects that this claim names, by name. A change of one wakes it.
    fn depends_on(_: &ClaimView<'_, Self::Claim>) -> Vec<ObjectId> {
        Vec::new()
    }

    /// Whether nothing is to be done for this claim: its owner says so.
    fn is_left_alone(_: &Self::Claim) -> bool {
        false
    }

    /// Finds the hosts that bear this claim, and perhaps others.
    fn bearers(claim: &ObjectId) -> ListParams;
    /// Where its hosts are, all its life.
    fn pool(claim: &Self::Claim) -> Pool;
    /// The phase that its status shows.
    fn phase(claim: &Self::Claim) -> &'static str;

    /// What is wanted.
    fn goal(view: &ClaimView<'_, Self::Claim>) -> Goal;
    /// The image that somebody has to look at before a host is claimed.
    fn image(view: &ClaimView<'_, Self::Claim>) -> Option<Question>;
    /// What is remembered.
    fn memory(view: &ClaimView<'_, Self::Claim>) -> Memory;
    /// What the placer needs to know.
    fn request(view: &ClaimView<'_, Self::Claim>) -> Request;
    /// The claim and the order, as a merge patch for a host.
    fn order(view: &ClaimView<'_, Self::Claim>, id: &str) -> Value;
    /// Whether what a host is ordered to do is what the claim asks for.
    fn is_ordered(view: &ClaimView<'_, Self::Claim>, on_host: &str) -> bool;
    /// The order without the claim, as a merge patch for the host that bears the claim.
    fn reorder(view: &ClaimView<'_, Self::Claim>) -> Value;
    /// The end of a claim, as a merge patch for a host.
    fn release(view: &ClaimView<'_, Self::Claim>, id: &str, now: Timestamp, quarantine: Option<&str>) -> Value;
    /// What keeps others from a host, as a merge patch for it.
    fn quarantine(why: &str) -> Value;
    /// Its provider id, as a merge patch.
    fn provider(provider: &str) -> Value;
    /// What is to be changed of the object beside its status, as a merge patch.
    fn change(_: &ClaimView<'_, Self::Claim>, _: &Decided<'_>) -> Option<Value> {
        None
    }
    /// The Secret that its host needs, as somebody else is to hand it over: which, the field that names it, and the key that it must have.
    fn needs(_: &ClaimView<'_, Self::Claim>) -> Option<(ObjectId, &'static str, &'static str)> {
        None
    }
    /// Objects that are kept beside it.
    fn companions(_: &ClaimView<'_, Self::Claim>, _: &Decided<'_>) -> Vec<Companion> {
        Vec::new()
    }
    /// The new status, or `None` when it says the same as the present one.
    fn status(view: &ClaimView<'_, Self::Claim>, decided: &Decided<'_>) -> Option<Value>;
    /// What people may want to know, if it is another thing than before.
    fn news(view: &ClaimView<'_, Self::Claim>, decided: &Decided<'_>) -> Option<News>;
}

/// A claim, and what there is around it.
pub(crate) struct ClaimView<'a, C> {
    /// The object as it is.
    pub(crate) claim: &'a C,
    /// The Machine of Cluster API that it is for.
    pub(crate) machine: Option<MachineView>,
    /// Labels that tell which failure domain a host is in.
    pub(crate) domain_keys: Vec<String>,
    /// Without a boot service, nothing can be served to its host.
    pub(crate) has_boot_service: bool,
    /// How it serves servers that boot from the network.
    pub(crate) boots: NetworkBoots,
    /// The objects of the kinds that the dialect has declared.
    pub(crate) related: &'a Related,
    /// The time.
    pub(crate) now: Timestamp,
}

/// What was decided about a claim: its status shows it.
pub(crate) struct Decided<'a> {
    /// Where it stands.
    pub(crate) standing: &'a Standing,
    /// Hosts that could not serve it.
    pub(crate) refusals: &'a [Refusal],
    /// Its host.
    pub(crate) holding: Option<&'a Holding>,
    /// Whether Cluster API's Machine waits for bootstrap data.
    pub(crate) machine: Option<&'a claim::Machine>,
    /// What is wrong with the Secret that its host needs.
    pub(crate) lack: Option<&'a Failure>,
}

/// What all reconciles of one dialect share.
pub(crate) struct ClaimLoop<D: ClaimDialect> {
    pub(crate) client: Client,
    /// Only hosts of this namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) placer: Arc<Placer>,
    pub(crate) nodes: Arc<Nodes>,
    /// `None` where there is no Cluster API, because whoever started us said so.
    pub(crate) cluster_api: Option<Arc<ClusterApi>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) writer: Writer<D::Claim>,
    pub(crate) herald: Arc<Herald>,
    /// Checks images; `None` if there is no boot service.
    pub(crate) image_check: Option<ImageCheck>,
    pub(crate) vault: Vault,
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) related: Related,
    pub(crate) companions: Companions,
    /// What was found out about Secrets, and in which version.
    pub(crate) lacks: Lacks,
}

/// What is wrong with Secrets that hosts need, by the version that was read.
pub(crate) type Lacks = Mutex<HashMap<ObjectId, (String, Option<Failure>)>>;

impl<D: ClaimDialect> Loop for ClaimLoop<D> {
    type Object = D::Claim;

    fn writer(&self) -> &Writer<D::Claim> {
        &self.writer
    }

    fn take(&self, change: &Change<'_, D::Claim>) {
        if let Change::Gone(key) = change {
            self.forget(key);
        }
    }

    fn count(&self, store: Store<D::Claim>) {
        let claims = move || {
            let claims = store.state();
            claims.iter().map(|claim| (claim.namespace().unwrap_or_default(), D::phase(claim))).collect()
        };
        self.metrics.follow_claims(D::NAME, D::PHASES, claims);
    }

    fn halt(&self, key: &ObjectId) {
        self.retire(key);
    }

    async fn decide(&self, seen: Arc<D::Claim>) -> Result<Option<Duration>, WriteError> {
        let mut claim = self.writer.newest(seen);
        for _ in 0..DECISIONS {
            let key = ObjectId::of(claim.as_ref());
            if self.placer.is_writing(&key.by_name()) {
                // We are woken when it is known how that ended.
                return Ok(None);
            }
            let ours = claim.finalizers().iter().any(|finalizer| finalizer == D::FINALIZER);
            if claim.meta().deletion_timestamp.is_some() && !ours {
                self.retire(&key);
                return Ok(None);
            }
            if D::is_left_alone(&claim) {
                self.placer.withdraw(&key.by_name());
                return Ok(None);
            }
            let view = self.view(&claim);
            self.dependents.set(&key, D::depends_on(&view));
            let decision = self.look(&view, &key);
            if !decision.step.acts.contains(&Act::Place) && !self.placer.withdraw(&key.by_name()) {
                return Ok(None);
            }
            match self.carry_out(&view, &key, &decision).await? {
                Next::Decide(written) => claim = Arc::new(written),
                Next::Rest(again) => return Ok(again),
            }
        }
        Ok(Some(Duration::from_millis(100)))
    }
}

impl<D: ClaimDialect> ClaimLoop<D> {
    fn view<'a>(&'a self, claim: &'a D::Claim) -> ClaimView<'a, D::Claim> {
        let machine = self.cluster_api().and_then(|cluster_api| cluster_api.machine_of(claim));
        let stated = self
            .cluster_api()
            .zip(machine.as_ref())
            .and_then(|(cluster_api, machine)| cluster_api.domain_keys(&claim.namespace()?, &machine.cluster));
        ClaimView {
            claim,
            machine,
            domain_keys: stated.unwrap_or_else(|| D::DOMAIN_KEYS.iter().map(|key| (*key).to_owned()).collect()),
            has_boot_service: self.image_check.is_some(),
            boots: self.image_check.as_ref().map(ImageCheck::boots).unwrap_or_default(),
            related: &self.related,
            now: self.clock.now(),
        }
    }

    /// What there is to know of Cluster API, for those who belong to it.
    fn cluster_api(&self) -> Option<&ClusterApi> {
        self.cluster_api.as_deref().filter(|_| D::CLUSTER_API)
    }

    fn owner(&self, claim: &D::Claim) -> Owner {
        match self.cluster_api() {
            Some(cluster_api) => cluster_api.owner(claim),
            None if D::CLUSTER_API => paused_itself(claim).map_or(Owner::Nobody, Owner::Paused),
            None => Owner::Nobody,
        }
    }

    fn look(&self, view: &ClaimView<'_, D::Claim>, key: &ObjectId) -> Decision {
        let (memory, pool) = (D::memory(view), D::pool(view.claim));
        let mut holdings = memory.id.as_ref().map(|id| self.roster.holdings(id)).unwrap_or_default();
        for Bearer { key, holding, .. } in &mut holdings {
            holding.host.name = pool.name_of(key.namespace(), &key.name);
            holding.host.ordered = D::is_ordered(view, &holding.order);
        }
        let (goal, owner) = (D::goal(view), self.owner(view.claim));
        let sight = Sight {
            owner: if goal.needs_bootstrap.is_some() { self.with_sight_of_data(owner, view) } else { owner },
            host: holdings.first().map(|held| held.holding.host.clone()),
            doubles: holdings.iter().skip(1).map(|held| held.holding.host.clone()).collect(),
            image: self.image(view),
            refusal: self.placer.refusal(&key.by_name(), D::Hosts::words()),
            now: view.now,
        };
        Decision { step: step(&goal, &memory, &sight), memory, owner: sight.owner, holdings }
    }

    /// The Secret that a Machine names may not be there.
    fn with_sight_of_data(&self, owner: Owner, view: &ClaimView<'_, D::Claim>) -> Owner {
        let Owner::Machine(machine) = owner else { return owner };
        let secret = view.machine.as_ref().and_then(|machine| machine.data_secret.as_ref());
        let namespace = view.claim.namespace();
        let is_there = |name: &String| self.vault.has(&ObjectId::named::<Secret>(namespace.as_deref(), name));
        match machine.bootstrap {
            claim::Bootstrap::Ready if !secret.is_some_and(is_there) => {
                Owner::Machine(claim::Machine { bootstrap: claim::Bootstrap::Missing, ..machine })
            }
            _ => Owner::Machine(machine),
        }
    }

    fn image(&self, view: &ClaimView<'_, D::Claim>) -> claim::Image {
        let question = D::image(view);
        let known = question.zip(self.image_check.as_ref()).map(|(question, check)| check.verdict(&question));
        known.unwrap_or(claim::Image::Unknown)
    }

    fn look_at_image(&self, view: &ClaimView<'_, D::Claim>, key: &ObjectId) {
        if let (Some(question), Some(check)) = (D::image(view), &self.image_check) {
            check.look(&question, &key.by_name());
        }
    }

    async fn carry_out(
        &self,
        view: &ClaimView<'_, D::Claim>,
        key: &ObjectId,
        decision: &Decision,
    ) -> Result<Next<D::Claim>, WriteError> {
        let claim = view.claim;
        // What names the provider lifts the block in the same write.
        if !decision.step.acts.iter().any(|act| matches!(act, Act::NameProvider(_)))
            && let Some(written) = self.block_move(view, decision).await?
        {
            return Ok(Next::Decide(written));
        }
        for act in &decision.step.acts {
            if matches!(act, Act::Release { .. } | Act::GiveBack { .. })
                && let Some(why) = self.paused_now(key).await
            {
                info!(claim = %key, why, "no host is released");
                return Ok(Next::Rest(Some(LOOK_AGAIN)));
            }
            match act {
                Act::Protect => {
                    self.protect(claim).await?;
                    // Who is deleted in this very moment is gone all the same: it gets a host when the watch shows it protected.
                    return Ok(Next::Rest(None));
                }
                Act::NameProvider(provider) => {
                    return self.writer.patch(claim, D::provider(provider), "provider id").await.map(Next::Decide);
                }
                Act::Remember => {
                    return Ok(self.tell(view, decision).await?.map_or(Next::Rest(Some(LOOK_AGAIN)), Next::Decide));
                }
                Act::Reorder { host } => {
                    self.reorder(view, decision, host).await?;
                    return Ok(Next::Decide(claim.clone()));
                }
                Act::LetGo => return self.let_go(claim, key, decision).await,
                Act::Release { quarantine, .. } => self.release(view, decision, *quarantine).await?,
                Act::GiveBack { host } => self.give_back(view, decision, host).await?,
                Act::Place => self.ask(view, key, decision),
                Act::CheckImage => self.look_at_image(view, key),
            }
        }
        self.await_node(view, key, decision);
        self.tell(view, decision).await?;
        Ok(Next::Rest(self.again(decision)))
    }

    /// When to look again although nothing changes.
    fn again(&self, decision: &Decision) -> Option<Duration> {
        let until = |at: Timestamp| self.clock.pause(at.duration_since(self.clock.now())).max(CATCH_UP);
        match &decision.step.standing {
            Standing::Paused(_) | Standing::AwaitsOwner | Standing::NoClusterApi => Some(LOOK_AGAIN),
            Standing::AwaitsBootstrap(claim::Bootstrap::Missing) => Some(CATCH_UP),
            _ if decision.step.acts.contains(&Act::CheckImage) => Some(LOOK_AGAIN),
            Standing::AwaitsHost(_) => {
                let now = self.clock.now();
                let held = decision.step.refusals.iter().filter(|refusal| refusal.holds(now));
                held.map(|refusal| refusal.until).min().map(until)
            }
            Standing::Provisioning { .. } | Standing::Provisioned { .. } => {
                let waiting = decision.holdings.first().and_then(|held| held.holding.waiting.as_ref());
                let told_at = waiting.and_then(|wait| Some(wait.since? + LASTING))?;
                (self.clock.now() < told_at).then(|| until(told_at))
            }
            _ => None,
        }
    }

    /// An id for the claim and a hold on its object, in one write.
    async fn protect(&self, claim: &D::Claim) -> Result<D::Claim, WriteError> {
        let id = format!("{:016x}{:04x}", fastrand::u64(..), fastrand::u16(..));
        let finalizers = with_finalizer(claim, D::FINALIZER);
        let patch = json!({ "metadata": { "annotations": { D::Hosts::CLAIM_ID: id }, "finalizers": finalizers } });
        self.writer.patch(claim, patch, "claim id").await
    }

    fn ask(&self, view: &ClaimView<'_, D::Claim>, key: &ObjectId, decision: &Decision) {
        let Some(id) = &decision.memory.id else { return };
        let mut request = D::request(view);
        if let Some(check) = self.image_check.as_ref().filter(|_| D::image(view).is_some()) {
            // The BMC fetches it from us.
            request.way = BootWay::Image(check.scheme().to_owned());
        }
        let now = self.clock.now();
        let refusals = decision.step.refusals.iter().filter(|refusal| refusal.holds(now));
        request.refused_by = refusals.map(|refusal| (refusal.host.clone(), refusal.why.reason.clone())).collect();
        let wanted = Wanted { request, claim: D::order(view, id) };
        self.placer.ask(&key.by_name(), wanted);
    }

    async fn reorder(&self, view: &ClaimView<'_, D::Claim>, decision: &Decision, host: &str) -> Result<(), WriteError> {
        for held in decision.holdings.iter().filter(|held| held.holding.host.name == host) {
            info!(host = %held.key, "order replaced; the server was not started yet");
            self.write_host(held, D::reorder(view), "the order").await?;
        }
        Ok(())
    }

    /// The node of a machine that runs is awaited until Cluster API has seen it.
    fn await_node(&self, view: &ClaimView<'_, D::Claim>, key: &ObjectId, decision: &Decision) {
        let machine = view.machine.as_ref().filter(|machine| !machine.has_node);
        let uuid = decision.holdings.first().and_then(|held| held.holding.uuid.clone());
        match (&decision.step.standing, machine, uuid) {
            (Standing::Provisioned { provider, .. }, Some(machine), Some(uuid)) => {
                let cluster = cluster_named(key.namespace(), &machine.cluster);
                self.nodes.expect(&key.by_name(), Awaited { cluster, provider: provider.clone(), uuid });
            }
            _ => self.nodes.forget(&key.by_name()),
        }
    }

    /// Why nothing may be done to the host of a claim, as of now and not as of the watch: a server is at stake.
    async fn paused_now(&self, key: &ObjectId) -> Option<String> {
        self.cluster_api()?;
        let consumer = Consumer {
            api_version: D::Claim::api_version(&()).into_owned(),
            kind: D::Claim::kind(&()).into_owned(),
            namespace: key.namespace().to_owned(),
            name: key.name.clone(),
        };
        consumer::pause(&self.client, &consumer, key.namespace(), true).await
    }

    async fn release(
        &self,
        view: &ClaimView<'_, D::Claim>,
        decision: &Decision,
        quarantine: Option<&str>,
    ) -> Result<(), WriteError> {
        for held in &decision.holdings {
            if held.holding.host.claimed {
                self.write_host(held, D::release(view, &held.holding.id, self.clock.now(), quarantine), "the release")
                    .await?;
            } else if let Some(why) = quarantine {
                // Whatever claim is on it now is not ours to take off.
                self.write_host(held, D::quarantine(why), "the quarantine").await?;
            }
        }
        Ok(())
    }

    async fn give_back(
        &self,
        view: &ClaimView<'_, D::Claim>,
        decision: &Decision,
        host: &str,
    ) -> Result<(), WriteError> {
        for held in decision.holdings.iter().filter(|held| held.holding.host.name == host) {
            let why = held.holding.host.fault.as_ref().map_or("a second host bears the same claim", |why| &why.message);
            warn!(host = %held.key, why, "claim given back");
            self.write_host(held, D::release(view, &held.holding.id, self.clock.now(), None), "the release").await?;
        }
        Ok(())
    }

    async fn write_host(&self, held: &Bearer, change: Value, what: &'static str) -> Result<(), WriteError> {
        let key = &held.key;
        let written = patch(&self.client, key, Some(&held.version.to_string()), change).await;
        self.metrics.api_write(D::NAME, what, written.is_ok());
        match written {
            Ok(host) => {
                self.roster.put::<D::Hosts>(&host);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(WriteError::of(key, what, error)),
        }
    }

    /// Whether a host bears the claim, as of now and not as of the watch: a claim that is left behind is a server lost.
    async fn is_borne(&self, claim: &D::Claim, key: &ObjectId, id: &str) -> Result<bool, WriteError> {
        let namespace = match D::pool(claim) {
            Pool::Namespace(namespace) => Some(namespace),
            Pool::Everything => self.namespace.clone(),
        };
        let hosts = api::<<D::Hosts as HostDialect>::Host>(&self.client, namespace.as_deref());
        let found = hosts.list(&D::bearers(key)).await;
        let found = found.map_err(|error| WriteError::of(key, "nothing before its host is known", error))?;
        Ok(found.iter().any(|host| host.annotations().get(D::Hosts::CLAIM_ID).is_some_and(|borne| borne == id)))
    }

    async fn let_go(
        &self,
        claim: &D::Claim,
        key: &ObjectId,
        decision: &Decision,
    ) -> Result<Next<D::Claim>, WriteError> {
        if decision.holdings.is_empty()
            && let Some(id) = &decision.memory.id
            && self.is_borne(claim, key, id).await?
        {
            return Ok(Next::Rest(Some(CATCH_UP)));
        }
        self.writer.let_go(claim, D::FINALIZER).await?;
        info!(claim = %key, "claim removed");
        self.retire(key);
        Ok(Next::Rest(None))
    }

    /// What is wrong with the Secret that the host of a claim needs. It is read once for each version.
    async fn lack(&self, view: &ClaimView<'_, D::Claim>) -> Option<Failure> {
        let (id, field, key) = D::needs(view)?;
        let version = self.vault.version(&id);
        let known = |lacks: MutexGuard<'_, HashMap<ObjectId, (String, Option<Failure>)>>| {
            lacks.get(&id).filter(|(known, _)| *known == version).map(|(_, lack)| lack.clone())
        };
        if let Some(lack) = known(self.lacks.lock().unwrap_or_else(PoisonError::into_inner)) {
            return lack;
        }
        let lack = self.vault.lack(&id, field, key).await;
        let mut lacks = self.lacks.lock().unwrap_or_else(PoisonError::into_inner);
        lacks.insert(id.clone(), (self.vault.version(&id), lack.clone()));
        lack
    }

    /// Writes the status if it says something new, and answers with the object as it is then.
    async fn tell(&self, view: &ClaimView<'_, D::Claim>, decision: &Decision) -> Result<Option<D::Claim>, WriteError> {
        let lack = self.lack(view).await;
        let decided = Decided {
            standing: &decision.step.standing,
            refusals: &decision.step.refusals,
            holding: decision.holdings.first().map(|held| &held.holding),
            machine: match &decision.owner {
                Owner::Machine(machine) => Some(machine),
                _ => None,
            },
            lack: lack.as_ref(),
        };
        for companion in D::companions(view, &decided) {
            self.companions.settle(&companion, &self.related).await?;
        }
        let changed = match D::change(view, &decided) {
            Some(change) => Some(self.writer.patch(view.claim, change, "claim").await?),
            None => None,
        };
        let Some(status) = D::status(view, &decided) else { return Ok(changed) };
        let written = self.writer.status(changed.as_ref().unwrap_or(view.claim), status).await?;
        if let Some(news) = D::news(view, &decided) {
            self.herald.tell(view.claim.object_ref(&()), news);
        }
        Ok(Some(written))
    }

    /// clusterctl waits with a move while this annotation is there: a server that boots may read its image and its bootstrap data
    /// from us. Also while the cluster is paused, or the move would never begin.
    async fn block_move(
        &self,
        view: &ClaimView<'_, D::Claim>,
        decision: &Decision,
    ) -> Result<Option<D::Claim>, WriteError> {
        let (claim, is_served) = (view.claim, D::image(view).is_some());
        let is_booting = is_served && decision.holdings.first().is_some_and(|held| held.holding.host.is_booting());
        let is_blocked = claim.annotations().contains_key(BLOCK_MOVE_ANNOTATION);
        if self.cluster_api().is_none() || is_booting == is_blocked {
            return Ok(None);
        }
        let patch = json!({ "metadata": { "annotations": { BLOCK_MOVE_ANNOTATION: is_booting.then_some("") } } });
        self.writer.patch(claim, patch, "move block").await.map(Some)
    }

    /// Nothing is done for it any more. How it ended is remembered until the watch has shown that: it may still show the
    /// claim as it was before its deletion, and such a one would get a host.
    fn retire(&self, key: &ObjectId) {
        self.dependents.remove(key);
        self.placer.withdraw(&key.by_name());
        self.nodes.forget(&key.by_name());
    }

    /// The watch has shown its end, which a finalizer does not prevent that is added at the moment of a deletion.
    fn forget(&self, key: &ObjectId) {
        self.dependents.remove(key);
        self.placer.forget(&key.by_name());
        self.nodes.forget(&key.by_name());
        self.writer.forget(key);
    }
}

/// What was decided, and on what.
struct Decision {
    step: claim::Step,
    memory: Memory,
    owner: Owner,
    holdings: Vec<Bearer>,
}

/// What comes after a decision was carried out.
enum Next<C> {
    /// The object is another now: decide again.
    Decide(C),
    /// Nothing, until something changes or this time has passed.
    Rest(Option<Duration>),
}

#[cfg(test)]
pub(crate) mod foreign;
