//! Lists of a whole fleet, and watches of many.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::{try_join, try_join_all};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::Pair;
use super::hosts::{self, Kinds, NAMESPACE, collection};
use super::wire::{Door, get, get_json, merge, send};

const ROUNDS: usize = 5;
const WATCHERS: usize = 50;
const UPDATERS: u32 = 8;
const UPDATES_EACH: u32 = 50;
const LIMIT: Duration = Duration::from_mins(2);

pub(super) async fn print_list(ours: &Door, real: Option<&Door>, count: u32) -> Result<()> {
    let mut took = Pair::new();
    let mut sizes = Vec::new();
    for _ in 0..ROUNDS {
        sizes.push(list(ours, &mut took.ours).await?);
        if let Some(real) = real {
            sizes.push(list(real, &mut took.real).await?);
        }
    }
    took.print(&format!("list of {count} hosts, whole body"), "ms", false);
    let each: Vec<_> = sizes.iter().take(2).map(|bytes| format!("{}", bytes / u64::from(count))).collect();
    println!("    (bytes per host, ours and the other: {})", each.join(", "));
    Ok(())
}

async fn list(door: &Door, took: &mut Vec<f64>) -> Result<u64> {
    let client = door.client().await?;
    // The handshake is not what is measured.
    get_json(&client, "/api/v1/namespaces/default").await?;
    let started = Instant::now();
    let bytes = send(&client, http::Method::GET, &collection(NAMESPACE), super::wire::JSON, String::new()).await?;
    took.push(started.elapsed().as_secs_f64() * 1000.0);
    Ok(bytes)
}

pub(super) async fn print_fan_out(ours: &Door, real: Option<&Door>, kinds: &Kinds) -> Result<()> {
    let mut took = Pair::new();
    for round in 0..3 {
        took.ours.push(fan_out(ours, kinds, &format!("watched-{round}")).await?);
        if let Some(real) = real {
            took.real.push(fan_out(real, kinds, &format!("watched-{round}")).await?);
        }
    }
    let updates = UPDATERS * UPDATES_EACH;
    took.print(&format!("{updates} updates, seen by {WATCHERS} watchers"), "ms", false);
    Ok(())
}

/// Milliseconds from the first update until everybody has seen the last one.
async fn fan_out(door: &Door, kinds: &Kinds, namespace: &str) -> Result<f64> {
    hosts::register_in(door, kinds, namespace, UPDATERS).await?;
    let updaters = door.clients(UPDATERS as usize).await?;
    let path = collection(namespace);
    // With our operator in the process, hosts may still be changing right after they were made.
    let mut revision = String::new();
    loop {
        let list = get_json(&updaters[0], &path).await?;
        let now = list["metadata"]["resourceVersion"].as_str().context("a list without a revision")?.to_owned();
        if now == revision {
            break;
        }
        revision = now;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let mut watches = Vec::new();
    for client in door.clients(WATCHERS).await? {
        let url = format!("{path}?watch=true&resourceVersion={revision}");
        watches.push((get(&client, &url).await?.into_body(), client));
    }
    let started = Instant::now();
    let all_see = try_join_all(watches.into_iter().map(|(body, _client)| events(body, UPDATERS * UPDATES_EACH)));
    let update = try_join_all(updaters.iter().zip(0..).map(|(client, number)| {
        let url = format!("{path}/{}", hosts::name(number));
        async move {
            for update in 0..UPDATES_EACH {
                let label = json!({"metadata": {"labels": {"update": update.to_string()}}});
                merge(client, &url, label.to_string()).await?;
            }
            anyhow::Ok(())
        }
    }));
    timeout(LIMIT, try_join(all_see, update)).await.context("watchers do not see all updates")??;
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

/// Reads a watch until it has seen so many events: each is a line.
async fn events(mut body: Body, count: u32) -> Result<()> {
    let mut seen = 0;
    while seen < u64::from(count) {
        let Some(frame) = body.frame().await else { bail!("a watch ended after {seen} events") };
        let frame = frame?;
        let lines = frame.data_ref().map_or(0, |data| data.split(|byte| *byte == b'\n').count() - 1);
        seen += lines as u64;
    }
    Ok(())
}
