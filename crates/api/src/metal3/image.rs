//! What is written to a server's disk, or booted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["url"]))]
pub struct Image {
    /// Where the image is.
    pub url: String,
    /// Checksum of the image, or the URL of a file with checksums. Needed unless format is live-iso or the image comes from an OCI
    /// registry (oci://).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// Which checksum it is: md5, sha256, sha512, or auto. Left out, as auto: the length of the checksum tells.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["md5", "sha256", "sha512", "auto"]))]
    pub checksum_type: String,
    /// Format of the image: raw, qcow2, vdi or vmdk, which are written to disk, or live-iso, which is booted from virtual media and
    /// not written anywhere. Left out or empty, the image itself tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["raw", "qcow2", "vdi", "vmdk", "live-iso", ""]))]
    pub format: Option<String>,
    /// Secret in the host's namespace with the credentials of an OCI registry, of the type kubernetes.io/dockerconfigjson or
    /// kubernetes.io/dockercfg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci_auth_secret_name: Option<String>,
}

/// A deployment that a site's own boot agent knows how to do.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["method"]))]
pub struct CustomDeploy {
    /// Name of the agent's deploy step.
    pub method: String,
}
