//! Manifests to a real API server.

use tempfile::TempDir;

use crate::cluster;
use crate::program::beskar7;

const HOST: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: bmc
stringData:
  username: admin
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PhysicalHost
metadata:
  name: server-01
spec:
  redfishConnection:
    address: https://192.0.2.10
    credentialsSecretRef: bmc
";

#[tokio::test]
async fn objects_are_created_changed_or_left_as_they_are() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("apply").await;
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("host.yaml");
    std::fs::write(&file, HOST).unwrap();
    let apply = async |path: &str, more: &[&str]| {
        let all = [&["apply", "-f", path, "-n", &namespace, "--kubeconfig", kubeconfig], more].concat();
        beskar7(&all).await
    };
    let path = file.to_str().unwrap();
    let host = "physicalhost.infrastructure.cluster.x-k8s.io/server-01";
    assert_eq!(
        apply(path, &["--dry-run"]).await.ok(),
        format!("secret/bmc created (dry run)\n{host} created (dry run)\n")
    );
    assert_eq!(apply(path, &[]).await.ok(), format!("secret/bmc created\n{host} created\n"));
    assert_eq!(apply(path, &[]).await.ok(), format!("secret/bmc unchanged\n{host} unchanged\n"));

    let plain = file.with_file_name("plain.txt");
    std::fs::write(&plain, HOST.replace("https://", "http://")).unwrap();
    let said = apply(plain.to_str().unwrap(), &["--dry-run"]).await;
    assert!(
        said.stderr.contains("PhysicalHost server-01: spec.redfishConnection.address speaks to the BMC without TLS"),
        "{said:?}"
    );

    std::fs::write(&file, HOST.replace("192.0.2.10", "192.0.2.11")).unwrap();
    let folder = folder.path().to_str().unwrap();
    assert_eq!(apply(folder, &[]).await.ok(), format!("secret/bmc unchanged\n{host} configured\n"));

    cluster
        .kubectl(&[
            "-n",
            &namespace,
            "patch",
            "ph",
            "server-01",
            "--type=merge",
            "-p",
            r#"{"spec":{"redfishConnection":{"address":"https://192.0.2.12"}}}"#,
        ])
        .await
        .ok();
    let conflict = apply(path, &[]).await.error();
    assert!(conflict.contains("host.yaml: PhysicalHost server-01: Apply failed with 1 conflict"), "{conflict}");
    assert!(conflict.ends_with("To take these fields over, add --force-conflicts\n"), "{conflict}");
    assert!(apply(path, &["--force-conflicts"]).await.ok().ends_with(" configured\n"));
}

#[tokio::test]
async fn nothing_is_changed_when_something_cannot_be() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("apply").await;
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("mix.yaml");
    let error = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        beskar7(&["apply", "-f", path, "-n", &namespace, "--kubeconfig", kubeconfig]).await.error()
    };
    let unknown = error(&format!("{HOST}---\napiVersion: v1\nkind: Sceret\nmetadata: {{name: x}}\n")).await;
    assert!(unknown.contains("mix.yaml: Sceret x: the cluster at https://127.0.0.1:"), "{unknown}");
    let group = error(&format!("{HOST}---\napiVersion: nobody.example.com/v1\nkind: A\nmetadata: {{name: x}}\n")).await;
    assert!(group.contains("does not know that kind in nobody.example.com/v1; nothing was changed"), "{group}");
    let elsewhere = error(&HOST.replace("name: bmc\n", "name: bmc\n  namespace: elsewhere\n")).await;
    assert!(elsewhere.contains("is meant for the namespace elsewhere, but --namespace says"), "{elsewhere}");
    assert!(error("").await.contains("there is no object in what was given"));
    let secrets = cluster.kubectl(&["-n", &namespace, "get", "secrets,ph", "-o", "name"]).await.ok();
    assert_eq!(secrets, "");
    let missing = beskar7(&["apply", "-f", "/nonexistent.yaml", "--kubeconfig", kubeconfig]).await.error();
    assert!(missing.starts_with("error: cannot read /nonexistent.yaml: "), "{missing}");
}
