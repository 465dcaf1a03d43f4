//! The passing of time in a BMC.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::bmc::State;
use crate::fault::{Effect, Facts, Faults};
use crate::journal::{Counters, Journal};
use crate::login::{Credentials, Desk};
use crate::personality::Personality;
use crate::server::{Once, Override, Server};
use crate::task::{Deferred, Medium, Tasks};

impl State {
    pub(crate) fn new(servers: Vec<Server>, credentials: Credentials, latency: Duration, seed: u64) -> Self {
        Self {
            servers,
            desk: Desk::new(credentials),
            faults: Faults::default(),
            counters: Counters::default(),
            journal: Journal::default(),
            tasks: Tasks::default(),
            rng: fastrand::Rng::with_seed(seed),
            away_until: None,
            changed_at: None,
            latency,
            health: None,
            bios: HashMap::new(),
            present: None,
        }
    }

    /// Plays what is due, in order: a medium that arrives before POST ends is booted, one that arrives after is not.
    pub(crate) fn settle(&mut self, now: Instant, personality: &Personality) {
        while let Some((at, deferred)) = self.tasks.next_due(now) {
            self.settle_servers(at);
            match deferred {
                Deferred::Nothing => {}
                Deferred::Insert(server, slot, medium) => self.insert(server, slot, medium),
                Deferred::Eject(server, slot) => self.eject(server, slot, at, personality),
            }
        }
        self.settle_servers(now);
        for (system, bios) in &mut self.bios {
            if let Some(task) = self.servers.get(*system).and_then(|server| bios.apply(server)) {
                self.tasks.finish(task, now);
            }
        }
        self.tasks.forget(now, &personality.tasks);
    }

    fn settle_servers(&mut self, now: Instant) {
        let Self { servers, faults, rng, .. } = self;
        for server in servers {
            server.settle(now, &mut |at| once(faults, rng, at));
        }
    }

    /// The firmware of a server's machine starts: the override that it obeys.
    pub(crate) fn begin_boot(&mut self, server: usize, now: Instant) -> Option<Override> {
        let Self { servers, faults, rng, .. } = self;
        servers.get_mut(server)?.begin_boot(now, &mut |at| once(faults, rng, at))
    }

    /// The effect of a fault on this request, if any.
    pub(crate) fn trouble<T>(
        &mut self,
        now: Instant,
        facts: &Facts<'_>,
        pick: impl Fn(&Effect) -> Option<T>,
    ) -> Option<T> {
        self.faults.fires(now, Some(facts), &mut self.rng, pick)
    }

    /// Whether remote media are disabled, and whether they can be enabled by an action. Nobody disables what is in use.
    pub(crate) fn disabled_remote_media(&mut self, now: Instant, facts: &Facts<'_>) -> Option<bool> {
        let is_used = self.servers.iter().flat_map(|server| &server.slots).any(|slot| slot.image.is_some());
        self.trouble(now, facts, |effect| match effect {
            Effect::RemoteMediaDisabled { offers_action } if !is_used => Some(*offers_action),
            _ => None,
        })
    }

    /// What is in the drives of a manager is in the drives of all its servers.
    fn lend_drives(&mut self) {
        if let Some((owner, others)) = self.servers.split_first_mut() {
            for other in others.iter_mut().filter(|other| other.borrows_drives) {
                other.slots.clone_from(&owner.slots);
            }
        }
    }

    pub(crate) fn insert(&mut self, server: usize, slot: usize, medium: Medium) {
        let Some(slot) = self.servers.get_mut(server).and_then(|s| s.slots.get_mut(slot)) else { return };
        slot.image_name = medium.image.rsplit('/').next().map(str::to_owned);
        slot.image = Some(medium.image);
        slot.inserted = medium.inserted;
        slot.write_protected = medium.write_protected;
        slot.ejecting = None;
        self.lend_drives();
    }

    pub(crate) fn eject(&mut self, server: usize, slot: usize, now: Instant, personality: &Personality) {
        let rules = &personality.media;
        let Some(slot) = self.servers.get_mut(server).and_then(|s| s.slots.get_mut(slot)) else { return };
        if let Some(image) = slot.image.take()
            && !rules.eject_lag.is_zero()
        {
            slot.ejecting = Some((now + rules.eject_lag, image));
        }
        slot.inserted = false;
        slot.write_protected = true;
        if !rules.name_stays {
            slot.image_name = None;
        }
        self.lend_drives();
    }
}

/// What firmware makes of a one-time override.
fn once(faults: &mut Faults, rng: &mut fastrand::Rng, at: Instant) -> Once {
    let ignored = faults.fires(at, None, rng, |e| match e {
        Effect::IgnoresOneTimeBoot => Some(Once::Consumed),
        Effect::KeepsOneTimeBoot => Some(Once::Kept),
        _ => None,
    });
    ignored.unwrap_or(Once::Obeyed)
}
