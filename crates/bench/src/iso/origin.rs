//! nginx, which has the user's image, and to which we are compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use testkit::{free_port, part};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::image::NAME;
use super::readers::Target;

const LIMIT: Duration = Duration::from_secs(10);

/// A running nginx; it ends with this.
pub(super) struct Nginx {
    _process: Child,
    program: PathBuf,
    configuration: PathBuf,
    file: u16,
    proxy: u16,
}

impl Nginx {
    /// Serves the image in the folder by itself on one port, and by asking itself on the other.
    pub(super) async fn start(folder: &Path) -> Result<Self> {
        let (file, proxy) = (free_port(), free_port());
        let configuration = folder.join("nginx.conf");
        fs::write(&configuration, configure(folder, file, proxy))?;
        let program = part("nginx").join("bin/nginx");
        let mut process = Command::new(&program)
            .arg("-c")
            .arg(&configuration)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start nginx; install it with `hack/setup nginx`")?;
        let deadline = Instant::now() + LIMIT;
        while TcpStream::connect(("127.0.0.1", proxy)).await.is_err() {
            if let Some(status) = process.try_wait()? {
                bail!("nginx ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("nginx does not listen");
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { _process: process, program, configuration, file, proxy })
    }

    pub(super) fn iso_url(&self) -> String {
        self.file().url()
    }

    pub(super) fn file(&self) -> Target {
        Target::new(format!("127.0.0.1:{}", self.file), format!("/{NAME}"))
    }

    pub(super) fn proxy(&self) -> Target {
        Target::new(format!("127.0.0.1:{}", self.proxy), format!("/{NAME}"))
    }
}

impl Drop for Nginx {
    /// Asks: were it killed, its workers would stay.
    fn drop(&mut self) {
        let mut stop = std::process::Command::new(&self.program);
        stop.args(["-s", "stop", "-c"]).arg(&self.configuration).stderr(Stdio::null()).status().ok();
    }
}

/// As Debian configures it, but for places, and without files for what a slow reader of the proxy has not taken yet.
fn configure(folder: &Path, file: u16, proxy: u16) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
user root;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 768; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{file}; root {folder}; }}
    server {{
        listen 127.0.0.1:{proxy};
        location / {{
            proxy_pass http://127.0.0.1:{file};
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"
    )
}
