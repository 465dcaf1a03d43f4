//! `make uninstall` and `make undeploy`: deleting CRDs deletes hosts, and a host that goes takes its server down.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use testkit::Cluster;
use tokio::process::Command;

use crate::{put_host, workspace};

const UNSET: &str = "nothing";

/// A kubectl that asks the cluster, but only notes what it was told to delete.
fn harmless_kubectl(cluster: &Cluster, scratch: &TempDir) -> String {
    let kubectl = scratch.path().join("kubectl");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = delete ]; then echo \"$@\" >>'{}'; exit 0; fi\nexec '{}' --kubeconfig '{}' \"$@\"\n",
        deleted(scratch.path()).display(),
        testkit::part("kube").join("bin/kubectl").display(),
        cluster.admin_kubeconfig().display(),
    );
    std::fs::write(&kubectl, script).unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    kubectl.to_str().unwrap().to_owned()
}

fn deleted(scratch: &Path) -> std::path::PathBuf {
    scratch.join("deleted")
}

/// Runs a target of the Makefile; what it deleted, or its complaint.
async fn make(target: &str, kubectl: &str, scratch: &TempDir) -> Result<String, String> {
    let note = deleted(scratch.path());
    std::fs::remove_file(&note).ok();
    let kubectl = format!("KUBECTL={kubectl}");
    let arguments = ["--no-print-directory", target, &kubectl];
    let output = Command::new("make").args(arguments).current_dir(workspace()).output().await.unwrap();
    let told = std::fs::read_to_string(note).unwrap_or_else(|_| UNSET.to_owned());
    if output.status.success() {
        Ok(told)
    } else {
        assert_eq!(told, UNSET, "it complained and deleted all the same");
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[tokio::test]
async fn crds_and_operator_are_not_removed_while_hosts_are_in_use() {
    let cluster = Cluster::start().await;
    let scratch = tempfile::tempdir().unwrap();
    let kubectl = harmless_kubectl(&cluster, &scratch);
    // Without the CRDs there is nothing to protect.
    assert_eq!(make("uninstall", &kubectl, &scratch).await.unwrap(), "delete --ignore-not-found -k config/crd\n");

    cluster.apply_yaml(&api::crds_yaml()).await;
    let namespace = cluster.namespace("rack").await;
    put_host(&cluster, &namespace, "free", &json!({}), &json!({"state": "Available"})).await;
    assert_eq!(make("uninstall", &kubectl, &scratch).await.unwrap(), "delete --ignore-not-found -k config/crd\n");
    // The CRDs and the namespace stay, and with them the hosts.
    assert_eq!(make("undeploy", &kubectl, &scratch).await.unwrap(), "delete --ignore-not-found -k config/operator\n");
    let kept = cluster.kubectl(&["kustomize", workspace().join("config/operator").to_str().unwrap()]).await.ok();
    assert!(kept.contains("kind: Deployment"), "{kept}");
    assert!(!kept.contains("kind: CustomResourceDefinition") && !kept.contains("kind: Namespace\n"), "{kept}");

    // Nobody uses it, but its server was switched on on request, and would be powered off together with its object.
    put_host(&cluster, &namespace, "running", &json!({}), &json!({"state": "Available"})).await;
    let anchor = r#"beskar7.io/anchor={"v":2,"seq":3,"poweredOn":true}"#;
    cluster.kubectl(&["-n", &namespace, "annotate", "ph", "running", anchor]).await.ok();
    let complaint = make("uninstall", &kubectl, &scratch).await.unwrap_err();
    assert!(complaint.contains(&format!("{namespace}/running Available\n")), "{complaint}");
    assert!(complaint.contains("switch off the others (beskar7 power off)"), "{complaint}");
    assert!(make("undeploy", &kubectl, &scratch).await.is_ok(), "nothing is done to it without the operator");

    let claimed = json!({"consumerRef": {"kind": "Beskar7Machine", "name": "node-01"}});
    put_host(&cluster, &namespace, "used", &claimed, &json!({"state": "Provisioned"})).await;
    put_host(&cluster, &namespace, "leaving", &json!({}), &json!({"state": "Deprovisioning"})).await;
    put_host(&cluster, &namespace, "parked", &json!({}), &json!({"state": "Maintenance"})).await;
    let anchor = r#"beskar7.io/anchor={"v":1,"seq":3,"claim":{"id":"a"},"milestone":"provisioned"}"#;
    cluster.kubectl(&["-n", &namespace, "annotate", "ph", "parked", anchor]).await.ok();
    for target in ["uninstall", "undeploy"] {
        let complaint = make(target, &kubectl, &scratch).await.unwrap_err();
        assert!(
            complaint.contains(&format!(
                "make {target}: refused: {} PhysicalHost(s) in use",
                if target == "uninstall" { 4 } else { 3 }
            )),
            "{complaint}"
        );
        assert!(complaint.contains(&format!("{namespace}/used Provisioned for node-01\n")), "{complaint}");
        assert!(complaint.contains(&format!("{namespace}/leaving Deprovisioning\n")), "{complaint}");
        assert!(complaint.contains(&format!("{namespace}/parked Maintenance\n")), "{complaint}");
        assert!(!complaint.contains(&format!("{namespace}/free")), "{complaint}");
    }
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_counts_as_one_in_use() {
    let scratch = tempfile::tempdir().unwrap();
    for target in ["uninstall", "undeploy"] {
        let complaint = make(target, "false", &scratch).await.unwrap_err();
        assert!(complaint.contains("cannot be asked whether hosts are in use"), "{complaint}");
    }
}
