//! Servers that are looked into by a probe: what the operator is started with, and what a probe leaves in the registry.

use std::net::TcpListener;
use std::sync::Arc;

use ::boot::fetch::{Fetcher, Guard, Patience};
use ::boot::links::Links;
use api::boot::{BootSession, BootSessionSpec, Report};
use api::ironcore::Server;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource as _, ResourceExt as _};

use crate::depot::BootConfig;
use crate::ironcore::{ProbeSettings, Template};

/// Where probes report: the socket of the boot service is never asked for anything.
pub(super) const BOOT_URL: &str = "http://192.0.2.5:8082";

/// A boot service that keeps its key in that namespace.
pub(super) fn boot(namespace: &str) -> BootConfig {
    BootConfig {
        network: None,
        links: Links::new(BOOT_URL).unwrap(),
        listener: Arc::new(TcpListener::bind("127.0.0.1:0").unwrap()),
        tls: None,
        fetcher: Fetcher::new(Guard::default(), None, Patience::default()).unwrap(),
        key_namespace: namespace.to_owned(),
    }
}

/// Probes whose boot configurations are in that namespace.
pub(super) fn settings(namespace: &str) -> ProbeSettings {
    ProbeSettings {
        image: "registry.example/probe:1".to_owned(),
        os_image: "registry.example/probe-os:1".to_owned(),
        namespace: namespace.to_owned(),
        template: Template::parse("run {{.Image}} {{.Flags}}\nkey {{.SSHPublicKey}}\n").unwrap(),
    }
}

/// What the registry of any replica keeps when a probe has reported.
pub(super) fn session(server: &Server, probe: &str, at: Timestamp, data: String) -> BootSession {
    let report = Some(Report { at: Time(at), data });
    let spec = BootSessionSpec { host: server.name_any(), report, ..BootSessionSpec::default() };
    let mut session = BootSession::new(probe, spec);
    session.metadata.owner_references = Some(server.owner_ref(&()).into_iter().collect());
    session
}
