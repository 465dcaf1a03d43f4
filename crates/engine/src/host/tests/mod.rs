//! Tests of the step: tables of single rules, whole lives in a model world, and random histories.

use jiff::{SignedDuration, Timestamp};

use super::{Boot, Claim, Consumer, Gate, Goal, NetworkProtocol, Newcomer, Order, Payload, Probe, Recipe, Starts};

mod server;
mod wishes;
mod world;

mod aside;
mod boot;
mod boot_plan;
mod delete;
mod faults;
mod history;
mod identity;
mod life;
mod memory;
mod offer;
mod power;
mod probe;
mod recipe;
mod release;
mod rest;
mod running;
mod shared;
mod totality;

const IMAGE: &str = "https://images.example/node.iso";
const OTHER_IMAGE: &str = "https://images.example/other.iso";

fn start_of_time() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn secs(secs: i64) -> SignedDuration {
    SignedDuration::from_secs(secs)
}

fn claim(id: &str) -> Claim {
    let consumer = Consumer {
        api_version: "infrastructure.cluster.x-k8s.io/v1beta1".into(),
        kind: "Beskar7Machine".into(),
        namespace: "default".into(),
        name: format!("machine-{id}"),
    };
    Claim { id: id.into(), consumer: Some(consumer) }
}

fn order(claim: &str, url: &str) -> Order {
    order_by(claim, Recipe::Iso { url: url.into(), starts: Starts::First })
}

/// What is ordered by a recipe, under an id that tells it from every other order.
fn order_by(claim: &str, recipe: Recipe) -> Order {
    Order { deployment: format!("{claim} {recipe:?}"), gate: None, recipe: Ok(recipe) }
}

fn pxe(starts: Starts) -> Recipe {
    Recipe::Network { protocol: NetworkProtocol::Pxe, payload: Payload::Site, starts }
}

/// A kernel that we serve.
fn kernel(starts: Starts) -> Recipe {
    let payload = Payload::Kernel {
        url: "https://images.example/vmlinuz".into(),
        initrds: vec!["https://images.example/initrd".into()],
        parameters: "console=ttyS0".into(),
    };
    Recipe::Network { protocol: NetworkProtocol::Pxe, payload, starts }
}

fn claimed(id: &str) -> Goal {
    Goal { claim: Some(claim(id)), ..Goal::default() }
}

fn ordered(id: &str, url: &str) -> Goal {
    Goal { order: Some(order(id, url)), ..claimed(id) }
}

/// A probe that boots once its gate is open.
fn probe(id: &str, open: bool) -> Probe {
    let gate = Gate { keeper: "its boot configuration".into(), open };
    Probe { id: id.into(), boot: Boot { gate, recipe: pxe(Starts::First) } }
}

/// A server that nobody has, and that is looked into by a probe.
fn probed(id: &str) -> Goal {
    Goal { probe: Some(probe(id, true)), newcomer: Newcomer::AwaitOff, online: Some(false), ..Goal::default() }
}
