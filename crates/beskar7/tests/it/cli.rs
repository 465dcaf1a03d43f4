//! What needs no cluster.

use std::process::Stdio;

use testkit::free_port;

use crate::program::{beskar7, beskar7_in};
use crate::workspace;

#[tokio::test]
async fn help_teaches() {
    let help = beskar7(&["--help"]).await.ok();
    for line in [
        "Turns racks of servers into Kubernetes nodes.",
        "Usage: beskar7 <COMMAND>",
        "  run         Run the operator",
        "  hosts       Show the fleet, trouble first",
        "  power       Power servers on or off, or restart them",
        "  sim         Pretend to be BMCs and servers",
        "  crds        Print the custom resource definitions",
        "  completion  Print a script that completes commands in your shell",
        "  version     Print version, commit and target of this binary",
        "  beskar7 crds | kubectl apply --server-side -f -",
    ] {
        assert!(help.lines().any(|said| said == line), "{line:?} is not in\n{help}");
    }
    let (_, steps) = help.split_once("First steps:\n").unwrap();
    let commands: Vec<_> = steps.lines().filter(|line| line.starts_with("  beskar7")).collect();
    assert_eq!(commands[..2], ["  beskar7 standalone --simulate 20", "  beskar7 demo"], "\n{help}");
    for command in ["run", "hosts", "power", "sim", "crds", "completion", "version"] {
        let help = beskar7(&[command, "--help"]).await.ok();
        assert!(help.contains("\nExamples:\n"), "{command} has no examples:\n{help}");
        // The width without a terminal; an example that is wrapped cannot be copied.
        let (_, examples) = help.split_once("\nExamples:\n").unwrap();
        assert!(examples.lines().all(|line| line.chars().count() <= 80), "{command}:\n{examples}");
    }
}

#[tokio::test]
async fn flags_of_upstream_are_known() {
    let help = beskar7(&["run", "--help"]).await.ok();
    for flag in [
        "--metrics-bind-address",
        "--health-probe-bind-address",
        "--leader-elect[",
        "--leader-elect-lease-duration",
        "--leader-elect-renew-deadline",
        "--leader-elect-retry-period",
        "--namespace",
        "--watch-filter",
    ] {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}

#[tokio::test]
async fn the_version_is_told() {
    let version = concat!("beskar7 ", env!("CARGO_PKG_VERSION"));
    assert_eq!(beskar7(&["--version"]).await.ok(), format!("{version}\n"));
    let told = beskar7(&["version"]).await.ok();
    let target = format!("target: {}-linux-", std::env::consts::ARCH);
    assert!(told.starts_with(&format!("{version}\ncommit: ")) && told.contains(&target), "{told}");
}

#[tokio::test]
async fn crds_are_the_committed_ones() {
    let printed = beskar7(&["crds"]).await.ok();
    for (name, _) in api::crd::files(&api::crds()) {
        let file = std::fs::read_to_string(workspace().join("config/crd").join(&name)).unwrap();
        let (_, committed) = file.split_once("---\n").unwrap();
        assert!(printed.contains(committed), "{name}: run `make manifests` and commit what it changed");
    }
}

#[tokio::test]
async fn completions_know_all_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = beskar7(&["completion", shell]).await.ok();
        for command in ["run", "hosts", "power", "sim", "crds"] {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    // A pipe whose reading end is closed before anything is written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let run = tokio::process::Command::new(env!("CARGO_BIN_EXE_beskar7"))
        .arg("crds")
        .stdout(writer)
        .stderr(Stdio::piped())
        .output();
    let output = run.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[tokio::test]
async fn without_a_kubeconfig_it_says_how_to_give_one() {
    for command in [&["run"][..], &["hosts"], &["power", "on", "a"]] {
        let error = beskar7(command).await.error();
        assert!(error.contains("there is no kubeconfig: give one with --kubeconfig FILE"), "{command:?}: {error}");
    }
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    let path = file.to_str().unwrap();

    let error = beskar7(&["hosts", "--kubeconfig", path]).await.error();
    assert!(error.contains(&format!("cannot read the kubeconfig {path}")), "{error}");

    // By the environment too: a broken file must not be passed over.
    std::fs::write(&file, "clusters: 7").unwrap();
    let error = beskar7_in(&[("KUBECONFIG", path)], &["hosts"]).await.error();
    assert!(error.contains("the kubeconfig is not what it should be"), "{error}");

    std::fs::write(&file, "apiVersion: v1\nkind: Config\n").unwrap();
    let error = beskar7(&["hosts", "--kubeconfig", path]).await.error();
    assert!(error.contains("no current context: choose one with --context"), "{error}");
    let error = beskar7(&["hosts", "--kubeconfig", path, "--context", "lab"]).await.error();
    assert!(error.contains("no context \"lab\": `kubectl config get-contexts`"), "{error}");
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    let url = format!("https://127.0.0.1:{}", free_port());
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: '{url}'}}}}]\n\
         users: [{{name: a, user: {{token: x}}}}]\n"
    );
    std::fs::write(&file, config).unwrap();
    for command in ["hosts", "run"] {
        let error = beskar7(&[command, "--kubeconfig", file.to_str().unwrap()]).await.error();
        assert!(error.contains(&format!("the API server at {url}/ cannot be reached: ")), "{error}");
        assert!(error.contains("Is the cluster up"), "{error}");
    }
}

#[tokio::test]
async fn values_that_make_no_sense_are_explained() {
    for (arguments, sentence) in [
        (&["run", "--metrics-bind-address", "8080"][..], "write :8080 for all addresses, 127.0.0.1:8080 for one"),
        (&["run", "--health-probe-bind-address", ":port"], "\"port\" is no port"),
        (&["run", "--leader-elect-lease-duration", "15"], "such as 15s"),
        (&["run", "--bmc-concurrency", "0"], "--bmc-concurrency"),
        (&["run", "--dialects", "beskar7,openstack"], "there is no dialect \"openstack\"; this version knows: beskar7"),
        (
            &["run", "--namespace", "lab", "--dialects", "beskar7,ironcore"],
            "Servers have no namespace: leave --namespace out",
        ),
        (&["standalone", "--dialects", "all"], "there is no dialect \"all\"; this version knows: beskar7"),
        (&["hosts", "--dialects", "openstack"], "there is no dialect \"openstack\"; this version knows: beskar7"),
        (&["power", "off", "a", "--dialects", "beskar7,openstack"], "there is no dialect \"openstack\""),
        (&["run", "--log-level", "loud=very"], "write a level such as debug"),
        (&["power", "explode", "a"], "[possible values: on, off, auto, cycle]"),
        (&["power", "on"], "<HOST>..."),
        (&["sim", "--personality", "abacus"], "generic, dell-idrac9, hpe-ilo5"),
        (&["sim", "--post-delay", "long"], "write a number with its unit"),
        (&["sim", "--replay", "/nonexistent.tar.gz"], "/nonexistent.tar.gz"),
        (&["hosts", "--state", "Foo"], "hosts are never \"Foo\"; the states are Enrolling, Inspecting, Available"),
        (&["standalone", "--listen", "0"], "127.0.0.1:6443 or localhost:6443"),
        (&["run", "--dhcp-range", "10.0.0.100"], "such as 10.0.0.100-10.0.0.199"),
        (&["run", "--dhcp-range", "10.0.0.200-10.0.0.100"], "the first address is greater than the last one"),
        (&["hosts", "-o", "picture"], "[possible values: table, wide, name, json, yaml]"),
    ] {
        let error = beskar7(arguments).await.error();
        assert!(error.contains(sentence), "{arguments:?} is not told {sentence:?}, but:\n{error}");
    }
}
