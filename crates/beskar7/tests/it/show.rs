//! The story of one host, with a hand-written status on a real API server.

use serde_json::json;

use crate::program::beskar7;
use crate::{cluster, put_host};

#[tokio::test]
async fn the_story_has_state_claim_hardware_conditions_and_past() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("show").await;
    let spec = json!({"consumerRef": {"kind": "Beskar7Machine", "name": "node-01"}, "bootIsoSource": "http://192.0.2.1/os.iso"});
    let status = json!({
        "state": "Provisioning", "observedPowerState": "On", "health": "OK",
        "waiting": {"reason": "Booting", "message": "The server runs its self test.", "deadline": "2099-01-01T00:00:00Z"},
        "fault": {"reason": "Unreachable", "message": "The connection to port 443 was refused."},
        "conditions": [{"type": "Ready", "status": "False", "severity": "Error", "reason": "Unreachable",
            "message": "The BMC is away.", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "timeline": [{"at": "2026-01-01T00:00:00Z", "state": "Available", "message": "can be claimed"}],
        "hardwareDetails": {
            "manufacturer": "Dell Inc.", "model": "PowerEdge R640", "serialNumber": "ABC1234", "biosVersion": "2.1", "cores": 64,
            "processors": [{"id": "1", "model": "Xeon"}, {"id": "2", "model": "Xeon"}],
            "memoryMiB": 524_288, "memoryModules": [{"id": "A1"}],
            "drives": [{"id": "Disk0", "model": "PM9A3", "capacityBytes": 1_920_000_000_000_u64, "media": "SSD", "protocol": "NVMe"}],
            "nics": [{"id": "NIC1", "macAddress": "00:00:5e:00:53:01", "linkUp": true, "speedMbps": 25000}],
        },
    });
    put_host(cluster, &namespace, "server-01", &spec, &status).await;
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    let host = format!("{namespace}/server-01");
    let said = beskar7(&["show", &host, "--kubeconfig", kubeconfig]).await.ok();
    let lines: Vec<String> = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "server-01",
        "State: Provisioning",
        "Power: On",
        "Claimed by: Beskar7Machine node-01",
        "Order: boot http://192.0.2.1/os.iso",
        "Fault: Unreachable: The connection to port 443 was refused.",
        "Model: Dell Inc. PowerEdge R640, serial ABC1234, BIOS 2.1",
        "Processors: 2 × Xeon, 64 cores",
        "Memory: 512 GiB in 1 module",
        "Disk0 1,920 GB NVMe SSD PM9A3",
        "NIC1 00:00:5e:00:53:01 up 25000 Mb/s",
    ] {
        assert!(lines.iter().any(|said| said == line), "{line:?} is missing in\n{said}");
    }
    let begins = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(begins("Waiting: Booting (") && begins("Ready False Unreachable"), "\n{said}");
    assert!(lines.iter().any(|line| line.ends_with("ago Available can be claimed")), "\n{said}");
    assert!(!said.contains('\x1b'), "colours are for terminals only\n{said}");

    let json = beskar7(&["show", "server-01", "-n", &namespace, "-o", "json", "--kubeconfig", kubeconfig]).await.ok();
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["status"]["state"], "Provisioning");

    let nobody = beskar7(&["show", "nobody", "-n", &namespace, "--kubeconfig", kubeconfig]).await.error();
    assert_eq!(nobody, format!("error: there is no host {namespace}/nobody; `beskar7 hosts` lists them\n"));
}
