//! Manifests that others wrote.

use std::fs;

use api::metal3::BareMetalHost;
use serde_json::Value;

use super::cluster;
use crate::{config, manifest, read};

/// The documents of a file that are about hosts: its Secrets and BareMetalHosts.
fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents
        .into_iter()
        .filter(|document| document["kind"] == "BareMetalHost" || document["kind"] == "Secret")
        .collect()
}

#[tokio::test]
async fn upstreams_examples_and_a_users_manifest_apply() {
    let cluster = cluster().await;
    let examples = testkit::part("bmo").join("examples");
    let mut files: Vec<_> = fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.push(manifest("metal3.yaml"));
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for file in files {
        let documents = documents(&read(&file));
        count += documents.iter().filter(|document| document["kind"] == "BareMetalHost").count();
        let copy = folder.path().join(file.file_name().unwrap());
        let text: Vec<_> = documents.iter().map(|document| serde_saphyr::to_string(document).unwrap()).collect();
        fs::write(&copy, text.join("---\n")).unwrap();
        let namespace = cluster.namespace("metal3-examples").await;
        // `validate=strict` is kubectl's default: unknown fields would be refused.
        let applied = cluster.kubectl(&["apply", "-n", &namespace, "-f", copy.to_str().unwrap()]).await;
        assert_eq!(applied.stderr, "", "{}", file.display());
        assert_eq!(applied.ok().lines().count(), documents.len(), "{}", file.display());
        for host in documents.into_iter().filter(|document| document["kind"] == "BareMetalHost") {
            serde_json::from_value::<BareMetalHost>(host).unwrap();
        }
    }
    assert!(count >= 12, "only {count} hosts were found");
}

#[tokio::test]
async fn our_samples_apply() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("metal3-samples").await;
    let samples = config().join("samples/metal3").display().to_string();
    let applied = cluster.kubectl(&["apply", "-n", &namespace, "-f", &samples]).await;
    assert_eq!(applied.stderr, "");
    let applied = applied.ok();
    assert_eq!(applied.lines().filter(|line| line.starts_with("baremetalhost.")).count(), 3, "{applied}");
}
