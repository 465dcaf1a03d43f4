//! Statuses as the generations wrote them.

use serde_json::{Value, json};

/// Name of the generation and a status with all fields that it had.
pub(crate) fn statuses() -> [(&'static str, Value); 4] {
    [
        ("v0.2", json!({"ready": false, "state": "Enrolling", "lastStateTransitionTime": "2025-05-22T08:00:00Z"})),
        (
            "v0.3",
            json!({
                "ready": true,
                "state": "Provisioned",
                "observedPowerState": "On",
                "errorMessage": "none",
                "hardwareDetails": {
                    "manufacturer": "Dell Inc.", "model": "PowerEdge R640", "serialNumber": "ABC1234",
                    "status": {"health": "OK", "healthRollup": "Warning", "state": "Enabled"},
                },
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.6"},
                    {"type": "Hostname", "address": "node-01"},
                ],
                "conditions": [
                    {"type": "HostProvisioned", "status": "True", "lastTransitionTime": "2025-10-23T10:00:00Z"},
                    {
                        "type": "HostAvailable", "status": "False", "severity": "Info", "reason": "WaitingForBootInfo",
                        "message": "waiting", "lastTransitionTime": "2025-10-23T10:00:00Z",
                    },
                ],
            }),
        ),
        (
            "v0.4",
            json!({
                "ready": true,
                "state": "Ready",
                "inspectionPhase": "Complete",
                "inspectionTimestamp": "2025-11-27T10:00:00Z",
                "inspectionReport": {
                    "timestamp": "2025-11-27T10:05:00Z",
                    "manufacturer": "QEMU", "model": "q35", "serialNumber": "1",
                    "bootModeDetected": "UEFI", "firmwareVersion": "2.0",
                    "cpus": [{"id": "0", "vendor": "Intel", "model": "Xeon", "cores": 8, "threads": 16, "frequency": "2.1GHz"}],
                    "memory": [{"id": "DIMM0", "type": "DDR4", "capacity": "32GB", "speed": "2666MT/s"}],
                    "disks": [{"name": "sda", "model": "disk", "sizeGB": 480, "type": "SSD", "serialNumber": "2"}],
                    "nics": [{
                        "name": "eth0", "macAddress": "52:54:00:12:34:56", "driver": "virtio", "speed": "10Gb/s",
                        "ipAddresses": ["10.0.0.7"],
                    }],
                },
            }),
        ),
        (
            "successor",
            json!({
                "ready": false,
                "state": "Deploying",
                "deployingTimestamp": "2026-06-07T10:00:00Z",
                "bootstrap": {
                    "url": "https://beskar7.example.com/api/v1/bootstrap/default/server-01",
                    "tokenHash": "ab", "issuedAt": "2026-06-07T10:00:00Z", "expiresAt": "2026-06-07T11:00:00Z",
                    "bootNonceHash": "cd", "bootNonceExpiresAt": "2026-06-07T10:10:00Z",
                    "bootNonceConsumedAt": "2026-06-07T10:01:00Z",
                },
            }),
        ),
    ]
}

/// The same for machines.
pub(crate) fn machine_statuses() -> [(&'static str, Value); 3] {
    [
        (
            "v0.3",
            json!({
                "ready": true,
                "phase": "Provisioned",
                "failureReason": "InvalidProviderID",
                "failureMessage": "no such host",
                "addresses": [{"type": "InternalIP", "address": "10.0.0.6"}],
                "conditions": [
                    {"type": "InfrastructureReady", "status": "True", "lastTransitionTime": "2025-10-23T10:00:00Z"},
                    {
                        "type": "PhysicalHostAssociated", "status": "False", "severity": "Info",
                        "reason": "WaitingForPhysicalHost", "message": "waiting",
                        "lastTransitionTime": "2025-10-23T10:00:00Z",
                    },
                ],
            }),
        ),
        ("v0.4", json!({"ready": false, "phase": "Inspecting"})),
        ("successor", json!({"ready": true, "phase": "Provisioned", "initialization": {"provisioned": true}})),
    ]
}
