//! What users may get wrong: each mistake is told on the object, and mended as soon as it is put right.

use k8s_openapi::api::core::v1::Secret;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_bmc_says_what_is_missing_and_recovers_as_soon_as_it_is_there() {
    let scene = site(&["server-0"]).await;
    let spec = json!({"endpointRef": {"name": "device"}, "bmcSecretRef": {"name": "secret"}, "protocol": {"name": "Redfish", "port": 443}});
    scene.make::<Bmc>(json!({"name": "bmc"}), json!({"spec": spec})).await;
    let told = scene.until_ready::<Bmc>("bmc", "AddressInvalid").await;
    assert_eq!(
        told,
        "Endpoint device, named in spec.endpointRef, does not exist. Create it, or write the address into spec.access; it is noticed at once."
    );
    // Not a BMC by its prefix: it is one because somebody says so.
    scene.add_endpoint("device", "99:00:00:00:00:01").await;
    let told = scene.until_ready::<Bmc>("bmc", "SecretNotFound").await;
    assert_eq!(told, "BMCSecret secret, named in spec.bmcSecretRef, does not exist. Create it; it is noticed at once.");
    scene.make::<BmcSecret>(json!({"name": "secret"}), json!({"stringData": {"username": "admin"}})).await;
    let told = scene.until_ready::<Bmc>("bmc", "MissingSecretData").await;
    assert_eq!(told, "Key password of BMCSecret secret is missing or empty. Set it; the change is noticed at once.");
    scene.edit::<BmcSecret>("secret", json!({"stringData": {"password": "password"}})).await;
    let took = scene.until_server("bmc-system-0", "Available").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(scene.object::<Bmc>("bmc")["status"]["ip"], "server-0");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_says_why_it_is_no_bmc() {
    let scene = site(&["server-0"]).await;
    scene.add_endpoint("strange", "99:00:00:00:00:01").await;
    let told = scene.until_ready::<Endpoint>("strange", "PrefixUnknown").await;
    assert_eq!(
        told,
        "No BMC is known by the prefix of 99:00:00:00:00:01. Add it to the file of --mac-prefixes-file and restart the operator, or create a BMC with spec.access."
    );
    scene.add_endpoint("odd", "nonsense").await;
    let told = scene.until_ready::<Endpoint>("odd", "MACAddressInvalid").await;
    assert_eq!(told, "spec.macAddress is \"nonsense\", which is no MAC address. Write it like 00:11:22:33:44:55.");

    scene.add_endpoint("first", "23:11:00:00:00:01").await;
    scene.until_server("first-system-0", "Available").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.add_endpoint("second", "23-11-00-00-00-01").await;
    let told = scene.until_ready::<Endpoint>("second", "MACAddressTaken").await;
    assert_eq!(told, "Endpoint first has the same spec.macAddress and is older. Delete one of them.");
    assert!(scene.object::<Bmc>("second").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_found_says_what_there_is() {
    let scene = site(&["server-0"]).await;
    scene.add_bmc_secret("secret").await;
    let bmc = |protocol: &str| json!({"protocol": {"name": protocol, "port": 443}, "address": "server-0", "bmcSecretRef": {"name": "secret"}});
    let known = scene.servers.hardware("server-0").uuid.to_ascii_lowercase();
    let server = |uuid: &str, bmc: Value| json!({"spec": {"systemUUID": uuid, "bmc": bmc}});
    let unknown = "12345678-1234-1234-1234-123456789012";
    scene.make::<Server>(json!({"name": "unknown"}), server(unknown, bmc("Redfish"))).await;
    let told = scene.until_ready::<Server>("unknown", "SystemNotFound").await;
    assert!(told.contains(&known), "{told}");
    scene.make::<Server>(json!({"name": "ipmi"}), server(unknown, bmc("IPMI"))).await;
    let told = scene.until_ready::<Server>("ipmi", "ProtocolUnsupported").await;
    assert_eq!(
        told,
        "spec.protocol.name is \"IPMI\", which is not supported yet. If the BMC speaks Redfish, too, write Redfish and its port."
    );
    scene.make::<Server>(json!({"name": "lost"}), json!({"spec": {"systemUUID": unknown}})).await;
    let told = scene.until_ready::<Server>("lost", "AddressInvalid").await;
    assert_eq!(told, "Neither spec.bmcRef nor spec.bmc is set. Name the BMC of the server in one of them.");

    // In the other byte order it is found, too; of two objects for one server one acts.
    let groups: Vec<_> = known.split('-').collect();
    let turned = |group: &str| (0..group.len()).step_by(2).rev().map(|at| &group[at..at + 2]).collect::<String>();
    let swapped =
        [turned(groups[0]), turned(groups[1]), turned(groups[2]), groups[3].to_owned(), groups[4].to_owned()].join("-");
    scene.make::<Server>(json!({"name": "swapped"}), server(&swapped, bmc("Redfish"))).await;
    scene.until_server("swapped", "Available").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.make::<Server>(json!({"name": "same"}), server(&known, bmc("Redfish"))).await;
    let told = scene.until_ready::<Server>("same", "DuplicateHost").await;
    assert!(told.contains("swapped"), "{told}");
    assert_eq!(scene.object::<Server>("same")["status"]["state"], "Error");
}

#[tokio::test(start_paused = true)]
async fn claims_that_make_no_sense_say_so() {
    let scene = available(&["server-0"]).await;
    let selector = json!({"serverSelector": {"matchExpressions": [{"key": "zone", "operator": "Near"}]}});
    scene.claim("selector", selector).await;
    let told = scene.until_ready::<ServerClaim>("selector", "ClaimInvalid").await;
    assert!(told.starts_with("spec.serverSelector: operator \"Near\" for \"zone\" makes no sense"), "{told}");
    scene.claim("nobody", json!({"serverRef": {"name": "nobody"}})).await;
    assert_eq!(scene.until_ready::<ServerClaim>("nobody", "NoServer").await, "There is no Server nobody.");
    scene.claim("power", json!({"power": "Maybe"})).await;
    scene.until_bound("power").await;
    let told = scene.until_ready::<ServerClaim>("power", "ClaimInvalid").await;
    assert_eq!(told, "spec.power is \"Maybe\", so the power is left as it is. Write On or Off.");
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_secret_lacks_what_the_boot_needs_is_bound_and_says_so() {
    let scene = available(&["server-0"]).await;
    scene.claim("node", json!({"ignitionSecretRef": {"name": "ignition"}})).await;
    scene.until_bound("node").await;
    let told = scene.until_ready::<ServerClaim>("node", "SecretNotFound").await;
    assert_eq!(
        told,
        "Secret lab/ignition, named in spec.ignitionSecretRef, does not exist. Create it; it is noticed at once."
    );
    scene.make::<Secret>(json!({"name": "ignition"}), json!({"stringData": {"format": "fcos"}})).await;
    let told = scene.until_ready::<ServerClaim>("node", "MissingSecretData").await;
    assert_eq!(told, "Key ignition of Secret lab/ignition is missing or empty. Set it; the change is noticed at once.");
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.edit::<Secret>("ignition", json!({"stringData": {"ignition": "variant: fcos"}})).await;
    scene.until_ready::<ServerClaim>("node", "Booting").await;
    scene.provide("node", "Ready").await;
    scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_nobody_knows_is_taken_off_with_an_event() {
    let scene = available(&["server-0"]).await;
    let annotate = json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": "dance"}}});
    scene.edit::<Server>(&of("server-0"), annotate).await;
    scene
        .until("it is taken off", |scene| {
            scene.object::<Server>(&of("server-0"))["metadata"]["annotations"]["metal.ironcore.dev/operation"].is_null()
        })
        .await;
    assert_eq!(scene.done("server-0"), [""; 0]);
}
