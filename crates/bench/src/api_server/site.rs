//! The program that is measured: `beskar7 standalone`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use testkit::free_port;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::wire::{Door, get_json};

/// What takes longer will not happen.
const LIMIT: Duration = Duration::from_mins(1);

/// A running `beskar7 standalone`; it ends with this.
pub(super) struct Site {
    process: Child,
    kubeconfig: PathBuf,
    /// From its start to the first answer to a client with a certificate.
    pub(super) answered_after: Duration,
}

impl Site {
    pub(super) async fn start(binary: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(binary, folder, &[]).await
    }

    pub(super) async fn start_with(binary: &Path, folder: &Path, more: &[&str]) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        // The port is another each time, and the kubeconfig says which.
        std::fs::remove_file(&kubeconfig).ok();
        let started = Instant::now();
        let mut process = Command::new(binary)
            .args(["standalone", "--log-level=error", "--data"])
            .arg(folder)
            .arg(format!("--listen=127.0.0.1:{}", free_port()))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}; build it with `make build`", binary.display()))?;
        let door = Door::new(&kubeconfig);
        let mut client = None;
        loop {
            if client.is_none() && kubeconfig.exists() {
                client = door.client().await.ok();
            }
            if let Some(client) = &client
                && get_json(client, "/api/v1/namespaces/default").await.is_ok()
            {
                break;
            }
            if let Some(status) = process.try_wait()? {
                bail!("beskar7 standalone ended: {status}");
            }
            if started.elapsed() > LIMIT {
                bail!("beskar7 standalone does not answer");
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(Self { process, kubeconfig, answered_after: started.elapsed() })
    }

    pub(super) fn door(&self) -> Door {
        Door::new(&self.kubeconfig)
    }

    pub(super) fn pid(&self) -> Result<u32> {
        self.process.id().context("beskar7 standalone ended")
    }

    /// Ends it without a warning, as `kill -9` does.
    pub(super) async fn kill(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }
}
