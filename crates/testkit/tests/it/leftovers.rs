use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use http::Method;
use serde_json::json;
use testkit::{CapiRelease, Cluster, ClusterApi, Sushy, VmLab, wait_for};

use crate::redfish::call;

const DOOMED: &str = "BESKAR7_TEST_DOOMED";

/// The process that is killed is this test again, told by its environment.
#[tokio::test]
async fn nothing_outlives_a_killed_test_process() {
    if std::env::var_os(DOOMED).is_some() {
        return start_everything_and_wait_for_the_end().await;
    }
    let home = tempfile::tempdir().expect("a directory");
    let mut doomed = Command::new(std::env::current_exe().expect("this test binary"))
        .args(["--exact", "leftovers::nothing_outlives_a_killed_test_process"])
        .env(DOOMED, "1")
        .env("TMPDIR", home.path())
        .env_remove("BESKAR7_KEEP")
        .stdout(File::create(home.path().join("output")).expect("a file"))
        .stderr(Stdio::null())
        .spawn()
        .expect("a second test process");
    wait_for("the other process to start everything", Duration::from_mins(6), async || {
        let ended = doomed.try_wait().expect("a child to ask for");
        let output = std::fs::read_to_string(home.path().join("output")).unwrap_or_default();
        assert!(ended.is_none(), "it ended by itself: {output}");
        home.path().join("ready").exists().then_some(())
    })
    .await;
    let running = programs_of(home.path()).join("\n");
    let cluster_api = ["capi-core.kubeconfig", "capi-bootstrap.kubeconfig", "capi-control-plane.kubeconfig"];
    let others = ["etcd", "kube-apiserver", "kube-controller-manager", "libvirtd", "sushy_tools", "qemu-system"];
    for program in cluster_api.iter().chain(&others) {
        assert!(running.contains(program), "{program} is not among\n{running}");
    }

    doomed.kill().expect("SIGKILL");
    doomed.wait().expect("it ended");
    wait_for("its children to end and its files to go", Duration::from_mins(1), || async {
        let files = std::fs::read_dir(home.path()).expect("the directory").count();
        (programs_of(home.path()).is_empty() && files == 2).then_some(())
    })
    .await;
}

async fn start_everything_and_wait_for_the_end() {
    let cluster = Cluster::start().await;
    let _api = ClusterApi::start(&cluster, CapiRelease::V1_13).await;
    let lab = VmLab::start().await;
    let reset = format!("{}/Actions/ComputerSystem.Reset", lab.system_path());
    call(lab.bmc(), Sushy::PASSWORD, Method::POST, &reset, Some(json!({"ResetType": "On"}))).await;
    std::fs::write(std::env::temp_dir().join("ready"), "").expect("a sign that all runs");
    std::future::pending::<()>().await;
}

/// The command lines that name a file in `dir`, which those of all parts do.
fn programs_of(dir: &Path) -> Vec<String> {
    let dir = dir.display().to_string();
    std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .filter(|command| command.contains(&dir))
        .collect()
}
