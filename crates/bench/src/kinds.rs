//! The kinds of hosts that can be measured.

use anyhow::{Context as _, Result};
use api::beskar7::PhysicalHost;
use api::metal3::BareMetalHost;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde_json::{Value, json};
use sim::Endpoint;

/// Which hosts are measured.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum HostKind {
    PhysicalHost,
    BareMetalHost,
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

impl HostKind {
    /// The CRDs.
    pub(crate) fn definitions(self) -> String {
        match self {
            Self::PhysicalHost => api::crds_yaml(),
            Self::BareMetalHost => api::crd::documents(&[api::crd::shared_crds(), api::metal3_crds()].concat()),
        }
    }

    /// What the operator may do, by the roles that we ship.
    pub(crate) fn roles(self) -> &'static str {
        match self {
            Self::PhysicalHost => ROLE,
            Self::BareMetalHost => BOTH_ROLES,
        }
    }

    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::PhysicalHost => &[],
            Self::BareMetalHost => &["--dialects=metal3"],
        }
    }

    /// The Secret for the BMC of that name. Each BareMetalHost has one of its own, because it becomes the Secret's owner.
    pub(crate) fn secret(self, bmc: &str) -> &str {
        match self {
            Self::PhysicalHost => "bmc",
            Self::BareMetalHost => bmc,
        }
    }

    pub(crate) fn api(self, client: Client, namespace: &str) -> Api<DynamicObject> {
        let resource = match self {
            Self::PhysicalHost => ApiResource::erase::<PhysicalHost>(&()),
            Self::BareMetalHost => ApiResource::erase::<BareMetalHost>(&()),
        };
        Api::namespaced_with(client, namespace, &resource)
    }

    /// A host that is off.
    pub(crate) fn host(self, endpoint: &Endpoint) -> Result<DynamicObject> {
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
                let path = format!("/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts?includeObject=None");
                let request = http::Request::get(path)
                    .header(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
                    .body(Vec::new())?;
                let table: Value = client.request(request).await?;
                let rows = table["rows"].as_array().context("the API server answered no table")?;
                let is_available = |row: &&Value| row["cells"][2] == "available";
                Ok(rows.iter().filter(is_available).count())
            }
        }
    }
}
