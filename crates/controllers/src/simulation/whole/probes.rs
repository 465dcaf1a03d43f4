//! Probes that look into Servers, and what becomes of their reports.

use std::sync::Arc;
use std::time::Duration;

use api::boot::BootSession;
use api::ironcore::{Server, ServerBootConfiguration};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use sim::{BootSource, PowerState, ResetType};
use tokio::time::Instant;

use super::racks::server_of;
use super::stage::{NAMESPACE, Stage};
use crate::depot::BootConfig;
use crate::dialect::{Settings, known_anchor};
use crate::ironcore;
use crate::object::api;
use crate::simulation::probing;

/// How the servers of a history are looked into.
pub(super) struct Probes {
    boot: BootConfig,
    settings: Arc<Settings>,
    /// Until then, no probe reports.
    silent_until: Instant,
}

impl Probes {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Self {
        let mut settings = Settings::default();
        settings.ironcore.probe = Some(probing::settings(NAMESPACE));
        let silent = if random.u8(..3) == 0 { Duration::from_mins(random.u64(..120)) } else { Duration::ZERO };
        Self { boot: probing::boot(NAMESPACE), settings: Arc::new(settings), silent_until: Instant::now() + silent }
    }

    pub(super) fn boot(&self) -> BootConfig {
        self.boot.clone()
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.settings.clone()
    }
}

impl Stage {
    /// What was booted for a probe tells what it has found, most of the time.
    pub(super) async fn report_probes(&mut self) {
        let Some(probes) = &self.probes else { return };
        let is_silent = !self.is_calm && Instant::now() < probes.silent_until;
        for rack in self.rack_names.clone() {
            let Ok(server) = api::<Server>(&self.admin, None).get(&server_of(&rack)).await else { continue };
            if self.is_calm {
                self.switch_off_newcomer(&rack, &server);
            }
            let anchor = known_anchor::<ironcore::Hosts>(&server).unwrap_or_default();
            let machine = self.servers.server(&rack);
            let runs = machine.power() == PowerState::On && !machine.in_post();
            let booted = machine.booted.as_ref().map(|booted| &booted.from) == Some(&BootSource::Pxe);
            let is_provided = self.show_of::<ServerBootConfiguration>(&server_of(&rack)).is_some();
            let (Some(probe), true) = (anchor.probe.filter(|_| anchor.probing), runs && booted && is_provided) else {
                continue;
            };
            if is_silent || (!self.is_calm && self.random.u8(..4) == 0) {
                continue;
            }
            self.tell(|| format!("the probe of {rack} reports"));
            let session = probing::session(&server, &probe, self.now(), json!({}).to_string());
            let sessions = api::<BootSession>(&self.admin, Some(NAMESPACE));
            if sessions.create(&PostParams::default(), &session).await.is_err() {
                let again = Patch::Merge(json!({"spec": {"report": session.spec.report}}));
                sessions.patch(&probe, &PatchParams::default(), &again).await.unwrap();
            }
        }
    }

    /// Somebody has looked what runs on a server that nobody may touch before that.
    fn switch_off_newcomer(&mut self, rack: &str, server: &Server) {
        let waits = server.status.as_ref().and_then(|status| status.condition("Ready"));
        let runs = self.servers.server(rack).power() == PowerState::On;
        if runs && waits.is_some_and(|ready| ready.reason == "WaitingForServerOff") {
            self.servers.press(rack, ResetType::ForceOff);
        }
    }
}
