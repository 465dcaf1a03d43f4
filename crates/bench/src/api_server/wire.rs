//! Requests without types: what is measured is the server, not how a client reads.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The way to an API server.
#[derive(Debug, Clone)]
pub(super) struct Door {
    kubeconfig: PathBuf,
}

impl Door {
    pub(super) fn new(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned() }
    }

    /// A client with connections of its own.
    pub(super) async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    pub(super) async fn clients(&self, count: usize) -> Result<Vec<Client>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }
}

/// Sends a request, expects success, and reads the whole answer; returns how many bytes it has.
pub(super) async fn send(client: &Client, method: Method, path: &str, kind: &str, body: String) -> Result<u64> {
    let mut body = answer(client, method, path, kind, body).await?.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(bytes)
}

pub(super) async fn post(client: &Client, path: &str, body: String) -> Result<u64> {
    send(client, Method::POST, path, JSON, body).await
}

pub(super) async fn merge(client: &Client, path: &str, body: String) -> Result<u64> {
    send(client, Method::PATCH, path, MERGE_PATCH, body).await
}

/// The answer to a GET, to be read by the caller.
pub(super) async fn get(client: &Client, path: &str) -> Result<Response<Body>> {
    answer(client, Method::GET, path, JSON, String::new()).await
}

/// The answer to a GET, read.
pub(super) async fn get_json(client: &Client, path: &str) -> Result<Value> {
    let body = get(client, path).await?.into_body().collect().await?.to_bytes();
    Ok(serde_json::from_slice(&body)?)
}

async fn answer(client: &Client, method: Method, path: &str, kind: &str, body: String) -> Result<Response<Body>> {
    let request = Request::builder().method(&method).uri(path).header("content-type", kind);
    let response = client.send(request.body(Body::from(body.into_bytes()))?).await;
    let response = response.with_context(|| format!("{method} {path}"))?;
    if !response.status().is_success() {
        let status = response.status();
        let text = response.into_body().collect().await?.to_bytes();
        bail!("{method} {path} was answered with {status}: {}", String::from_utf8_lossy(&text));
    }
    Ok(response)
}
