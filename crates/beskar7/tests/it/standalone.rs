//! Alone, without Kubernetes: how it starts, what survives, and what it refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use testkit::wait_for;
use tokio::process::Command;

use crate::program::{Running, beskar7};

const PATIENCE: Duration = Duration::from_mins(1);

const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: kept
stringData:
  answer: forty-two
";

const CLAIM: &str = "\
apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: node-1
spec:
  power: \"On\"
  image: registry.example/os:1
  serverRef:
    name: sim-001-system-1
";

/// One that runs on a folder, on a port of its own.
async fn start(data: &Path, more: &[&str]) -> Running {
    let data = data.to_str().unwrap();
    let mut running = Running::start(&[&["standalone", "--data", data, "--listen", "127.0.0.1:0"], more].concat());
    running.says("Ctrl-C ends it").await;
    running
}

fn kubeconfig(data: &Path) -> String {
    data.join("kubeconfig").to_str().unwrap().to_owned()
}

async fn names(kubeconfig: &str, state: &str) -> String {
    beskar7(&["hosts", "--kubeconfig", kubeconfig, "--state", state, "-o", "name"]).await.ok()
}

async fn wait_for_hosts(kubeconfig: &str, state: &str, wanted: &str) {
    wait_for(&format!("{wanted:?} to be {state}"), PATIENCE, async || {
        (names(kubeconfig, state).await == wanted).then_some(())
    })
    .await;
}

async fn stop(running: Running) {
    running.signal(Signal::TERM);
    let (status, said) = running.ends().await;
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn the_api_alone_changes_nothing_in_the_folder() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let running = start(&data, &["--api-only"]).await;
    assert!(running.said().contains(", without the operator."), "{}", running.said());
    let error = beskar7(&["hosts", "--kubeconfig", &kubeconfig(&data)]).await.error();
    assert!(error.contains("install the CRDs"), "{error}");
    stop(running).await;
}

#[tokio::test]
async fn simulated_servers_register_before_your_eyes() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let running = start(&data, &["--simulate", "3"]).await;
    let config = kubeconfig(&data);
    assert!(running.said().contains(&format!("export KUBECONFIG={config}")), "{}", running.said());
    wait_for_hosts(&config, "Available", "default/sim-000\ndefault/sim-001\ndefault/sim-002\n").await;
    // Events are told beside what they tell of.
    wait_for("the story with its events", PATIENCE, async || {
        let story = beskar7(&["show", "sim-000", "--kubeconfig", &config]).await.ok();
        assert!(story.contains("Available"), "{story}");
        story.contains("Events").then_some(())
    })
    .await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("kubeconfig"))), (0o700, 0o600));
    stop(running).await;
}

/// As a user of metal-operator would do it, with kubectl.
#[tokio::test]
async fn simulated_endpoints_become_servers_that_can_be_claimed_and_given_back() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let running = start(&data, &["--simulate", "2", "--dialect", "ironcore", "--systems", "2"]).await;
    assert!(running.said().contains(", 4 simulated servers."), "{}", running.said());
    assert!(running.said().contains("beskar7 show sim-000-system-0 --dialects ironcore"), "{}", running.said());
    let config = kubeconfig(&data);
    let kubectl = async |arguments: &[&str]| {
        let program = testkit::part("kube").join("bin/kubectl");
        let output = Command::new(program).arg("--kubeconfig").arg(&config).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let until = async |what: &str, arguments: &[&str], wanted: &str| {
        wait_for(what, PATIENCE, async || (kubectl(arguments).await == wanted).then_some(())).await;
    };
    let states = ["get", "servers", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.state} {end}"];
    until(
        "four servers",
        &states,
        "sim-000-system-0 Available sim-000-system-1 Available sim-001-system-0 Available sim-001-system-1 Available ",
    )
    .await;
    let device = kubectl(&["get", "endpoint", "sim-001", "-o", "jsonpath={.spec.ip} {.spec.macAddress}"]).await;
    assert_eq!(device, "198.18.0.2 02:be:07:00:00:01");
    let bmc = kubectl(&["get", "bmc", "sim-001", "-o", "jsonpath={.spec.endpointRef.name} {.status.ip}"]).await;
    assert_eq!(bmc, "sim-001 198.18.0.2");

    let claim = folder.path().join("claim.yaml");
    fs::write(&claim, CLAIM).unwrap();
    kubectl(&["apply", "-f", claim.to_str().unwrap()]).await;
    let of_claim = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Ready\")].reason}";
    until("the claim's server to run", &["get", "serverclaim", "node-1", "-o", of_claim], "Bound ServerRuns").await;
    let of_server = "jsonpath={.status.state} {.status.powerState} {.spec.serverClaimRef.name}";
    let server = ["get", "server", "sim-001-system-1", "-o", of_server];
    until("the server to be on", &server, "Reserved On node-1").await;
    let listed = beskar7(&["hosts", "--dialect", "ironcore", "--kubeconfig", &config]).await.ok();
    assert!(listed.contains("default/node-1"), "{listed}");
    let refused =
        beskar7(&["power", "off", "sim-001-system-1", "--dialect", "ironcore", "--kubeconfig", &config]).await.error();
    assert!(refused.contains("set spec.power of default/node-1 to On or Off"), "{refused}");

    kubectl(&["delete", "serverclaim", "node-1", "--wait"]).await;
    until("the server to be free", &server, "Available Off ").await;
    stop(running).await;
}

#[tokio::test]
async fn several_systems_behind_a_bmc_are_refused_where_a_host_stands_for_its_bmc() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    for dialects in ["beskar7", "metal3", "beskar7,ironcore"] {
        let arguments = ["standalone", "--data", data, "--listen", "127.0.0.1:0", "--simulate", "2", "--systems", "4"];
        let refused = beskar7(&[&arguments[..], &["--dialects", dialects]].concat()).await.error();
        assert!(refused.contains("Leave --systems out, or start with --dialects ironcore alone."), "{refused}");
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left behind");
}

#[tokio::test]
async fn flags_for_metal_operators_kinds_that_make_no_sense_are_refused() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let given = async |flags: &[&str]| {
        let arguments = ["standalone", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        beskar7(&[&arguments[..], flags].concat()).await.error()
    };
    let file = folder.path().join("prefixes.yaml");
    let path = file.to_str().unwrap();
    let said = given(&["--mac-prefixes-file", path]).await;
    assert!(said.contains(&format!("--mac-prefixes-file {path}")) && said.contains("No such file"), "{said}");
    fs::write(&file, "macPrefixes:\n- macPrefix: zz\n  protocol: Redfish\n  port: 443\n  type: bmc\n").unwrap();
    let said = given(&["--mac-prefixes-file", path]).await;
    assert!(said.contains("line 2: macPrefix \"zz\" is not the beginning of a MAC address."), "{said}");
    fs::write(&file, "macPrefixes:\n- macPrefix: 00\n  port: https\n").unwrap();
    let said = given(&["--mac-prefixes-file", path]).await;
    assert!(said.contains("Expected is a list macPrefixes of entries"), "{said}");
    let said = given(&["--protocol", "telnet"]).await;
    assert!(said.contains("invalid value 'telnet' for '--protocol <SCHEME>'"), "{said}");
    let said = given(&["--enforce-first-boot=perhaps"]).await;
    assert!(said.contains("invalid value 'perhaps' for '--enforce-first-boot"), "{said}");
}

#[tokio::test]
async fn a_discovery_by_probe_that_cannot_work_is_refused() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let given = async |flags: &[&str]| {
        let arguments =
            ["standalone", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--boot-bind-address"];
        beskar7(&[&arguments[..], &["127.0.0.1:0"], flags].concat()).await.error()
    };
    let said = given(&["--discovery", "guess"]).await;
    assert!(said.contains("invalid value 'guess' for '--discovery <HOW>'"), "{said}");
    let probe =
        &["--discovery=probe", "--boot-url=http://192.0.2.5:8082", "--probe-image=probe", "--probe-os-image=os"];
    for (flag, without) in [
        ("--boot-url", "--discovery probe needs --boot-url, the address under which probes reach the boot service"),
        ("--probe-image", "--discovery probe needs --probe-image, the container image of the probe"),
        ("--probe-os-image", "--discovery probe needs --probe-os-image, the image that the servers boot for it"),
    ] {
        let others: Vec<_> = probe.iter().copied().filter(|one| !one.starts_with(&format!("{flag}="))).collect();
        let said = given(&others).await;
        assert!(said.contains(without), "{said}");
    }
    let said = given(&[&probe[..], &["--simulate=1"]].concat()).await;
    assert!(said.contains("simulated servers run no probe: leave --discovery probe out"), "{said}");
    let file = folder.path().join("ignition.yaml");
    let path = file.to_str().unwrap();
    let with_template = [&probe[..], &["--discovery-ignition-path", path]].concat();
    let said = given(&with_template).await;
    assert!(said.contains(&format!("--discovery-ignition-path {path}")) && said.contains("No such file"), "{said}");
    fs::write(&file, "variant: fcos\nrun: {{.Image}} {{.Flag}}\n").unwrap();
    let said = given(&with_template).await;
    assert!(said.contains("line 2: {{.Flag}} is unknown; use {{.Image}}, {{.Flags}}"), "{said}");
}

#[tokio::test]
async fn without_a_folder_a_simulation_leaves_nothing() {
    let mut running = Running::start(&["standalone", "--simulate", "1", "--listen", "localhost:0"]);
    let line = running.says("export KUBECONFIG=").await;
    let config = line.split_once('=').unwrap().1.to_owned();
    assert!(Path::new(&config).exists());
    running.says("nothing is left").await;
    stop(running).await;
    assert!(!Path::new(&config).parent().unwrap().exists());
}

#[tokio::test]
async fn a_kill_loses_nothing_and_it_goes_on_where_it_was() {
    let folder = TempDir::new().unwrap();
    let (data, manifest) = (folder.path().join("data"), folder.path().join("secret.yaml"));
    fs::write(&manifest, SECRET).unwrap();
    let config = kubeconfig(&data);
    let running = start(&data, &["--simulate", "2"]).await;
    let apply = async || beskar7(&["apply", "-f", manifest.to_str().unwrap(), "--kubeconfig", &config]).await.ok();
    assert_eq!(apply().await, "secret/kept created\n");
    wait_for_hosts(&config, "Available", "default/sim-000\ndefault/sim-001\n").await;
    running.signal(Signal::KILL);
    running.ends().await;

    let running = start(&data, &["--simulate", "2"]).await;
    assert_eq!(apply().await, "secret/kept unchanged\n");
    wait_for_hosts(&config, "Available", "default/sim-000\ndefault/sim-001\n").await;
    stop(running).await;
}

#[tokio::test]
async fn one_folder_has_one_process() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    let running = start(folder.path(), &[]).await;
    let second = beskar7(&["standalone", "--data", data, "--listen", "127.0.0.1:0"]).await.error();
    assert!(second.contains(data) && second.contains("in use"), "{second}");
    stop(running).await;
    stop(start(folder.path(), &[]).await).await;
}

#[tokio::test]
async fn a_copy_of_the_folder_is_a_backup() {
    let folder = TempDir::new().unwrap();
    let (data, copy, manifest) = (folder.path().join("data"), folder.path().join("copy"), folder.path().join("s.yaml"));
    fs::write(&manifest, SECRET).unwrap();
    let file = manifest.to_str().unwrap();
    let running = start(&data, &[]).await;
    beskar7(&["apply", "-f", file, "--kubeconfig", &kubeconfig(&data)]).await.ok();
    stop(running).await;
    copy_folder(&data, &copy);

    // What comes after the backup is not in it.
    let running = start(&data, &[]).await;
    let later = SECRET.replace("kept", "later");
    fs::write(&manifest, later).unwrap();
    beskar7(&["apply", "-f", file, "--kubeconfig", &kubeconfig(&data)]).await.ok();
    stop(running).await;

    let restored = start(&copy, &[]).await;
    let apply = async || beskar7(&["apply", "-f", file, "--kubeconfig", &kubeconfig(&copy)]).await.ok();
    assert_eq!(apply().await, "secret/later created\n");
    fs::write(&manifest, SECRET).unwrap();
    assert_eq!(apply().await, "secret/kept unchanged\n");
    stop(restored).await;
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_a_repair_keeps_what_can_be_read() {
    let folder = TempDir::new().unwrap();
    let (data, manifest) = (folder.path().join("data"), folder.path().join("s.yaml"));
    let (config, file) = (kubeconfig(&data), manifest.to_str().unwrap());
    let apply = async |name: &str| {
        fs::write(&manifest, SECRET.replace("kept", name)).unwrap();
        beskar7(&["apply", "-f", file, "--kubeconfig", &config]).await.ok()
    };
    let running = start(&data, &["--api-only"]).await;
    apply("broken").await;
    apply("kept").await;
    running.signal(Signal::KILL);
    running.ends().await;

    let log = data.join("store/log-0000000001");
    let mut bytes = fs::read(&log).unwrap();
    let name = b"\"name\":\"broken\"";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + 10] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let on = data.to_str().unwrap();
    let refused = beskar7(&["standalone", "--data", on, "--listen", "127.0.0.1:0"]).await.error();
    assert!(refused.contains("log-0000000001 at byte ") && refused.contains("intact record"), "{refused}");
    assert!(refused.contains(&format!("beskar7 standalone --data {on} --repair-store")), "{refused}");

    let report = beskar7(&["standalone", "--data", on, "--repair-store"]).await.ok();
    assert!(report.contains("probably ") && report.contains("secrets/default/broken"), "{report}");
    assert!(report.contains("--freeze"), "{report}");
    assert_eq!(fs::read(data.join("store-damaged-1/log-0000000001")).unwrap(), bytes);
    let running = start(&data, &["--api-only"]).await;
    assert_eq!(apply("kept").await, "secret/kept unchanged\n");
    assert_eq!(apply("broken").await, "secret/broken created\n");
    stop(running).await;
    let whole = beskar7(&["standalone", "--data", on, "--repair-store"]).await.ok();
    assert_eq!(whole, format!("The store in {on} is not damaged. Nothing was changed.\n"));
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_a_sentence() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    stop(start(folder.path(), &[]).await).await;

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = beskar7(&["standalone", "--data", data, "--listen", &address]).await.error();
    assert!(port.contains(&format!("cannot listen on {address}: choose another address with --listen")), "{port}");

    let faults = |given: &'static str| beskar7_simulating(data, given);
    assert!(faults("{\"effect\":\"Nonsense\"}").await.contains("--faults: unknown variant `Nonsense`"));
    assert!(faults("nofile.json").await.contains("--faults is neither JSON nor a file that can be read: nofile.json"));

    let format = folder.path().join("store/format");
    let written = fs::read_to_string(&format).unwrap();
    fs::write(&format, written.replace('2', "9")).unwrap();
    let newer = beskar7(&["standalone", "--data", data, "--listen", "127.0.0.1:0"]).await.error();
    assert!(newer.contains("was written by a newer version"), "{newer}");
    fs::write(&format, written).unwrap();
    stop(start(folder.path(), &[]).await).await;
}

async fn beskar7_simulating(data: &str, faults: &str) -> String {
    let arguments = ["standalone", "--data", data, "--listen", "127.0.0.1:0", "--simulate", "1", "--faults", faults];
    beskar7(&arguments).await.error()
}

#[tokio::test]
async fn the_demo_walks_through_a_life_and_ends_by_itself() {
    let said = beskar7(&["demo", "--count", "2"]).await.ok();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text:?} is missing in\n{said}"));
    let parts = [
        "Register",
        "server-000  Available",
        "Claim and boot",
        "server-000  Provisioned",
        "Release",
        "That was the life",
    ];
    assert!(parts.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{said}");
    assert!(!said.contains('\x1b'), "colours are for terminals only\n{said}");
}

#[tokio::test]
async fn the_demo_shows_the_life_of_servers_too() {
    let said = beskar7(&["demo", "--count", "2", "--dialect", "ironcore"]).await.ok();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text:?} is missing in\n{said}"));
    let parts = [
        "Endpoints were applied for 2 servers",
        "-system-0  Available",
        "ServerClaims were applied for 1 machine: each claims a server and boots registry.example/os:1 from the network",
        "-system-0  Reserved",
        "The ServerClaims were deleted",
        "-system-0  Cleanup",
        "That was the life",
    ];
    assert!(parts.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{said}");
}

#[tokio::test]
async fn addresses_for_servers_that_cannot_be_given_are_refused() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let boot = ["--boot-url", "http://192.0.2.5:8082", "--boot-bind-address", "127.0.0.1:0"];
    let given = async |flags: &[&str]| {
        let arguments = ["standalone", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        beskar7(&[&arguments[..], &boot, flags].concat()).await.error()
    };
    let range = "--dhcp-range=10.0.0.100-10.0.0.199";
    for (flags, sentence) in [
        (
            &["--dhcp=reservation", "--boot-interfaces=eth1"][..],
            "--dhcp reservation needs the addresses for known hosts",
        ),
        (&["--dhcp=reservation", range], "--dhcp reservation needs the network interfaces on which servers boot"),
        (
            &["--dhcp=reservation", range, "--boot-interfaces=eth1,eth2"],
            "name one interface with --boot-interfaces, not 2",
        ),
        (&["--dhcp=proxy", range, "--boot-interfaces=eth1"], "are for --dhcp reservation, which gives addresses"),
        (&[range], "are for --dhcp reservation, which gives addresses"),
    ] {
        let said = given(flags).await;
        assert!(said.contains(sentence), "{flags:?} is not told {sentence:?}, but:\n{said}");
    }
}
