//! The probe that metal-operator's users boot their servers with.

use crate::parts;
use crate::process::Process;
use crate::scratch::Scratch;

/// metal-operator's probe, as it runs on a server that was booted for it. It looks at the machine that the tests run on.
pub struct Metalprobe {
    process: Process,
    _dir: Scratch,
}

impl Metalprobe {
    /// Starts it with the flags that its server was given. It waits this long for LLDP, which nobody here speaks.
    pub fn start(flags: &[&str]) -> Self {
        let program = parts::home("metal-operator").join("bin/metalprobe");
        let dir = Scratch::new("metalprobe");
        let mut flags = flags.to_vec();
        flags.push("--lldp-sync-duration=1s");
        let process = Process::start("metalprobe", &dir, &program, &flags);
        Self { process, _dir: dir }
    }

    /// What it has said last.
    pub fn says(&self) -> String {
        self.process.log_tail()
    }

    /// Fails when it has ended.
    pub fn assert_runs(&self) {
        self.process.alive().unwrap_or_else(|why| panic!("{why}"));
    }
}
