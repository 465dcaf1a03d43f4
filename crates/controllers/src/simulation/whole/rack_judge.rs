//! What must hold of Servers and of claims on them, by what their users did and what the servers show.

use std::collections::BTreeMap;
use std::time::Duration;

use api::ironcore::states::{claim as phases, server as states};
use api::ironcore::{Server, ServerBootConfiguration, ServerClaim};
use sim::{BootSource, Enabled, PowerState};

use super::racks::{Claim, Racks, rack_of, server_of};
use super::stage::Stage;

/// What was under way when somebody changed something may go on for so long.
const UNDER_WAY: Duration = Duration::from_mins(10);

impl Stage {
    pub(super) fn judge_racks(&mut self) -> Result<(), String> {
        let mut claims = self.racks.claims().clone();
        let mut homes = BTreeMap::new();
        let mut gone = Vec::new();
        for (name, claim) in &mut claims {
            let shown = self.show_of::<ServerClaim>(name).filter(|shown| shown["metadata"]["uid"] == *claim.uid);
            let Some(shown) = shown else {
                if !claim.leaving {
                    return Err(format!("{name} is gone, and nobody deleted it"));
                }
                gone.push(name.clone());
                continue;
            };
            let is_bound = shown["status"]["phase"] == phases::BOUND;
            let server = shown["spec"]["serverRef"]["name"].as_str().filter(|_| is_bound).map(str::to_owned);
            match (&claim.home, &server) {
                (Some(home), server) if server.as_ref() != Some(home) => {
                    return Err(format!("{name} had {home} and now has {server:?}: {}", shown["status"]));
                }
                (None, Some(server)) => claim.home = Some(server.clone()),
                _ => {}
            }
            if let Some(other) = server.and_then(|server| homes.insert(server, name.clone())) {
                return Err(format!("{name} and {other} both have {:?}", claim.home));
            }
            self.judge_run(name, claim)?;
        }
        let mut known = self.racks.claims();
        *known = claims;
        known.retain(|name, _| !gone.contains(name));
        Ok(())
    }

    /// A server that runs for a claim goes on running until somebody gives a reason to stop it.
    fn judge_run(&self, name: &str, claim: &mut Claim) -> Result<(), String> {
        let Some(home) = &claim.home else { return Ok(()) };
        let (rack, shown) = (rack_of(home), self.show_of::<Server>(home).unwrap_or_default());
        let server = self.servers.server(rack);
        let booted = server.last_boot.as_ref().map(|boot| &boot.from) == Some(&BootSource::Pxe);
        let runs = booted && server.power() == PowerState::On && !server.in_post();
        if let Some(boots) = claim.settled {
            if !runs || server.boots != boots {
                return Err(format!("{name} ran on {home}, which is now {:?}: {shown}", server.power()));
            }
            return Ok(());
        }
        let is_reserved =
            shown["status"]["state"] == states::RESERVED && shown["spec"]["serverClaimRef"]["name"] == *name;
        let is_asked = claim.on && !claim.leaving && shown["spec"].get("serverMaintenanceRef").is_none();
        let is_quiet = shown["metadata"]["annotations"].get(api::ironcore::names::OPERATION).is_none();
        if runs && is_reserved && is_asked && is_quiet && claim.stirred.elapsed() > UNDER_WAY {
            claim.settled = Some(server.boots);
        }
        Ok(())
    }

    pub(super) fn unfinished_rack(&self) -> Option<String> {
        let claims = self.racks.claims().clone();
        self.rack_names
            .iter()
            .find_map(|rack| self.unfinished_server(rack, &claims))
            .or_else(|| claims.iter().find_map(|(name, claim)| self.unfinished_claim(name, claim)))
    }

    fn unfinished_server(&self, rack: &str, claims: &BTreeMap<String, Claim>) -> Option<String> {
        let name = server_of(rack);
        let Some(shown) = self.show_of::<Server>(&name) else { return Some(format!("{name} was not found")) };
        let server = self.servers.server(rack);
        let wrong = |what: &str| {
            Some(format!(
                "{name} {what}: {} {} {} {:?}",
                shown["metadata"],
                shown["spec"],
                shown["status"],
                server.power()
            ))
        };
        let owner = claims.iter().find(|(_, claim)| claim.home.as_ref() == Some(&name));
        let is_certain = !self.pressed.contains(rack) && !self.misled.contains(rack);
        let booted = server.last_boot.as_ref().map(|boot| &boot.from) == Some(&BootSource::Pxe);
        match owner {
            Some((_, claim)) if claim.leaving => wrong("was given back and is not free"),
            Some(_) if shown["status"]["state"] != states::RESERVED => wrong("is not reserved"),
            Some((_, claim)) if claim.on && server.power() != PowerState::On => wrong("does not run"),
            Some((_, claim)) if claim.on && is_certain && !booted => wrong("has booted something else"),
            Some((_, claim)) if !claim.on && is_certain && server.power() != PowerState::Off => wrong("runs"),
            None if shown["status"]["state"] != states::AVAILABLE => wrong("is not available"),
            None if server.power() != PowerState::Off => wrong("is free and runs"),
            None if is_certain && server.boot.enabled != Enabled::Disabled => wrong("is free with a boot override"),
            None if self.show_of::<ServerBootConfiguration>(&name).is_some() => {
                wrong("is free with what its probe booted")
            }
            None if shown["spec"].get("serverClaimRef").is_some() => wrong("is free and has a claim"),
            Some(_) | None => None,
        }
    }

    fn unfinished_claim(&self, name: &str, claim: &Claim) -> Option<String> {
        let shown = self.show_of::<ServerClaim>(name)?;
        if claim.leaving {
            return Some(format!("{name} was deleted and is still there: {}", shown["status"]));
        }
        if let Some(home) = &claim.home {
            let boots = self.show_of::<ServerBootConfiguration>(name).unwrap_or_default();
            let is_its =
                boots["spec"]["serverRef"]["name"] == **home && boots["spec"]["image"] == shown["spec"]["image"];
            return (!is_its).then(|| format!("{name} has {home} and the boot configuration {}", boots["spec"]));
        }
        let wanted = shown["spec"]["serverRef"]["name"].as_str();
        let is_free = |server: &String| {
            let shown = self.show_of::<Server>(server).unwrap_or_default();
            shown["status"]["state"] == states::AVAILABLE && shown["spec"].get("serverClaimRef").is_none()
        };
        let fits = self
            .rack_names
            .iter()
            .map(|rack| server_of(rack))
            .find(|server| wanted.is_none_or(|wanted| wanted == server) && is_free(server));
        fits.map(|free| format!("{name} has no server although {free} is free: {}", shown["status"]))
    }
}

/// Who would be hurt if the server behind a BMC were stopped.
pub(super) fn tenant(racks: &Racks, rack: &str) -> Option<String> {
    let server = server_of(rack);
    let claims = racks.claims();
    let found = claims.iter().find(|(_, claim)| claim.settled.is_some() && claim.home.as_ref() == Some(&server));
    found.map(|(name, _): (&String, _)| name.clone())
}
