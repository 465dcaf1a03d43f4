//! The pretend BMC that metal-operator's own tests use.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::parts;
use crate::process::Process;
use crate::scratch::{Scratch, free_port};
use crate::wait::wait_ok;

const START_TIMEOUT: Duration = Duration::from_mins(1);

/// metal-operator's mock of a Redfish service: one server, which runs at first, over HTTP, for everybody.
///
/// It has no sessions and never uses up a boot override.
pub struct MockBmc {
    _process: Process,
    port: u16,
    _dir: Scratch,
}

impl MockBmc {
    /// The UUID of its server.
    pub const UUID: &str = "38947555-7742-3448-3784-823347823834";
    /// The Redfish path of its server.
    pub const SYSTEM: &str = "/redfish/v1/Systems/437XR1138R2";

    /// Starts it on a port of its own.
    pub async fn start() -> Self {
        let program = parts::home("metal-operator").join("bin/mockbmc");
        let (dir, port) = (Scratch::new("mockbmc"), free_port());
        let process = Process::start("mockbmc", &dir, &program, &["-addr".to_owned(), format!("127.0.0.1:{port}")]);
        wait_ok("the mock BMC to listen", START_TIMEOUT, || async {
            process.alive().unwrap_or_else(|why| panic!("the mock BMC does not start: {why}"));
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
        })
        .await;
        Self { _process: process, port, _dir: dir }
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What its server shows of itself.
    pub async fn system(&self) -> serde_json::Value {
        let url = format!("http://127.0.0.1:{}{}", self.port, Self::SYSTEM);
        let answer = crate::fetch_from(Ipv4Addr::LOCALHOST, "GET", &url, &[]).await.expect("a whole answer");
        serde_json::from_slice(answer.body()).expect("a resource")
    }
}
