//! Durable creates per second.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;
use tokio::time::Instant;

use super::Pair;
use super::wire::{Door, post};
use crate::process::float;

const CLIENTS: usize = 8;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
const BYTES: usize = 2000;

pub(super) async fn print(ours: &Door, real: Option<&Door>) -> Result<()> {
    let mut rates = Pair::new();
    for round in 0..ROUNDS {
        rates.ours.push(rate(ours, round).await?);
        if let Some(real) = real {
            rates.real.push(rate(real, round).await?);
        }
    }
    rates.print("creates of 2 KB ConfigMaps, 8 clients", "per s", true);
    Ok(())
}

async fn rate(door: &Door, round: usize) -> Result<f64> {
    let clients = door.clients(CLIENTS).await?;
    let end = Instant::now() + ROUND;
    let created = try_join_all(clients.iter().enumerate().map(|(number, client)| async move {
        let mut created = 0;
        while Instant::now() < end {
            post(client, PATH, config_map(&format!("b-{round}-{number}-{created}"))).await?;
            created += 1;
        }
        anyhow::Ok(created)
    }));
    Ok(float(created.await?.iter().sum()) / ROUND.as_secs_f64())
}

pub(super) fn config_map(name: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x".repeat(BYTES)},
    })
    .to_string()
}
