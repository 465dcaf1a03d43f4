//! Manifests that upstream ships.

use std::fs;

use api::ironcore::{
    Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim, ServerMaintenance, ServerReadinessRule,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use testkit::Cluster;

use super::{KINDS, cluster};
use crate::{config, read};

/// Samples that kubectl cannot apply to upstream's CRDs either: kind, what is wrong in them, what it should be, what the API server says.
/// To kubectl, as to every program that reads YAML 1.1, these bare words are booleans.
const REFUSED: [(&str, &str, &str, &str); 2] = [
    ("ServerMaintenance", "serverPower: Off", "serverPower: \"Off\"", "spec.serverPower: Invalid value: \"boolean\""),
    (
        "ServerReadinessRule",
        "requiredStatus: True",
        "requiredStatus: \"True\"",
        "spec.conditions[0].requiredStatus: Invalid value: \"boolean\"",
    ),
];

fn sample(kind: &str) -> String {
    let file = format!("samples/metal_v1alpha1_{}.yaml", kind.to_lowercase());
    read(testkit::part("metal-operator").join(file))
}

#[tokio::test]
async fn upstreams_samples_apply() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("ironcore-samples").await;
    for kind in KINDS {
        let mut text = sample(kind);
        if let Some((_, wrong, right, sentence)) = REFUSED.iter().find(|(refused, ..)| *refused == kind) {
            let refused = apply(cluster, &namespace, &text).await;
            assert!(!refused.status.success(), "kubectl applies the sample of {kind} now: take it off the list");
            assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
            assert!(text.contains(wrong), "{text}");
            text = text.replace(wrong, right);
        }
        let applied = apply(cluster, &namespace, &text).await;
        let warning = match kind {
            "Endpoint" => "Warning: metal.ironcore.dev/v1alpha1 Endpoints are deprecated; specify the network access",
            "ServerMaintenance" => "Warning: metal.ironcore.dev/v1alpha1 ServerMaintenance is deprecated",
            _ => "",
        };
        assert!(applied.stderr.starts_with(warning), "{}", applied.stderr);
        assert_eq!(applied.stderr.is_empty(), warning.is_empty(), "{}", applied.stderr);
        assert_eq!(applied.ok().lines().count(), 1, "{kind}");
        is_kept(kind, &serde_saphyr::from_str(&text).unwrap());
    }
}

#[tokio::test]
async fn our_samples_apply() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("ironcore-own-samples").await;
    let samples = config().join("samples/ironcore").display().to_string();
    let applied = cluster.kubectl(&["apply", "-n", &namespace, "-f", &samples]).await;
    let told: Vec<_> = applied.stderr.lines().collect();
    assert!(matches!(told[..], [endpoint] if endpoint.contains("Endpoints are deprecated")), "{told:#?}");
    let applied = applied.ok();
    for (kind, count) in
        [("endpoint", 1), ("bmcsecret", 2), ("bmc", 1), ("server", 1), ("serverclaim", 2), ("secret", 1)]
    {
        let begin = [format!("{kind}."), format!("{kind}/")];
        let lines = applied.lines().filter(|line| begin.iter().any(|begin| line.starts_with(begin)));
        assert_eq!(lines.count(), count, "{kind}\n{applied}");
    }
}

/// `validate=strict` is kubectl's default: unknown fields would be refused.
async fn apply(cluster: &Cluster, namespace: &str, text: &str) -> testkit::Kubectl {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sample.yaml");
    fs::write(&file, text).unwrap();
    cluster.kubectl(&["apply", "-n", namespace, "-f", file.to_str().unwrap()]).await
}

/// The types keep everything that a manifest says.
fn is_kept(kind: &str, manifest: &Value) {
    fn kept<K: DeserializeOwned + Serialize>(manifest: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<K>(manifest.clone()).unwrap()).unwrap()
    }
    let kept = match kind {
        "Endpoint" => kept::<Endpoint>(manifest),
        "BMC" => kept::<Bmc>(manifest),
        "BMCSecret" => kept::<BmcSecret>(manifest),
        "Server" => kept::<Server>(manifest),
        "ServerClaim" => kept::<ServerClaim>(manifest),
        "ServerBootConfiguration" => kept::<ServerBootConfiguration>(manifest),
        "ServerMaintenance" => kept::<ServerMaintenance>(manifest),
        "ServerReadinessRule" => kept::<ServerReadinessRule>(manifest),
        other => panic!("no {other}"),
    };
    assert_eq!(&kept, manifest, "{kind}");
}
