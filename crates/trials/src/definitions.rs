//! Definitions of other versions.

use api::beskar7::PhysicalHost;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, CustomResourceExt as _, ResourceExt as _};
use serde_json::Value;
use testkit::wait_ok;

use crate::world::World;

impl World {
    /// Installs a definition of PhysicalHosts that does not know the record, as one of before there was a record.
    pub async fn install_definition_without_record(&self) {
        self.change_definition(|version| {
            let status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"].as_object_mut();
            assert!(status.unwrap().remove("record").is_some());
        })
        .await;
    }

    /// Installs the definition of this version.
    pub async fn install_own_definition(&self) {
        self.change_definition(|_| {}).await;
    }

    async fn change_definition(&self, change: impl Fn(&mut Value)) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.admin());
        let ours =
            api::crds().into_iter().find(|definition| definition.name_any() == PhysicalHost::crd_name()).unwrap();
        let mut wanted = serde_json::to_value(ours).unwrap();
        wanted["spec"]["versions"].as_array_mut().unwrap().iter_mut().for_each(change);
        wait_ok("the definition", self.patience(), async || {
            let mut wanted = wanted.clone();
            let installed = definitions.get(PhysicalHost::crd_name()).await?;
            wanted["metadata"]["resourceVersion"] = installed.resource_version().into();
            let wanted: CustomResourceDefinition = serde_json::from_value(wanted).unwrap();
            definitions.replace(PhysicalHost::crd_name(), &PostParams::default(), &wanted).await
        })
        .await;
    }
}
