//! A boot provider for simulated servers: whatever they are to boot is ready at once.

use api::ironcore::ServerBootConfiguration;
use api::ironcore::states::boot;
use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tracing::warn;

/// Says of every ServerBootConfiguration that it is ready, until it is dropped.
pub(super) async fn provide(client: Client) {
    let all: Api<ServerBootConfiguration> = Api::all(client.clone());
    let seen = watcher(all, Config::default()).default_backoff().applied_objects();
    let client = &client;
    seen.for_each(|seen| async move {
        let Ok(configuration) = seen.inspect_err(|error| warn!(%error, "boot configurations cannot be watched")) else {
            return;
        };
        let is_pending = configuration.status.as_ref().is_some_and(|status| status.state == boot::PENDING);
        if !is_pending {
            return;
        }
        let (namespace, name) = (configuration.namespace().unwrap_or_default(), configuration.name_any());
        let own: Api<ServerBootConfiguration> = Api::namespaced(client.clone(), &namespace);
        let ready = Patch::Merge(json!({ "status": { "state": boot::READY } }));
        if let Err(error) = own.patch_status(&name, &PatchParams::default(), &ready).await {
            warn!(%error, "the boot configuration {namespace}/{name} cannot be made ready");
        }
    })
    .await;
}
