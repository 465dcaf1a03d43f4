//! One task places everybody who waits for a host, from one snapshot, and writes the claims.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::placement::{Outcome, Request, place};
use futures::StreamExt as _;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::dialect::{ANCHOR_ANNOTATION, HostDialect, HostKey};
use crate::roster::{ClaimantName, Free, Roster};

/// How long requests are gathered, so that whoever comes in the same moment is placed by age.
const GATHER: Duration = Duration::from_millis(25);
/// How many claims are written at once.
const WRITES_AT_ONCE: usize = 8;
/// How long to wait after a write that the API server did not take.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// How long a refusal stands before another one takes its place.
const SAID_FOR: Duration = Duration::from_secs(5);

/// Who waits for a host, and what it would write on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) request: Request,
    /// The claim and the order, as a merge patch for the host.
    pub(crate) claim: Value,
}

/// The waiting room.
#[derive(Debug, Default)]
pub(crate) struct Placer {
    room: Mutex<Room>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Room {
    waiting: BTreeMap<ClaimantName, Wanted>,
    /// Whose claims are being written.
    writing: HashSet<ClaimantName>,
    /// Who of these is gone meanwhile.
    gone: HashSet<ClaimantName>,
    /// Why somebody got no host, and since when that is said.
    refusals: HashMap<ClaimantName, (String, Instant)>,
}

impl Room {
    fn withdraw(&mut self, claimant: &ClaimantName) -> bool {
        self.waiting.remove(claimant);
        self.refusals.remove(claimant);
        !self.writing.contains(claimant)
    }
}

impl Placer {
    /// Waits for a host from now on.
    pub(crate) fn ask(&self, claimant: &ClaimantName, wanted: Wanted) {
        let mut room = self.room();
        if room.waiting.get(claimant) != Some(&wanted) {
            room.waiting.insert(claimant.clone(), wanted);
            self.news.notify_one();
        }
    }

    /// Does not wait any more. Answers whether that came in time: while a claim is being written, nobody can say whether it
    /// has a host.
    pub(crate) fn withdraw(&self, claimant: &ClaimantName) -> bool {
        self.room().withdraw(claimant)
    }

    /// It is gone. A claim that is being written for it is taken off again: nobody else would.
    pub(crate) fn forget(&self, claimant: &ClaimantName) {
        let mut room = self.room();
        if !room.withdraw(claimant) {
            room.gone.insert(claimant.clone());
        }
    }

    /// Whether a claim for it is being written right now.
    pub(crate) fn is_writing(&self, claimant: &ClaimantName) -> bool {
        self.room().writing.contains(claimant)
    }

    /// Whether a claim may be written: whoever does not wait any more gets none.
    fn begin(&self, claimant: &ClaimantName) -> bool {
        let mut room = self.room();
        room.waiting.contains_key(claimant) && room.writing.insert(claimant.clone())
    }

    /// Why it got no host, when it was last tried.
    pub(crate) fn refusal(&self, claimant: &ClaimantName) -> Option<String> {
        self.room().refusals.get(claimant).map(|(why, _)| why.clone())
    }

    /// Places for as long as it is polled. Tells those about whom something has changed.
    pub(crate) async fn run<D: HostDialect>(
        &self,
        client: &Client,
        roster: &Roster,
        tell_host: &UnboundedSender<HostKey>,
        tell: &UnboundedSender<ClaimantName>,
    ) {
        let mut again = None;
        loop {
            let pause = async {
                match again {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.news.notified() => {}
                () = roster.changed() => {}
                () = pause => {}
            }
            tokio::time::sleep(GATHER).await;
            again = self.round::<D>(client, roster, tell_host, tell).await.then_some(TRY_AGAIN);
        }
    }

    /// Places everybody once. Answers whether it should be tried again although nothing changes.
    async fn round<D: HostDialect>(
        &self,
        client: &Client,
        roster: &Roster,
        tell_host: &UnboundedSender<HostKey>,
        tell: &UnboundedSender<ClaimantName>,
    ) -> bool {
        let waiting: Vec<(ClaimantName, Wanted)> =
            self.room().waiting.iter().map(|(claimant, wanted)| (claimant.clone(), wanted.clone())).collect();
        if waiting.is_empty() {
            return false;
        }
        let (keys, hosts): (Vec<_>, Vec<_>) =
            roster.candidates().into_iter().map(|(key, version, host)| ((key, version), host)).unzip();
        let requests: Vec<_> = waiting.iter().map(|(_, wanted)| wanted.request.clone()).collect();
        let (mut claims, mut again) = (Vec::new(), false);
        for ((claimant, wanted), outcome) in waiting.into_iter().zip(place(&requests, &hosts)) {
            match outcome {
                Outcome::Placed(name) => {
                    let host = keys.iter().find(|(key, _)| key.namespace == claimant.0 && key.name == name);
                    claims.extend(host.filter(|_| self.begin(&claimant)).map(|(key, version)| {
                        let claim = announce::<D>(key, roster.free(key, *version), wanted.claim);
                        let write = write::<D>(client.clone(), key.clone(), *version, claim);
                        let key = key.clone();
                        async move { (claimant, key, write.await) }
                    }));
                }
                Outcome::Refused(refusal) => again |= !self.refuse(&claimant, refusal.to_string(), tell),
            }
        }
        let mut writes = futures::stream::iter(claims).buffer_unordered(WRITES_AT_ONCE);
        while let Some((claimant, key, written)) = writes.next().await {
            let told = match written {
                Ok(host) => {
                    info!(claimant = %format!("{}/{}", claimant.0, claimant.1), host = %key, "claimed");
                    self.withdraw(&claimant);
                    let gone = self.room().gone.remove(&claimant);
                    let host = if gone { take_off::<D>(client.clone(), &key, host).await } else { host };
                    tell_host.send(key).ok();
                    roster.put::<D>(&host)
                }
                // Somebody else wrote the host meanwhile: the watch will show what.
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                    again = true;
                    Vec::new()
                }
                Err(error) => {
                    warn!(%error, host = %key, "the claim cannot be written");
                    self.refuse(&claimant, format!("PhysicalHost {} cannot be claimed: {error}.", key.name), tell);
                    again = true;
                    Vec::new()
                }
            };
            let mut room = self.room();
            room.writing.remove(&claimant);
            room.gone.remove(&claimant);
            drop(room);
            for claimant in told.into_iter().chain([claimant]) {
                tell.send(claimant).ok();
            }
        }
        again
    }

    /// Notes why somebody gets no host. Answers whether that could be told: in a busy fleet it changes with every host, and
    /// nobody can read that fast.
    fn refuse(&self, claimant: &ClaimantName, why: String, tell: &UnboundedSender<ClaimantName>) -> bool {
        let mut room = self.room();
        let told = room.refusals.get(claimant);
        if !room.waiting.contains_key(claimant) || told.is_some_and(|(told, _)| *told == why) {
            return true;
        }
        if told.is_some_and(|(_, since)| since.elapsed() < SAID_FOR) {
            return false;
        }
        room.refusals.insert(claimant.clone(), (why, Instant::now()));
        tell.send(claimant.clone()).ok();
        true
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The claim with the anchor that it is going to be accepted with: one write less for each machine.
fn announce<D: HostDialect>(key: &HostKey, free: Option<Free>, mut claim: Value) -> Value {
    if let Some(anchor) = free.and_then(|free| D::announced(key, &free, &claim)) {
        claim["metadata"]["annotations"][ANCHOR_ANNOTATION] = json!(anchor.to_json());
    }
    claim
}

/// The claim is one write, on exactly the host that was looked at.
async fn write<D: HostDialect>(client: Client, key: HostKey, version: u64, mut patch: Value) -> kube::Result<D::Host> {
    patch["metadata"]["resourceVersion"] = json!(version.to_string());
    patch["metadata"]["uid"] = json!(key.uid);
    let hosts: Api<D::Host> = Api::namespaced(client, &key.namespace);
    hosts.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Takes the claim of somebody off who went while it was written. If that fails, the host's own loop does it later.
async fn take_off<D: HostDialect>(client: Client, key: &HostKey, host: D::Host) -> D::Host {
    let mut patch = D::without_claim();
    patch["metadata"]["resourceVersion"] = json!(host.resource_version());
    patch["metadata"]["uid"] = json!(key.uid);
    let hosts: Api<D::Host> = Api::namespaced(client, &key.namespace);
    match hosts.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(host) => host,
        Err(error) => {
            warn!(%error, host = %key, "the claim of somebody who is gone cannot be taken off");
            host
        }
    }
}
