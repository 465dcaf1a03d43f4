//! What may happen in a history, how often, and how.

use std::time::Duration;

use api::beskar7::names;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sim::{Effect, PowerState, ResetType};
use tokio::time::Instant;

use super::stage::Stage;
use super::wire::Outage;
use crate::simulation::play::effect;

/// What may happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Claim,
    Release,
    ClaimVanishes,
    Power,
    Delete,
    Create,
    LoseStatus,
    LiftQuarantine,
    CreateMachine,
    CreateMachines,
    DeleteMachine,
    ForceRelease,
    RecreateMachine,
    Rush,
    MachineLosesStatus,
    CorrectImage,
    Crash,
    StopInOrder,
    ApiFails,
    ApiCutsWatches,
    ApiIsLate,
    ApiRivals,
    BmcFault,
    BmcForgets,
    Password,
    Rotation,
    ByHand,
    SwitchOnAndClaim,
    Wait,
    Order,
    Withdraw,
    Online,
    Reboot,
    HoldOff,
    Pause,
    Detach,
    DeleteMetal,
    CreateMetal,
    ChangeConsumer,
    MetalLosesStatus,
    Rival,
    ClaimServer,
    DropClaim,
    OtherImage,
    ServerLoses,
    LoseBmc,
    Maintain,
    Operate,
    Peace,
}

/// Who something happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A PhysicalHost or a machine.
    Host,
    /// A BareMetalHost.
    Metal,
    /// A Server, or a claim on one.
    Rack,
    /// A BareMetalHost or a Server.
    Taken,
    /// Any server, an operator, or the API server.
    Any,
}

impl Turn {
    fn subject(self) -> Subject {
        match self {
            Self::Crash
            | Self::StopInOrder
            | Self::ApiFails
            | Self::ApiCutsWatches
            | Self::ApiIsLate
            | Self::ApiRivals
            | Self::BmcFault
            | Self::BmcForgets
            | Self::Password
            | Self::Rotation
            | Self::ByHand
            | Self::Wait => Subject::Any,
            Self::Order
            | Self::Withdraw
            | Self::Online
            | Self::Reboot
            | Self::HoldOff
            | Self::Pause
            | Self::Detach
            | Self::DeleteMetal
            | Self::CreateMetal
            | Self::ChangeConsumer
            | Self::MetalLosesStatus
            | Self::Rival => Subject::Metal,
            Self::ClaimServer
            | Self::DropClaim
            | Self::OtherImage
            | Self::ServerLoses
            | Self::LoseBmc
            | Self::Maintain
            | Self::Operate => Subject::Rack,
            Self::Peace => Subject::Taken,
            _ => Subject::Host,
        }
    }
}

/// By how often they happen: about as many claims by hand as by machines.
const TURNS: [(Turn, u32); 49] = [
    (Turn::Claim, 9),
    (Turn::Release, 5),
    (Turn::ClaimVanishes, 1),
    (Turn::Power, 3),
    (Turn::Delete, 3),
    (Turn::Create, 4),
    (Turn::LoseStatus, 2),
    (Turn::LiftQuarantine, 2),
    (Turn::CreateMachine, 9),
    (Turn::CreateMachines, 2),
    (Turn::DeleteMachine, 6),
    (Turn::ForceRelease, 2),
    (Turn::RecreateMachine, 3),
    (Turn::Rush, 2),
    (Turn::MachineLosesStatus, 1),
    (Turn::CorrectImage, 4),
    (Turn::Crash, 9),
    (Turn::StopInOrder, 3),
    (Turn::ApiFails, 7),
    (Turn::ApiCutsWatches, 2),
    (Turn::ApiIsLate, 3),
    (Turn::ApiRivals, 4),
    (Turn::BmcFault, 7),
    (Turn::BmcForgets, 1),
    (Turn::Password, 1),
    (Turn::Rotation, 3),
    (Turn::ByHand, 2),
    (Turn::SwitchOnAndClaim, 5),
    (Turn::Wait, 4),
    (Turn::Order, 16),
    (Turn::Withdraw, 7),
    (Turn::Online, 4),
    (Turn::Reboot, 6),
    (Turn::HoldOff, 5),
    (Turn::Pause, 6),
    (Turn::Detach, 5),
    (Turn::DeleteMetal, 4),
    (Turn::CreateMetal, 6),
    (Turn::ChangeConsumer, 3),
    (Turn::MetalLosesStatus, 3),
    (Turn::Rival, 3),
    (Turn::ClaimServer, 20),
    (Turn::DropClaim, 8),
    (Turn::OtherImage, 3),
    (Turn::ServerLoses, 6),
    (Turn::LoseBmc, 3),
    (Turn::Maintain, 8),
    (Turn::Operate, 6),
    (Turn::Peace, 6),
];

impl Stage {
    pub(super) fn draw(&mut self) -> Turn {
        let is_possible = |turn: Turn| match turn.subject() {
            Subject::Host => !self.names.is_empty(),
            Subject::Metal => !self.metal_names.is_empty(),
            Subject::Rack => !self.rack_names.is_empty(),
            Subject::Taken => !self.metal_names.is_empty() || !self.rack_names.is_empty(),
            Subject::Any => true,
        };
        let possible: Vec<_> = TURNS.into_iter().filter(|(turn, _)| is_possible(*turn)).collect();
        let all: u32 = possible.iter().map(|(_, weight)| weight).sum();
        let mut dice = self.random.u32(..all);
        for (turn, weight) in possible {
            match dice.checked_sub(weight) {
                Some(rest) => dice = rest,
                None => return turn,
            }
        }
        Turn::Wait
    }

    /// The host and the machine that something may happen to. Who deletes a machine knows that there is one.
    pub(super) fn draw_subjects(&mut self, turn: Turn) -> (String, String) {
        let hosts: Vec<_> = match turn.subject() {
            Subject::Host => self.names.clone(),
            Subject::Metal => self.metal_names.clone(),
            Subject::Rack => self.rack_names.clone(),
            Subject::Taken => [self.metal_names.clone(), self.rack_names.clone()].concat(),
            Subject::Any => [self.names.clone(), self.metal_names.clone(), self.rack_names.clone()].concat(),
        };
        let host = hosts[self.random.usize(..hosts.len())].clone();
        let living: Vec<_> = match turn {
            Turn::DeleteMachine
            | Turn::ForceRelease
            | Turn::RecreateMachine
            | Turn::MachineLosesStatus
            | Turn::CorrectImage => self.machines.keys().cloned().collect(),
            Turn::DropClaim | Turn::OtherImage => self.racks.claims().keys().cloned().collect(),
            _ => Vec::new(),
        };
        let machines = if living.is_empty() { &self.machine_names } else { &living };
        (host, machines[self.random.usize(..machines.len())].clone())
    }

    /// Lets something happen to a host or to a machine.
    pub(super) async fn turn(&mut self, turn: Turn, name: &str, machine: &str) -> Result<(), String> {
        match turn {
            Turn::Claim => return self.claim(name).await,
            Turn::Release => self.release(name).await,
            Turn::ClaimVanishes => self.claim_vanishes(name).await,
            Turn::Power => {
                let wish = [Value::Null, json!(true), json!(false)][self.random.usize(..3)].clone();
                self.pressed.insert(name.to_owned());
                self.servers.ask_power(name);
                let mut patch = json!({"spec": {"online": wish}});
                if self.random.bool() {
                    // As the command line does, so that it counts in any case.
                    let id = format!("{:x}", self.random.u64(..));
                    patch["metadata"] = json!({"annotations": {names::POWER_REQUEST: id}});
                }
                self.edit(name, patch).await;
            }
            Turn::Delete => self.delete(name).await,
            Turn::Create => self.create(name).await,
            Turn::LoseStatus => {
                let lost = Patch::Merge(json!({"status": null}));
                self.hosts().patch_status(name, &PatchParams::default(), &lost).await.ok();
            }
            Turn::LiftQuarantine => self.lift_quarantine(name).await,
            Turn::CreateMachine => self.create_machine(machine).await?,
            Turn::CreateMachines => {
                for machine in self.machine_names.clone() {
                    self.create_machine(&machine).await?;
                }
            }
            Turn::DeleteMachine => self.delete_machine(machine).await,
            Turn::ForceRelease => self.force_release(machine).await,
            Turn::RecreateMachine => return self.recreate_machine(machine).await,
            Turn::Rush => {
                // While the claim of a machine is under way, people claim by hand whatever looks free.
                self.hold_up_a_write();
                self.create_machine(machine).await?;
                self.run_for(Duration::from_secs(1)).await?;
                for name in self.names.clone() {
                    self.claim(&name).await?;
                }
            }
            Turn::MachineLosesStatus => {
                let lost = Patch::Merge(json!({"status": null}));
                self.machine_api().patch_status(machine, &PatchParams::default(), &lost).await.ok();
            }
            Turn::CorrectImage => self.correct_image(machine).await,
            Turn::Crash => {
                let at = self.random.usize(..self.operators.len());
                let (effects, it_happens) = (self.random.u32(..12), self.random.bool());
                self.operators[at].life.condemn(effects, it_happens);
            }
            Turn::StopInOrder => {
                let at = self.random.usize(..self.operators.len());
                self.operators[at].shutdown.cancel();
            }
            Turn::ApiFails => {
                let outages = [Outage::Refused, Outage::Unavailable, Outage::AnswerLost, Outage::Blind];
                let outage = outages[self.random.usize(..4)];
                let most = if self.random.bool() { 6 } else { 90 };
                let seconds = self.random.u64(1..most);
                self.tell(|| format!("  {outage:?} for {seconds} s"));
                self.wire.fail_until(Instant::now() + Duration::from_secs(seconds), outage);
                if outage == Outage::Blind || self.random.bool() {
                    self.wire.cut_watches();
                }
            }
            Turn::ApiCutsWatches => self.wire.cut_watches(),
            Turn::ApiIsLate => self.hold_up_a_write(),
            Turn::ApiRivals => self.wire.interfere(self.random.u32(1..4)),
            Turn::BmcFault => {
                let effect = effect(&mut self.random);
                if matches!(effect, Effect::IgnoresBootOverride | Effect::IgnoresMedia) {
                    self.misled.insert(name.to_owned());
                }
                let fault = effect.always().lasting(Duration::from_secs(self.random.u64(1..300)));
                let fault = if self.random.bool() { fault.times(self.random.u32(1..6)) } else { fault };
                self.tell(|| format!("  {fault:?}"));
                self.servers.bmc(name).faults().add(fault);
            }
            Turn::BmcForgets => self.servers.bmc(name).drop_sessions(),
            Turn::Password => self.change_password(name),
            Turn::Rotation => {
                self.change_password(name);
                let seconds = self.random.u64(0..30);
                self.run_for(Duration::from_secs(seconds)).await?;
                self.put_password(name).await;
            }
            Turn::ByHand => {
                let is_on = self.servers.server(name).power() == PowerState::On;
                self.press(name, if is_on { ResetType::ForceOff } else { ResetType::On });
            }
            Turn::SwitchOnAndClaim => {
                self.release(name).await;
                self.delete_machine_on(name).await;
                // At least that one is free by then, if nothing is wrong with it.
                self.run_for(Duration::from_mins(5)).await?;
                for name in self.names.clone() {
                    self.press(&name, ResetType::On);
                }
                // Their BMCs show it by now, but nobody may have looked yet.
                let seconds = if self.random.bool() { self.random.u64(0..10) } else { self.random.u64(60..600) };
                self.run_for(Duration::from_secs(seconds)).await?;
                let new = self.machine_names.iter().find(|name| !self.machines.contains_key(*name)).cloned();
                self.create_machine(&new.unwrap_or_else(|| machine.to_owned())).await?;
            }
            Turn::Wait => {}
            Turn::Withdraw => self.withdraw(name).await,
            Turn::Online => self.set_online(name).await,
            Turn::Reboot => self.reboot(name).await,
            Turn::HoldOff => self.hold_off(name).await,
            Turn::Pause => self.pause(name).await,
            Turn::Detach => self.detach(name).await,
            Turn::DeleteMetal => self.delete_metal(name).await,
            Turn::CreateMetal if (self.show_metal)(name).is_none() => self.create_metal(name).await,
            Turn::Order | Turn::CreateMetal => self.order(name).await,
            Turn::ChangeConsumer => self.change_consumer(name).await,
            Turn::MetalLosesStatus => self.metal_loses_status(name).await,
            Turn::Rival => self.rival(name).await,
            Turn::ClaimServer => self.claim_server(machine).await,
            Turn::DropClaim => self.drop_claim(machine).await,
            Turn::OtherImage => self.order_other_image(machine).await,
            Turn::ServerLoses => self.server_loses(name).await,
            Turn::LoseBmc => self.lose_bmc(name).await,
            Turn::Maintain => self.maintain(name).await,
            Turn::Operate => self.operate(name).await,
            // Long enough for a server to run undisturbed, so that what follows finds it in use.
            Turn::Peace => self.run_for(Duration::from_mins(10)).await?,
        }
        Ok(())
    }

    /// Somebody at the server.
    fn press(&mut self, name: &str, reset: ResetType) {
        self.metals.stir(name);
        self.racks.stir(name);
        self.servers.press(name, reset);
        self.pressed.insert(name.to_owned());
    }

    fn hold_up_a_write(&mut self) {
        let seconds = self.random.u64(1..90);
        self.tell(|| format!("  the next write to a host takes {seconds} s"));
        self.wire.hold_up(Duration::from_secs(seconds));
    }

    /// From now on nobody makes trouble, and what only people can repair is repaired.
    pub(super) async fn calm_down(&mut self) {
        self.tell(|| "calm".to_owned());
        self.wire.calm_down();
        for operator in &self.operators {
            operator.life.spare();
        }
        self.is_calm = true;
        for name in [self.names.clone(), self.metal_names.clone(), self.rack_names.clone()].concat() {
            self.servers.bmc(&name).faults().clear();
            self.put_password(&name).await;
        }
        self.calm_metals().await;
        self.calm_racks().await;
        for name in self.names.clone() {
            if self.random.bool() {
                self.lift_quarantine(&name).await;
            }
            // Whoever deletes a host that is in use is asked to release it first.
            if self.known[&name].leaving {
                self.release(&name).await;
                self.delete_machine_on(&name).await;
            }
        }
        self.forget_consumers().await;
        self.delete_robbed_machines().await;
    }
}
