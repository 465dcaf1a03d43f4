//! Real parts for tests: a Kubernetes API server, the managers of Cluster API, Redfish services that we did not write, virtual machines.
//!
//! The programs come from `make setup`. Everything runs on loopback in a scratch directory and ends with the
//! test process, however that ends. A part that does not start fails the test that asked for it, with the tail of
//! its log.
//!
//! `BESKAR7_KEEP=1` leaves the scratch directory (certificates, logs, serial consoles) behind.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "there is nobody to hand an error to: a broken test bed fails the test"
)]

mod cluster;
mod cluster_api;
mod fetch;
mod iso;
mod metalprobe;
mod mock_bmc;
mod parts;
mod pki;
mod process;
mod scratch;
mod sushy;
mod vm;
mod wait;
mod web_server;
mod workload;

pub use cluster::{Account, AuditWrite, Cluster, Kubectl};
pub use cluster_api::{CapiRelease, ClusterApi, Metal3, Move};
pub use fetch::{fetch_from, send_from};
pub use iso::{Layout, NetworkBoot, build_fetching_iso, build_iso, build_menu_iso, build_network_boot};
pub use metalprobe::Metalprobe;
pub use mock_bmc::MockBmc;
pub use parts::home as part;
pub use scratch::free_port;
pub use sushy::{FakeSystem, Sushy};
pub use vm::{Firmware, VmLab};
pub use wait::{wait_for, wait_ok};
pub use web_server::{Report, WebServer};
pub use workload::{Bootstrap, NewNode, NodeRole, Workload};
