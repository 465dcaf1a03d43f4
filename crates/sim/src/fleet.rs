//! Many BMCs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bmc::{Bmc, BmcSpec};
use crate::built::Built;
use crate::control::Control;
use crate::hardware::{Hardware, Parts};
use crate::listen::{Endpoint, ListenError};
use crate::login::Credentials;
use crate::personality::{Personality, generic};
use crate::server::{PowerState, Timing};

/// How a fleet is to be.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// Number of BMCs.
    pub count: u32,
    /// Number of servers behind each of them.
    pub systems: u32,
    /// Personalities with their weights: `(generic, 3), (dell, 1)` makes every fourth a Dell.
    pub mix: Vec<(Personality, u32)>,
    /// What names begin with; a number follows.
    pub prefix: String,
    /// Credentials that they accept.
    pub credentials: Credentials,
    /// Delays of the servers.
    pub timing: Timing,
    /// Power at the beginning.
    pub power: PowerState,
    /// What every answer takes.
    pub latency: Duration,
    /// For serial numbers, UUIDs, MAC addresses and hardware.
    pub seed: u64,
    /// What the servers are made of.
    pub parts: Parts,
}

impl Default for FleetSpec {
    fn default() -> Self {
        Self {
            count: 1,
            systems: 1,
            mix: vec![(generic(), 1)],
            prefix: "sim".to_owned(),
            credentials: Credentials::new("admin", "password"),
            timing: Timing::default(),
            power: PowerState::Off,
            latency: Duration::ZERO,
            seed: 1,
            parts: Parts::Rack,
        }
    }
}

/// Where a fleet is to be reached.
#[derive(Clone, Copy, Debug)]
pub struct ServeSpec {
    /// Address of all endpoints.
    pub ip: IpAddr,
    /// Port of the first BMC; the others follow. 0 lets the system choose.
    pub base_port: u16,
    /// HTTPS with a certificate each, or HTTP.
    pub tls: bool,
    /// Port of the [`Control`] on loopback, 0 for any.
    pub control_port: Option<u16>,
}

impl Default for ServeSpec {
    fn default() -> Self {
        Self { ip: Ipv4Addr::LOCALHOST.into(), base_port: 0, tls: true, control_port: None }
    }
}

/// Many BMCs.
#[derive(Clone, Debug)]
pub struct Fleet {
    bmcs: Vec<Bmc>,
}

impl Fleet {
    /// Invents them. The same spec gives the same fleet.
    pub fn new(spec: &FleetSpec) -> Self {
        let width = spec.count.saturating_sub(1).max(1).to_string().len().max(3);
        let kinds: Vec<_> = spec
            .mix
            .iter()
            .map(|(personality, weight)| {
                (
                    Arc::new(personality.clone()),
                    Arc::new(Built::places(personality, usize::try_from(spec.systems).unwrap_or(1))),
                    *weight,
                )
            })
            .collect();
        let turns: Vec<_> = kinds
            .iter()
            .flat_map(|kind| std::iter::repeat_n(kind, usize::try_from(kind.2).unwrap_or_default()))
            .collect();
        let mut turns = turns.iter().cycle();
        let hardware = match spec.parts {
            Parts::Rack => Hardware::invent,
            Parts::Machine => Hardware::of_machine,
        };
        let bmcs = (0..spec.count)
            .filter_map(|index| {
                let (personality, places, _) = turns.next()?;
                let spec = BmcSpec {
                    name: format!("{}-{index:0width$}", spec.prefix),
                    personality: personality.clone(),
                    hardware: (0..spec.systems)
                        .map(|at| hardware(personality, spec.seed, index * spec.systems + at))
                        .collect(),
                    credentials: spec.credentials.clone(),
                    timing: spec.timing,
                    power: spec.power,
                    latency: spec.latency,
                    seed: spec.seed ^ u64::from(index),
                };
                Some(Bmc::with_places(spec, places.clone()))
            })
            .collect();
        Self { bmcs }
    }

    /// From BMCs made one by one, such as replays.
    pub fn from_bmcs(bmcs: Vec<Bmc>) -> Self {
        Self { bmcs }
    }

    /// All of them.
    pub fn bmcs(&self) -> &[Bmc] {
        &self.bmcs
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Bmc> {
        self.bmcs.iter().find(|bmc| bmc.name() == name)
    }

    /// Opens an endpoint for each, and the control if asked for.
    pub async fn serve(&self, spec: ServeSpec) -> Result<Serving, ListenError> {
        if spec.base_port != 0 && usize::from(spec.base_port) + self.bmcs.len() > 1 << 16 {
            return Err(ListenError::Ports { base: spec.base_port, count: self.bmcs.len() });
        }
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        // If anything below fails, what was opened is closed again.
        let guard = stop.clone().drop_guard();
        let mut endpoints = Vec::with_capacity(self.bmcs.len());
        for (index, bmc) in self.bmcs.iter().enumerate() {
            let port =
                if spec.base_port == 0 { 0 } else { u16::try_from(usize::from(spec.base_port) + index).unwrap_or(0) };
            let address = SocketAddr::new(spec.ip, port);
            endpoints.push(Endpoint::open(bmc.clone(), address, spec.tls, &tasks, &stop).await?);
        }
        let control = match spec.control_port {
            None => None,
            Some(port) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                let bind = |why| ListenError::Bind { name: "the control".to_owned(), address, why };
                let listener = TcpListener::bind(address).await.map_err(bind)?;
                let bound = listener.local_addr().map_err(bind)?;
                let control = Control::new(endpoints.clone());
                tasks.spawn(control.accept(listener, tasks.clone(), stop.clone()));
                Some(bound)
            }
        };
        tasks.close();
        Ok(Serving { endpoints, control, tasks, stop: guard.disarm() })
    }
}

/// A fleet behind sockets. It is closed by [`Serving::stop`], and also when it is dropped.
#[derive(Debug)]
pub struct Serving {
    endpoints: Vec<Endpoint>,
    control: Option<SocketAddr>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Serving {
    /// One for each BMC, in order.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// By the BMCs' names.
    pub fn by_name(&self) -> HashMap<&str, &Endpoint> {
        self.endpoints.iter().map(|e| (e.bmc().name(), e)).collect()
    }

    /// URL of the control.
    pub fn control_url(&self) -> Option<String> {
        self.control.map(|address| format!("http://{address}"))
    }

    /// Ends everything and waits for answers in flight, but not long.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
