//! `kill -9` while clients write: what was acknowledged must be there afterwards.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use serde_json::json;
use tokio::time::sleep;

use super::creates::config_map;
use super::site::Site;
use super::wire::{Door, get_json, post};

const CLIENTS: usize = 8;

pub(super) async fn print(binary: &Path, kills: u32) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut acknowledged, mut lost) = (0, 0);
    let mut site = Site::start(binary, folder.path()).await?;
    for round in 0..kills {
        let namespace = format!("round-{round}");
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        post(&site.door().client().await?, "/api/v1/namespaces", made.to_string()).await?;
        let door = site.door();
        let kill = async {
            sleep(Duration::from_millis(fastrand::u64(50..400))).await;
            site.kill().await
        };
        let (names, killed) = tokio::join!(write_until_it_dies(&door, &namespace), kill);
        killed?;
        let names = names?;
        site = Site::start(binary, folder.path()).await?;
        let kept = names_in(&site.door(), &namespace).await?;
        acknowledged += names.len();
        lost += names.iter().filter(|name| !kept.contains(*name)).count();
    }
    println!(
        "  kill -9 under writes                         {kills:>9} times, {acknowledged} writes acknowledged, lost = {lost} (to reach: 0)"
    );
    site.kill().await
}

/// The names of all objects whose creation was acknowledged.
async fn write_until_it_dies(door: &Door, namespace: &str) -> Result<Vec<String>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let clients = door.clients(CLIENTS).await?;
    let names = join_all(clients.iter().enumerate().map(|(number, client)| {
        let path = &path;
        async move {
            let mut names = Vec::new();
            loop {
                let name = format!("c-{number}-{}", names.len());
                if post(client, path, config_map(&name)).await.is_err() {
                    return names;
                }
                names.push(name);
            }
        }
    }));
    Ok(names.await.concat())
}

async fn names_in(door: &Door, namespace: &str) -> Result<HashSet<String>> {
    let list = get_json(&door.client().await?, &format!("/api/v1/namespaces/{namespace}/configmaps")).await?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(items.iter().filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned())).collect())
}
