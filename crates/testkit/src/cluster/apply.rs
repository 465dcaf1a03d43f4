//! Putting manifests into the cluster.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams, TypeMeta};
use kube::core::discovery::Scope;
use kube::runtime::conditions::Condition;
use kube::runtime::wait::conditions;
use kube::{Api, Client, ResourceExt, discovery};

use super::Cluster;
use crate::wait::{wait_for, wait_ok};

const CRD_TIMEOUT: Duration = Duration::from_secs(30);

impl Cluster {
    /// Applies every document of `yaml`, of any kind, in order; namespaced ones without a namespace go to `default`.
    ///
    /// A custom resource definition is established when this returns, and later documents may already use it.
    pub async fn apply_yaml(&self, yaml: &str) -> Vec<DynamicObject> {
        self.apply_yaml_in("default", yaml).await
    }

    /// [`Cluster::apply_yaml`] with another namespace for documents that name none.
    ///
    /// The embedded API server has no roles: every account may do everything, and documents that grant something are
    /// left out.
    pub async fn apply_yaml_in(&self, namespace: &str, yaml: &str) -> Vec<DynamicObject> {
        let documents: Vec<Option<DynamicObject>> =
            serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("not a manifest: {error}\n{yaml}"));
        let client = self.admin();
        let mut applied = Vec::new();
        for document in documents.into_iter().flatten() {
            if self.embedded && grants(&document) {
                continue;
            }
            applied.push(apply(&client, namespace, &document).await);
        }
        applied
    }

    /// Waits until objects of a definition can be made.
    pub(crate) async fn wait_until_established(&self, definition: &str) {
        wait_until_established(&self.admin(), definition).await;
    }

    /// Applies what `kubectl kustomize` makes of a directory.
    pub async fn apply_kustomization(&self, dir: impl AsRef<Path>) -> Vec<DynamicObject> {
        let dir = dir.as_ref().display().to_string();
        let yaml = self.kubectl(&["kustomize", &dir]).await.ok();
        self.apply_yaml(&yaml).await
    }

    /// Applies all manifests (`*.yaml`, but no `kustomization.yaml`) of a directory in the order of their names.
    pub async fn apply_dir(&self, dir: impl AsRef<Path>) -> Vec<DynamicObject> {
        let dir = dir.as_ref();
        let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display()));
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("a directory entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .filter(|path| path.file_name().is_none_or(|name| name != "kustomization.yaml"))
            .collect();
        files.sort();
        let mut applied = Vec::new();
        for file in files {
            let yaml = std::fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
            applied.extend(self.apply_yaml(&yaml).await);
        }
        applied
    }
}

async fn apply(client: &Client, namespace: &str, document: &DynamicObject) -> DynamicObject {
    let name = document.name_any();
    let types = document.types.as_ref().unwrap_or_else(|| panic!("{name:?} has no apiVersion and kind"));
    let kind = gvk(types);
    // A definition that was just established may take a moment to show up in discovery.
    let (resource, capabilities) =
        wait_ok(&format!("the API server to know {kind:?}"), CRD_TIMEOUT, || discovery::pinned_kind(client, &kind))
            .await;
    let objects: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = document.namespace().unwrap_or_else(|| namespace.to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let applied = objects
        .patch(&name, &PatchParams::apply("testkit").force(), &Patch::Apply(document))
        .await
        .unwrap_or_else(|error| panic!("cannot apply {} {name}: {error}", types.kind));
    if types.kind == "CustomResourceDefinition" {
        wait_until_established(client, &name).await;
    }
    applied
}

fn grants(document: &DynamicObject) -> bool {
    document.types.as_ref().is_some_and(|types| types.api_version.starts_with("rbac.authorization.k8s.io/"))
}

fn gvk(types: &TypeMeta) -> GroupVersionKind {
    GroupVersionKind::try_from(types).unwrap_or_else(|error| panic!("{types:?} is no kind: {error}"))
}

async fn wait_until_established(client: &Client, name: &str) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    wait_for(&format!("{name} to be established"), CRD_TIMEOUT, || async {
        let definition = definitions.get_opt(name).await.ok().flatten();
        conditions::is_crd_established().matches_object(definition.as_ref()).then_some(())
    })
    .await;
}
