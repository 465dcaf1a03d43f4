//! Credentials of a BMC.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, ClusterResourceScope, TypeMeta};
use kube::{CustomResourceExt, Resource};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{GROUP, VERSION};

const KIND: &str = "BMCSecret";
const PLURAL: &str = "bmcsecrets";
const SHORT_NAMES: &[&str] = &["bmcsec"];
const CRD_NAME: &str = "bmcsecrets.metal.ironcore.dev";

/// User name and password of a BMC, in the shape of a Secret: it has neither a spec nor a status.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BmcSecret {
    /// Version and kind.
    #[serde(flatten)]
    types: TypeMeta,
    /// Metadata of the object.
    pub metadata: ObjectMeta,
    /// Whether nothing can change any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// Values in base64, as they were written: see [`Self::value`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Values as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub string_data: BTreeMap<String, String>,
    /// Type of the Secret that it would be.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
}

impl Default for BmcSecret {
    fn default() -> Self {
        Self {
            types: TypeMeta::resource::<Self>(),
            metadata: ObjectMeta::default(),
            immutable: None,
            data: BTreeMap::new(),
            string_data: BTreeMap::new(),
            type_: String::new(),
        }
    }
}

/// Without the values: logs are read by others than those who may read passwords.
impl fmt::Debug for BmcSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(KIND)
            .field("name", &self.metadata.name)
            .field("immutable", &self.immutable)
            .field("data", &self.data.keys())
            .field("stringData", &self.string_data.keys())
            .finish_non_exhaustive()
    }
}

impl BmcSecret {
    /// An object with these values.
    pub fn new<'a>(name: &str, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let encoded = values.into_iter().map(|(key, value)| (key.to_owned(), encode(value.as_bytes())));
        Self { metadata, data: encoded.collect(), ..Self::default() }
    }

    /// The value of a key: that of `data`, else that of `stringData`, which an API server keeps as it is. `None` if there is none, or
    /// one that is not base64.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        match self.data.get(key) {
            Some(encoded) => decode(encoded),
            None => self.string_data.get(key).map(|text| text.clone().into_bytes()),
        }
    }
}

fn encode(bytes: &[u8]) -> String {
    let encoded = serde_json::to_value(ByteString(bytes.to_vec())).ok();
    encoded.and_then(|encoded| encoded.as_str().map(str::to_owned)).unwrap_or_default()
}

fn decode(encoded: &str) -> Option<Vec<u8>> {
    serde_json::from_value(json!(encoded)).ok().map(|ByteString(bytes)| bytes)
}

impl Resource for BmcSecret {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl CustomResourceExt for BmcSecret {
    #[expect(clippy::expect_used, reason = "plain data that does not depend on input; tests build it")]
    fn crd() -> CustomResourceDefinition {
        let schema = json!({
            "type": "object",
            "description": "User name and password of a BMC.",
            "properties": {
                "immutable": {
                    "type": "boolean",
                    "description": "Whether data and stringData cannot change any more. It cannot be taken back.",
                },
                "data": {
                    "type": "object",
                    "description": "Values in base64; the keys are username and password.",
                    "additionalProperties": { "type": "string", "format": "byte" },
                },
                "stringData": {
                    "type": "object",
                    "description": "Values as text, for keys that are not in data. Unlike a Secret's, they stay readable here.",
                    "additionalProperties": { "type": "string" },
                },
                "type": { "type": "string", "description": "A text that tells programs what is in it." },
            },
        });
        let crd = json!({
            "metadata": { "name": CRD_NAME },
            "spec": {
                "group": GROUP,
                "names": { "kind": KIND, "plural": PLURAL, "singular": "bmcsecret", "shortNames": SHORT_NAMES },
                "scope": "Cluster",
                "versions": [{
                    "name": VERSION,
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                    "subresources": { "status": {} },
                }],
            },
        });
        serde_json::from_value(crd).expect("a CRD")
    }

    fn crd_name() -> &'static str {
        CRD_NAME
    }

    fn api_resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn shortnames() -> &'static [&'static str] {
        SHORT_NAMES
    }
}
