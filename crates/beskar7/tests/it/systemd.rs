//! The systemd unit for standalone.

use std::fs;

use tokio::process::Command;

use crate::program::Running;
use crate::workspace;

fn unit() -> String {
    fs::read_to_string(workspace().join("config/systemd/beskar7.service")).unwrap()
}

fn start_line(unit: &str) -> &str {
    unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap()
}

#[tokio::test]
async fn what_the_unit_starts_comes_up() {
    let unit = unit();
    let line = start_line(&unit);
    let arguments = line.strip_prefix("/usr/local/bin/beskar7 ").unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let (data, cache) = (scratch.path().join("data"), scratch.path().join("cache"));
    let arguments = arguments.replace("/var/lib/beskar7", data.to_str().unwrap());
    let arguments = arguments.replace("/var/cache/beskar7", cache.to_str().unwrap());
    // Names of settings that the unit's comments mention, as variables.
    for variable in ["BESKAR7_LISTEN=192.0.2.5:6443", "BESKAR7_BOOT_URL=http://192.0.2.5:8082"] {
        assert!(unit.contains(variable), "{variable}");
    }
    let settings = [
        ("BESKAR7_LISTEN", "127.0.0.1:0"),
        ("BESKAR7_BOOT_URL", "http://192.0.2.5:8082"),
        ("BESKAR7_BOOT_BIND_ADDRESS", "127.0.0.1:0"),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_beskar7"));
    command.args(arguments.split(' ')).env_clear().envs(settings);
    let mut running = Running::spawn(command);
    running.says("Ctrl-C ends it").await;
    assert!(!running.said().contains("127.0.0.1:6443"), "BESKAR7_LISTEN is ignored:\n{}", running.said());
    // The folders are the ones that systemd makes for it.
    for (folder, setting) in [(data, "StateDirectory=beskar7"), (cache, "CacheDirectory=beskar7")] {
        assert!(folder.is_dir() && unit.lines().any(|line| line == setting), "{setting}");
    }
}

#[tokio::test]
async fn systemd_understands_the_unit() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("beskar7.service");
    // It looks whether the program is there.
    fs::write(&file, unit().replace("/usr/local/bin/beskar7", env!("CARGO_BIN_EXE_beskar7"))).unwrap();
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().await;
    let output = match verify {
        Ok(output) => output,
        // The test above has shown that its command works.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    // It also complains about units of this machine.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("beskar7.service")).collect();
    assert!(ours.is_empty(), "{said}");
}
