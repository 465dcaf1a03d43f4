//! The kinds of hosts that can be measured.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use api::beskar7::PhysicalHost;
use api::ironcore::{self, Server};
use api::metal3::BareMetalHost;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};
use sim::Endpoint;

/// Which hosts are measured.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum HostKind {
    PhysicalHost,
    BareMetalHost,
    /// Found by their Endpoints.
    Server,
}

macro_rules! role {
    ($folder:literal, $name:literal) => {
        concat!(
            include_str!(concat!("../../../config/", $folder, "/role.yaml")),
            "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ",
            $name,
            "}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ",
            $name,
            "}
subjects: [{kind: ServiceAccount, name: beskar7}]
"
        )
    };
}

const ROLE: &str = role!("rbac", "beskar7-manager");
const BOTH_ROLES: &str = concat!(role!("rbac", "beskar7-manager"), "---\n", role!("metal3", "beskar7-metal3-manager"));

const EVERYWHERE: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: beskar7-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: beskar7-manager}
subjects: [{kind: ServiceAccount, name: beskar7, namespace: NAMESPACE}]
";

impl HostKind {
    /// The CRDs.
    pub(crate) fn definitions(self) -> String {
        match self {
            Self::PhysicalHost => api::crds_yaml(),
            Self::BareMetalHost => api::crd::documents(&[api::crd::shared_crds(), api::metal3_crds()].concat()),
            Self::Server => api::crd::documents(&[api::crd::shared_crds(), api::crd::ironcore_crds()].concat()),
        }
    }

    /// What the operator may do, by the roles that we ship. Servers have no namespace, so it may do that everywhere.
    pub(crate) fn roles(self, namespace: &str, binary: &Path) -> Result<String> {
        Ok(match self {
            Self::PhysicalHost => ROLE.to_owned(),
            Self::BareMetalHost => BOTH_ROLES.to_owned(),
            Self::Server => {
                let printed = Command::new(binary).args(["roles", "--dialects=ironcore"]).output();
                let printed = printed.with_context(|| no_program(binary))?;
                if !printed.status.success() {
                    bail!("{} roles: {}", binary.display(), String::from_utf8_lossy(&printed.stderr));
                }
                let binding = EVERYWHERE.replace("NAMESPACE", namespace);
                format!("{}\n---\n{binding}", String::from_utf8(printed.stdout)?)
            }
        })
    }

    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::PhysicalHost => &[],
            Self::BareMetalHost => &["--dialects=metal3"],
            Self::Server => &["--dialects=ironcore"],
        }
    }

    /// The Secret for the BMC of that name. Each BareMetalHost has one of its own, because it becomes the Secret's owner. BMCSecrets are
    /// made by the operator.
    pub(crate) fn secret(self, bmc: &str) -> Option<&str> {
        match self {
            Self::PhysicalHost => Some("bmc"),
            Self::BareMetalHost => Some(bmc),
            Self::Server => None,
        }
    }

    /// What is applied: the hosts themselves, or the devices that they are found behind.
    pub(crate) fn api(self, client: Client, namespace: &str) -> Api<DynamicObject> {
        match self {
            Self::PhysicalHost => Api::namespaced_with(client, namespace, &ApiResource::erase::<PhysicalHost>(&())),
            Self::BareMetalHost => Api::namespaced_with(client, namespace, &ApiResource::erase::<BareMetalHost>(&())),
            Self::Server => Api::all_with(client, &ApiResource::erase::<ironcore::Endpoint>(&())),
        }
    }

    /// A host that is off.
    pub(crate) fn host(self, number: usize, endpoint: &Endpoint) -> Result<DynamicObject> {
        let (name, url) = (endpoint.bmc().name(), endpoint.url());
        let host = match self {
            Self::PhysicalHost => json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "PhysicalHost",
                "metadata": { "name": name },
                "spec": { "redfishConnection": {
                    "address": url,
                    "credentialsSecretRef": self.secret(name),
                    "certificateFingerprint": endpoint.certificate().map(|certificate| certificate.fingerprint()),
                } },
            }),
            Self::BareMetalHost => json!({
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "BareMetalHost",
                "metadata": { "name": name },
                "spec": {
                    "online": false,
                    "bmc": {
                        "address": format!("redfish-virtualmedia+{url}"),
                        "credentialsName": self.secret(name),
                        "disableCertificateVerification": true,
                    },
                },
            }),
            Self::Server => {
                let fingerprint = endpoint.certificate().map(|certificate| certificate.fingerprint().clone());
                json!({
                    "apiVersion": "metal.ironcore.dev/v1alpha1",
                    "kind": "Endpoint",
                    "metadata": { "name": name, "annotations": { "beskar7.io/bmc-trust": fingerprint } },
                    "spec": { "macAddress": mac(number), "ip": endpoint.address().ip() },
                })
            }
        };
        Ok(serde_json::from_value(host)?)
    }

    /// How many hosts are free. Whole inventories would cost the API server more than the operator does, so they are not read.
    pub(crate) async fn available(self, client: &Client, namespace: &str) -> Result<usize> {
        match self {
            Self::PhysicalHost => {
                let api: Api<PartialObjectMeta<PhysicalHost>> = Api::namespaced(client.clone(), namespace);
                Ok(api.list_metadata(&ListParams::default().fields("status.state=Available")).await?.items.len())
            }
            Self::BareMetalHost => {
                let path = format!("/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts");
                count_rows(client, &path, "State", "available").await
            }
            Self::Server => count_rows(client, &Server::url_path(&(), None), "State", "Available").await,
        }
    }
}

/// How many objects have this in a column of the table that kubectl shows.
async fn count_rows(client: &Client, path: &str, column: &str, value: &str) -> Result<usize> {
    let request = http::Request::get(format!("{path}?includeObject=None"))
        .header(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = client.request(request).await?;
    let columns = table["columnDefinitions"].as_array().context("the API server answered no table")?;
    let at = columns.iter().position(|known| known["name"] == column);
    let at = at.with_context(|| format!("there is no column {column} at {path}"))?;
    let rows = table["rows"].as_array().context("the API server answered a table without rows")?;
    Ok(rows.iter().filter(|row| row["cells"][at] == value).count())
}

/// The MAC address of a BMC. Nobody else has such a one: it is administered locally.
fn mac(number: usize) -> String {
    let [.., high, low] = number.to_be_bytes();
    format!("02:be:5c:a7:{high:02x}:{low:02x}")
}

/// What is known of devices: all listen on one address, each on a port of its own, so each has a prefix of its own.
pub(crate) fn mac_prefixes(endpoints: &[Endpoint]) -> String {
    let mut file = "macPrefixes:\n".to_owned();
    for (number, endpoint) in endpoints.iter().enumerate() {
        let (mac, port) = (mac(number), endpoint.address().port());
        let login = "defaultCredentials: [{username: admin, password: password}]";
        // Writing to a String cannot fail.
        writeln!(file, "- {{macPrefix: '{mac}', protocol: Redfish, port: {port}, type: bmc, {login}}}").ok();
    }
    file
}

/// Why a program could not be started.
pub(crate) fn no_program(binary: &Path) -> String {
    format!("cannot start {}; build it with `make build`", binary.display())
}
