//! What users of BareMetalHosts get wrong, and what they are told.

use k8s_openapi::api::core::v1::Secret;

use super::*;

impl Scene {
    async fn overwrite_secret(&self, name: &str, data: Value) {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let patch = Patch::Merge(json!({"data": null, "stringData": data}));
        secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_bmc_is_a_registration_error_that_says_what_to_do() {
    let address = |address: &str| json!({"bmc": {"address": address}});
    let mut libvirt = address("libvirt://192.0.2.9:16509/");
    libvirt["bootMACAddress"] = "00:53:00:00:00:01".into();
    let good = json!({"username": "admin", "password": "password"});
    let table = [
        (address("ipmi://192.0.2.9"), good.clone(), &["spec.bmc.address", "ipmi", "redfish"][..]),
        (libvirt, good.clone(), &["spec.bmc.address", "libvirt", "redfish"]),
        (address("nonsense://192.0.2.9"), good.clone(), &["spec.bmc.address", "nonsense"]),
        (address("bmc.example:8000"), good.clone(), &["spec.bmc.address", "bmc.example:8000", "redfish"]),
        (
            address("redfish-virtualmedia://server-0/redfish/v1/Systems/missing"),
            good.clone(),
            &["spec.bmc.address", "missing"],
        ),
        (json!({"bmc": {"credentialsName": "nobody"}}), good, &["spec.bmc.credentialsName", "nobody"]),
        (json!({}), json!({}), &["Key username of Secret lab/server-0"]),
        (json!({}), json!({"username": "admin", "password": ""}), &["Key password of Secret lab/server-0"]),
        (json!({}), json!({"username": "admin", "password": "wrong"}), &["user name", "Secret"]),
    ];
    for (change, login, words) in table {
        let scene = site(&["server-0"]).await;
        scene.overwrite_secret("server-0", login).await;
        scene.add_bare_metal_host("server-0", json!({}), &change).await;
        scene.until_shown("server-0", "/status/errorType", "registration error").await;
        let host = scene.bare_metal_host("server-0");
        assert_eq!(
            (&host["status"]["provisioning"]["state"], &host["status"]["operationalStatus"]),
            (&json!("registering"), &json!("error"))
        );
        let message = host["status"]["errorMessage"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
        assert!(host["status"]["errorCount"].as_i64() > Some(0), "{host:#}");
        assert_eq!(scene.events_of("RegistrationError").await, [message], "and an event says the same");
    }
}

#[tokio::test(start_paused = true)]
async fn data_from_another_namespace_is_refused() {
    let scene = site(&["server-0"]).await;
    let mut order = live(ISO);
    order["userData"] = json!({"name": "secrets-of-others", "namespace": "kube-system"});
    scene.add_bare_metal_host("server-0", json!({}), &order).await;
    scene.until_shown("server-0", "/status/errorType", "provisioning error").await;
    let host = scene.bare_metal_host("server-0");
    let message = host["status"]["errorMessage"].as_str().unwrap();
    assert!(message.starts_with("spec.userData.namespace is \"kube-system\""), "{message}");
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_annotation_that_is_no_json_reboots_softly_and_says_so() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &live(ISO)).await;
    scene.until_provisioning("server-0", "provisioned").await;
    let first = scene.last_boot("server-0");
    scene.edit_bare_metal_host("server-0", json!({"metadata": {"annotations": {"reboot.metal3.io": "now!"}}})).await;
    scene.until("it was rebooted", |scene| scene.last_boot("server-0") != first).await;
    let told = scene.events_of("InvalidAnnotationValue").await;
    assert!(told.len() == 1 && told[0].contains("reboot.metal3.io is not JSON"), "{told:?}");
    let journal = scene.servers.bmc("server-0").journal();
    let asked = |reset: &str| journal.iter().any(|request| request.body.contains(reset));
    assert!(asked("GracefulShutdown") && !asked("ForceOff"), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn a_status_annotation_with_unknown_fields_is_not_restored_and_the_server_is_left_alone() {
    let mut scene = site(&["server-0"]).await;
    scene.stop().await;
    scene.servers.press("server-0", ResetType::On);
    scene.until("it runs", |scene| scene.last_boot("server-0").is_some()).await;
    let boot = scene.last_boot("server-0");
    let odd = r#"{"provisioning":{"state":"available","ID":"1","image":{"url":""}},"surprise":"!"}"#;
    let metadata = json!({"annotations": {"baremetalhost.metal3.io/status": odd}});
    scene.add_bare_metal_host("server-0", metadata, &live(ISO)).await;
    scene.start(|config| config.dialects = vec![Dialect::Metal3]);
    scene.until_provisioning("server-0", "provisioned").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((scene.power("server-0"), scene.last_boot("server-0")), (PowerState::On, boot));
    let told = scene.events_of("InvalidAnnotationValue").await;
    assert!(told.len() == 1 && told[0].contains("nothing was restored"), "{told:?}");
}
