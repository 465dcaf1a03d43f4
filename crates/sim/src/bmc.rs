//! One BMC: the handle that clients call and tests steer.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::Instant;

use crate::bios::Bios;
use crate::built::Built;
use crate::fault::{Fault, FaultId, Faults};
use crate::hardware::Hardware;
use crate::journal::{Counters, Journal, Mutation};
use crate::login::{Credentials, Desk};
use crate::machine::{Link, Orders};
use crate::personality::{MediaPlace, Personality, generic};
use crate::place::Places;
use crate::recorded::{Tree, settle_in};
use crate::serve::Plan;
use crate::server::{Guest, Mode, Override, PowerState, ResetType, Server, Slot, Timing};
use crate::task::Tasks;

/// The connection ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// Connection refused: the request was never sent.
    #[error("connection refused")]
    Refused,
    /// The connection was reset; whether the request was carried out is unknown to the client.
    #[error("connection reset by peer")]
    Reset,
}

/// How a BMC is to be.
#[derive(Clone, Debug)]
pub struct BmcSpec {
    /// A name for lists and manifests.
    pub name: String,
    /// Whose BMC it is.
    pub personality: Arc<Personality>,
    /// The servers behind it.
    pub hardware: Vec<Hardware>,
    /// Credentials that it accepts.
    pub credentials: Credentials,
    /// Delays of the servers.
    pub timing: Timing,
    /// Power at the beginning.
    pub power: PowerState,
    /// What every answer takes.
    pub latency: Duration,
    /// For tokens and for faults with a probability.
    pub seed: u64,
}

impl BmcSpec {
    /// One server of this personality, off, with default delays; user `admin`, password `password`.
    pub fn new(personality: Personality) -> Self {
        Self {
            name: personality.name.to_owned(),
            hardware: vec![Hardware::invent(&personality, 0, 0)],
            personality: Arc::new(personality),
            credentials: Credentials::new("admin", "password"),
            timing: Timing::default(),
            power: PowerState::Off,
            latency: Duration::ZERO,
            seed: 0,
        }
    }

    /// Several servers behind one BMC.
    pub fn systems(mut self, count: u32) -> Self {
        self.hardware = (0..count).map(|i| Hardware::invent(&self.personality, self.seed, i)).collect();
        self
    }

    /// Other delays.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Other power at the beginning.
    pub fn power(mut self, power: PowerState) -> Self {
        self.power = power;
        self
    }
}

/// Where resources come from.
#[derive(Debug)]
pub(crate) enum Source {
    Built(Built),
    Recorded(Arc<Tree>),
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) servers: Vec<Server>,
    pub(crate) desk: Desk,
    pub(crate) faults: Faults,
    pub(crate) counters: Counters,
    pub(crate) journal: Journal,
    pub(crate) tasks: Tasks,
    pub(crate) rng: fastrand::Rng,
    /// After a reset of the BMC itself.
    pub(crate) away_until: Option<Instant>,
    /// When a request last changed something, or tried to.
    pub(crate) changed_at: Option<Instant>,
    pub(crate) latency: Duration,
    /// `Status.Health` of the systems, when it is not what the tree says.
    pub(crate) health: Option<String>,
    /// By index of the system, once something was changed.
    pub(crate) bios: HashMap<usize, Bios>,
    /// Indices of the systems that are there, in the order in which they are listed; `None` for all, as they were made.
    pub(crate) present: Option<Vec<usize>>,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) personality: Arc<Personality>,
    pub(crate) source: Source,
    pub(crate) places: Arc<Places>,
    state: Mutex<State>,
}

impl Core {
    /// The state, with everything played that is due.
    pub(crate) fn state(&self, now: Instant) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.settle(now, &self.personality);
        state
    }

    /// The firmware of a server's machine starts: the override that it obeys.
    pub(crate) fn begin_boot(&self, server: usize) -> Option<Override> {
        let now = Instant::now();
        self.state(now).begin_boot(server, now)
    }

    /// The power of a server's machine is so now.
    pub(crate) fn report(&self, server: usize, power: PowerState) {
        let now = Instant::now();
        if let Some(server) = self.state(now).servers.get_mut(server) {
            server.report(power, now);
        }
    }

    /// The image that a server's machine could not read is not in its drive any more.
    pub(crate) fn lose_medium(&self, server: usize, image: &str) {
        let now = Instant::now();
        let mut state = self.state(now);
        let slots = state.servers.get(server).map(|server| server.slots.as_slice()).unwrap_or_default();
        if let Some(slot) = slots.iter().position(|slot| slot.image.as_deref() == Some(image)) {
            state.eject(server, slot, now, &self.personality);
        }
    }
}

/// A handle to one simulated BMC. Clones are the same BMC.
///
/// It is a [`tower_service::Service`], so that a client can talk to it without sockets, and it gives tests its settings and the
/// real state. Nothing runs in the background; it needs a runtime only for answers that are late.
#[derive(Clone)]
pub struct Bmc(pub(crate) Arc<Core>);

impl std::fmt::Debug for Bmc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bmc")
            .field("name", &self.0.name)
            .field("personality", &self.0.personality.name)
            .finish_non_exhaustive()
    }
}

impl Bmc {
    /// A BMC with a tree of our own.
    pub fn new(spec: BmcSpec) -> Self {
        let places = Arc::new(Built::places(&spec.personality, spec.hardware.len()));
        Self::with_places(spec, places)
    }

    /// A generic BMC with one server and no delays.
    pub fn instant() -> Self {
        Self::new(BmcSpec::new(generic()).timing(Timing::INSTANT))
    }

    pub(crate) fn with_places(spec: BmcSpec, places: Arc<Places>) -> Self {
        let now = Instant::now();
        let mut servers = servers(&places, &spec, now);
        for server in servers.iter_mut().filter(|server| server.slots.is_empty()) {
            server.borrows_drives = spec.personality.media.place != MediaPlace::System;
        }
        let uuid = spec.hardware.first().map(|h| h.uuid.clone()).unwrap_or_default();
        let source = Source::Built(Built { personality: spec.personality.clone(), hardware: spec.hardware, uuid });
        Self(Arc::new(Core {
            name: spec.name,
            personality: spec.personality,
            source,
            places,
            state: Mutex::new(State::new(servers, spec.credentials, spec.latency, spec.seed)),
        }))
    }

    /// A BMC that answers from a recorded tree, with power, boot override, media, sessions and actions alive on top.
    /// Of the spec, name, credentials, delays, latency, seed and personality hold; the rest is as recorded. The
    /// personality gives habits (refusals, delays, ETags); what the recording itself shows goes before it. Use
    /// [`Tree::personality`] for the one that fits.
    pub fn replay(tree: Arc<Tree>, spec: BmcSpec) -> Self {
        let now = Instant::now();
        let places = Arc::new(tree.places());
        let personality = Arc::new(tree.adjust(&spec.personality));
        let mut servers = servers(&places, &BmcSpec { personality: personality.clone(), ..spec.clone() }, now);
        settle_in(&tree, &places, &mut servers, now);
        Self(Arc::new(Core {
            name: spec.name,
            personality,
            source: Source::Recorded(tree),
            places,
            state: Mutex::new(State::new(servers, spec.credentials, spec.latency, spec.seed)),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its personality.
    pub fn personality(&self) -> &Personality {
        &self.0.personality
    }

    /// Answers one request.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Dropped> {
        let Plan { wait, end } = self.0.take(&request, Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        match end {
            crate::serve::End::Answer(response) => Ok(*response),
            crate::serve::End::Drop(dropped) => Err(dropped),
            crate::serve::End::Hang => std::future::pending().await,
        }
    }

    /// The truth about a server, by its id.
    pub fn server(&self, id: &str) -> Option<Server> {
        self.state().servers.iter().find(|s| s.id == id).cloned()
    }

    /// The truth about all servers.
    pub fn servers(&self) -> Vec<Server> {
        self.state().servers.clone()
    }

    /// The real state of the first server, which on most BMCs is the only one.
    pub fn first(&self) -> Server {
        let state = self.state();
        let none = || Server::new(String::new(), PowerState::Off, Vec::new(), Timing::INSTANT, Instant::now());
        state.servers.first().cloned().unwrap_or_else(none)
    }

    /// The faults, to be changed while it runs.
    pub fn faults(&self) -> FaultDesk<'_> {
        FaultDesk(self)
    }

    /// Numbers of requests.
    pub fn counters(&self) -> Counters {
        self.state().counters.clone()
    }

    /// Resets the counters.
    pub fn reset_counters(&self) {
        self.state().counters = Counters::default();
    }

    /// The last requests that asked for a change, oldest first.
    pub fn journal(&self) -> Vec<Mutation> {
        self.state().journal.list()
    }

    /// Number of sessions that are open.
    pub fn sessions_open(&self) -> usize {
        let now = Instant::now();
        let mut state = self.0.state(now);
        state.desk.expire(now, self.0.personality.login.timeout);
        state.desk.sessions.len()
    }

    /// Ends all sessions, as a restart of the BMC's web server does.
    pub fn drop_sessions(&self) {
        self.state().desk.sessions.clear();
    }

    /// Credentials that it accepts.
    pub fn credentials(&self) -> Credentials {
        self.state().desk.credentials.clone()
    }

    /// Changes the credentials; open sessions stay.
    pub fn set_credentials(&self, credentials: Credentials) {
        self.state().desk.credentials = credentials;
    }

    /// What every answer takes.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// `Status.Health` of its systems.
    pub fn set_health(&self, health: &str) {
        self.state().health = Some(health.to_owned());
    }

    /// From now on it has these systems only and lists them in this order, as when servers of an enclosure are pulled out, put back and
    /// counted anew. By their places in [`Bmc::servers`], which goes on telling the truth about all of them.
    pub fn set_present(&self, systems: &[usize]) {
        self.state().present = Some(systems.to_vec());
    }

    /// How operating systems react to shutdown requests, on all its servers.
    pub fn set_guest(&self, guest: Guest) {
        self.state().servers.iter_mut().for_each(|s| s.guest = guest);
    }

    /// Other delays, on all its servers.
    pub fn set_timing(&self, timing: Timing) {
        self.state().servers.iter_mut().for_each(|s| s.timing = timing);
    }

    /// Changes a server from outside, like somebody in front of the rack. Returns false if there is no such server.
    pub fn by_hand(&self, id: &str, what: ResetType) -> bool {
        let now = Instant::now();
        let mut state = self.0.state(now);
        let Some(server) = state.servers.iter_mut().find(|s| s.id == id) else { return false };
        server.reset(what, now, Duration::ZERO);
        state.settle(now, &self.0.personality);
        true
    }

    /// The parts of its servers, unless it answers from a recording.
    pub(crate) fn hardware(&self) -> Option<&[Hardware]> {
        match &self.0.source {
            Source::Built(built) => Some(&built.hardware),
            Source::Recorded(_) => None,
        }
    }

    /// The power and the boots of a server are a machine's from now on.
    pub(crate) fn connect(&self, server: usize, native: Mode) -> Orders {
        let (link, orders) = Link::new();
        if let Some(server) = self.state().servers.get_mut(server) {
            server.connect(link, native);
        }
        orders
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state(Instant::now())
    }
}

impl tower_service::Service<Request<Bytes>> for Bmc {
    type Response = Response<Bytes>;
    type Error = Dropped;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Dropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Dropped>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let bmc = self.clone();
        Box::pin(async move { Self::call(&bmc, request).await })
    }
}

/// The faults of a BMC.
#[derive(Debug)]
pub struct FaultDesk<'a>(&'a Bmc);

impl FaultDesk<'_> {
    /// From now on.
    pub fn add(&self, fault: Fault) -> FaultId {
        let now = Instant::now();
        self.0.0.state(now).faults.add(fault, now)
    }

    /// No more. False if it was not there.
    pub fn remove(&self, id: FaultId) -> bool {
        self.0.state().faults.remove(id)
    }

    /// None from now on.
    pub fn clear(&self) {
        self.0.state().faults.clear();
    }

    /// All of them, also those whose limit is reached.
    pub fn list(&self) -> Vec<(FaultId, Fault)> {
        self.0.state().faults.list()
    }
}

fn servers(places: &Places, spec: &BmcSpec, now: Instant) -> Vec<Server> {
    let mut servers = Vec::with_capacity(places.systems.len());
    for (index, system) in places.systems.iter().enumerate() {
        let drives = places.drives.iter().filter(|d| d.system == index);
        let slots = drives.map(|d| Slot { bootable: d.bootable, write_protected: true, ..Slot::default() }).collect();
        let mut server = Server::new(system.id.clone(), spec.power, slots, spec.timing, now);
        server.media_target = spec.personality.boot.media_target;
        servers.push(server);
    }
    servers
}
