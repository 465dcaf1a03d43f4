//! A Redfish service that we did not write: OpenStack's sushy-tools.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use crate::parts;
use crate::pki::{Identity, write};
use crate::process::Process;
use crate::scratch::{Scratch, free_port};
use crate::wait::wait_ok;

const START_TIMEOUT: Duration = Duration::from_mins(1);

/// bcrypt of [`Sushy::PASSWORD`] with the lowest cost: it is computed again for every request.
const PASSWORD_HASH: &str = "$2b$04$KqKPoZzA/vgsBekDv5swXO5ugNrRtWapelRu01Y2T0d9xsgL1zJJ6";

/// An emulated Redfish service over TLS, with a password and a certificate of its own.
///
/// It speaks TLS 1.2 only, closes the connection after every answer, and hides all its systems behind one service
/// root.
pub struct Sushy {
    _process: Process,
    url: String,
    identity: Identity,
    _dir: Scratch,
}

/// A system that exists only as a row in the emulator's database.
///
/// Its power changes take one to eleven seconds, as the emulator likes.
#[derive(Debug, Clone)]
pub struct FakeSystem {
    /// The last segment of its address.
    pub uuid: String,
    /// Its name, which also redirects to the address.
    pub name: String,
    /// The address of its only network card.
    pub mac: String,
    /// Whether it is on at the start.
    pub powered_on: bool,
}

impl FakeSystem {
    /// The system with number `index`, off.
    pub fn numbered(index: u16) -> Self {
        let [high, low] = index.to_be_bytes();
        FakeSystem {
            uuid: format!("00000000-0000-4000-8000-00000000{index:04x}"),
            name: format!("fake-{index}"),
            mac: format!("52:54:00:fa:{high:02x}:{low:02x}"),
            powered_on: false,
        }
    }
}

impl Sushy {
    /// Who may log in.
    pub const USER: &str = "admin";
    /// With what.
    pub const PASSWORD: &str = "beskar7-test";

    /// A service with pretend systems.
    pub async fn fake(systems: &[FakeSystem]) -> Sushy {
        let systems: Vec<_> = systems
            .iter()
            .map(|system| {
                json!({
                    "uuid": system.uuid,
                    "name": system.name,
                    "power_state": if system.powered_on { "On" } else { "Off" },
                    "nics": [{"mac": system.mac, "ip": "192.0.2.1"}],
                })
            })
            .collect();
        // A list of strings and maps is written the same in JSON and in Python.
        let settings = format!("SUSHY_EMULATOR_FAKE_SYSTEMS = {}\n", json!(systems));
        Self::start(&settings, &["--fake"]).await
    }

    /// A service in front of the machines of a libvirt daemon.
    pub async fn libvirt(uri: &str) -> Sushy {
        Self::start("", &["--libvirt-uri", uri]).await
    }

    /// The address of the service, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The service's certificate, which signs itself.
    pub fn certificate_pem(&self) -> &str {
        &self.identity.certificate_pem
    }

    /// SHA-256 of that certificate, lower-case hex without separators.
    pub fn fingerprint(&self) -> &str {
        &self.identity.fingerprint
    }

    async fn start(settings: &str, driver: &[&str]) -> Sushy {
        let python = parts::home("sushy").join("bin/python3");
        let dir = Scratch::new("sushy");
        let port = free_port();
        let identity = Identity::self_signed(&dir, "bmc");
        let passwords = dir.join("htpasswd");
        write(&passwords, format!("{}:{PASSWORD_HASH}\n", Self::USER));
        let config = dir.join("sushy.conf");
        let mut text = settings.to_owned();
        for (key, value) in [
            ("LISTEN_IP", json!("127.0.0.1")),
            ("LISTEN_PORT", json!(port)),
            ("STATE_DIR", json!(&*dir)),
            ("AUTH_FILE", json!(passwords)),
            ("SSL_CERT", json!(identity.certificate_file)),
            ("SSL_KEY", json!(identity.key_file)),
        ] {
            writeln!(text, "SUSHY_EMULATOR_{key} = {value}").expect("writing to a string");
        }
        write(&config, text);

        // Images of virtual media land in TMPDIR and stay there.
        let mut arguments: Vec<OsString> = vec![format!("TMPDIR={}", dir.display()).into(), python.into()];
        arguments.extend(["-m", "sushy_tools.emulator.main", "--config"].map(OsString::from));
        arguments.push(config.into());
        arguments.extend(driver.iter().map(OsString::from));
        let process = Process::start("sushy", &dir, "env".as_ref(), &arguments);
        wait_ok("the Redfish service to listen", START_TIMEOUT, || async {
            process.alive().unwrap_or_else(|why| panic!("the Redfish service does not start: {why}"));
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
        })
        .await;
        Sushy { _process: process, url: format!("https://127.0.0.1:{port}"), identity, _dir: dir }
    }
}
