//! The manifests of a provider, made to fit managers that are processes here instead of Pods behind a Service.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::manager::Provider;

/// Only kinds whose definitions bear it are moved.
const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";

/// Where a manager serves its webhooks, and who vouches for it.
pub(super) struct Webhook {
    pub(super) url: String,
    pub(super) authority_pem: String,
}

impl Webhook {
    fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("{}{path}", self.url), "caBundle": BASE64_STANDARD.encode(&self.authority_pem)})
    }
}

/// A definition as the provider's own kustomization and `clusterctl init` would label it, with conversion by `webhook`.
pub(super) fn definition(mut document: Value, provider: &Provider, webhook: &Webhook) -> Value {
    let labels = &mut document["metadata"]["labels"];
    labels[CLUSTERCTL] = json!("");
    for contract in provider.contracts {
        labels[format!("cluster.x-k8s.io/{contract}")] = json!(contract);
    }
    let versions = document["spec"]["versions"].as_array().map_or(0, Vec::len);
    if versions > 1 {
        document["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config("/convert")},
        });
    }
    document
}

/// A webhook configuration that is reached by URL. All providers use the same names, so each gets one of its own.
pub(super) fn admission(mut document: Value, provider: &Provider, webhook: &Webhook) -> Value {
    document["metadata"]["name"] = json!(format!("{}-{}", name(&document), provider.name));
    for hook in document["webhooks"].as_array_mut().into_iter().flatten() {
        let path = hook["clientConfig"]["service"]["path"].as_str().expect("a webhook has a path").to_owned();
        hook["clientConfig"] = webhook.client_config(&path);
    }
    document
}

pub(super) fn name(document: &Value) -> &str {
    document["metadata"]["name"].as_str().expect("a manifest has a name")
}

/// The documents of all files of a directory.
pub(super) fn read_dir(dir: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display()));
    entries.flat_map(|entry| read(&entry.expect("a directory entry").path())).collect()
}

/// The documents of one file.
pub(super) fn read(file: &Path) -> Vec<Value> {
    let yaml = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&yaml).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook() -> Webhook {
        Webhook { url: "https://127.0.0.1:1".to_owned(), authority_pem: "ca".to_owned() }
    }

    fn provider(contracts: &'static [&'static str]) -> Provider {
        Provider { name: "some", home: "/nowhere".into(), contracts, flags: &[] }
    }

    #[test]
    fn definitions_carry_the_contracts_of_their_provider_and_what_clusterctl_looks_for() {
        let bare = json!({"metadata": {"name": "x"}, "spec": {"versions": [{}]}});
        let old = definition(bare.clone(), &provider(&["v1beta1"]), &webhook());
        assert_eq!(old["metadata"]["labels"], json!({CLUSTERCTL: "", "cluster.x-k8s.io/v1beta1": "v1beta1"}));
        let new = definition(bare.clone(), &provider(&["v1beta1", "v1beta2"]), &webhook());
        assert_eq!(new["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], "v1beta2");
        let core = definition(bare.clone(), &provider(&[]), &webhook());
        assert_eq!(core["metadata"]["labels"], json!({CLUSTERCTL: ""}));
        assert_eq!(core["spec"], bare["spec"]);
    }

    #[test]
    fn several_versions_are_converted_by_the_manager() {
        let bare = json!({"metadata": {"name": "x"}, "spec": {"versions": [{}, {}]}});
        let converted = definition(bare, &provider(&[]), &webhook());
        let client = &converted["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(*client, json!({"url": "https://127.0.0.1:1/convert", "caBundle": "Y2E="}));
    }

    #[test]
    fn webhooks_of_several_providers_do_not_overwrite_each_other() {
        let bare = json!({
            "metadata": {"name": "mutating"},
            "webhooks": [{"clientConfig": {"service": {"path": "/mutate", "name": "s", "namespace": "n"}}}],
        });
        let admission = admission(bare, &provider(&[]), &webhook());
        assert_eq!(admission["metadata"]["name"], "mutating-some");
        assert_eq!(
            admission["webhooks"][0]["clientConfig"],
            json!({"url": "https://127.0.0.1:1/mutate", "caBundle": "Y2E="})
        );
    }
}
