//! A server behind a BMC, with everything that it needs around it.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sim::qemu::{Lab, MachineSpec, Machines, Network};
use sim::{Bmc, Fleet, FleetSpec, Mode, Parts, PowerState, Server};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Several times what a boot takes on two busy cores.
const BOOT: Duration = Duration::from_secs(150);
const POLL: Duration = Duration::from_millis(50);

pub(crate) struct Bench {
    bmc: Bmc,
    machines: Machines,
    site: Arc<Site>,
    site_address: SocketAddr,
    lab: Lab,
    folder: TempDir,
    dhcp: Option<Child>,
    _serving: JoinSet<()>,
}

/// A web server on the machines' network.
#[derive(Default)]
struct Site {
    files: Mutex<HashMap<String, Bytes>>,
    fetched: Mutex<Vec<String>>,
}

impl Site {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let file = self.files.lock().unwrap().get(&path).cloned();
        if request.method() == Method::GET {
            self.fetched.lock().unwrap().push(path);
        }
        let mut response = Response::new(Full::new(file.clone().unwrap_or_default()));
        if file.is_none() {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }
}

impl Bench {
    pub(crate) fn start(firmware: Mode) -> Self {
        let folder = tempfile::Builder::new().prefix("sim-qemu-").tempdir().unwrap();
        let lab = Lab::open(1).unwrap();
        let Network::Bridge(bridge) = lab.network() else { panic!("no bridge: {:?}", lab.network().limits()) };
        let listener = lab.bind_tcp(SocketAddr::from((bridge.address, 80))).unwrap();
        listener.set_nonblocking(true).unwrap();
        let site_address = listener.local_addr().unwrap();
        let (site, mut serving) = (Arc::new(Site::default()), JoinSet::new());
        serving.spawn(serve(TcpListener::from_std(listener).unwrap(), site.clone()));

        let prefix = folder.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let fleet = Fleet::new(&FleetSpec { prefix, parts: Parts::Machine, ..FleetSpec::default() });
        let spec = MachineSpec { firmware, ..MachineSpec::default() };
        let machines = Machines::start(&fleet, &lab, spec, folder.path()).unwrap();
        let bmc = fleet.bmcs()[0].clone();
        Self { bmc, machines, site, site_address, lab, folder, dhcp: None, _serving: serving }
    }

    /// DHCP that sends iPXE to `boot.ipxe`, and UEFI HTTP to `dhcp.efi`. The last three options spare iPXE long waits for an IPv6 router and a second DHCP server.
    pub(crate) fn start_dhcp(&mut self) {
        let leases = format!("--dhcp-leasefile={}", self.folder.path().join("leases").display());
        let script = format!("--dhcp-boot=tag:ipxe,{}", self.url("boot.ipxe"));
        let program = format!("--dhcp-boot=tag:http,{}", self.url("dhcp.efi"));
        let started = self.lab.run_in("dnsmasq", |command| {
            command
                .args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--user=root", "--port=0"])
                .args(["--interface=br0", "--bind-interfaces", "--no-ping", "--dhcp-authoritative", &leases, &script])
                .args(["--dhcp-range=10.77.0.100,10.77.0.199,255.255.255.0,1h", "--dhcp-match=set:ipxe,175"])
                .args(["--dhcp-match=set:http,option:client-arch,16", &program])
                .arg("--dhcp-option-force=tag:http,60,HTTPClient")
                .args(["--enable-ra", "--dhcp-range=fd77::,ra-only,64", "--dhcp-option-force=encap:175,176,1b"])
                .stderr(std::process::Stdio::null());
        });
        self.dhcp = Some(started.unwrap_or_else(|error| panic!("dnsmasq: {error}: run `make setup`")));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.site_address.ip())
    }

    pub(crate) fn publish(&self, path: &str, content: impl Into<Bytes>) {
        self.site.files.lock().unwrap().insert(format!("/{path}"), content.into());
    }

    pub(crate) fn fetched(&self, path: &str) -> usize {
        self.site.fetched.lock().unwrap().iter().filter(|fetched| *fetched == path).count()
    }

    pub(crate) fn put_on_disk(&self, content: &[u8]) {
        use std::os::unix::fs::FileExt as _;
        let disk = fs::File::options().write(true).open(self.machine().join("disk.raw")).unwrap();
        disk.write_all_at(content, 0).unwrap();
    }

    fn machine(&self) -> &Path {
        &self.machines.folders()[0]
    }

    pub(crate) fn serial(&self) -> String {
        self.machines.serial(0)
    }

    pub(crate) fn server(&self) -> Server {
        self.bmc.first()
    }

    /// Number of QEMU processes.
    pub(crate) fn processes(&self) -> usize {
        processes(self.bmc.name())
    }

    pub(crate) fn command_line(&self) -> String {
        command_lines(self.bmc.name()).pop().unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, None).await
    }

    /// The power as the BMC shows it.
    pub(crate) async fn power(&self) -> PowerState {
        serde_json::from_value(self.get("/redfish/v1/Systems/1").await["PowerState"].take()).unwrap()
    }

    pub(crate) async fn reset(&self, kind: &str) {
        let body = json!({ "ResetType": kind });
        self.ask(Method::POST, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Some(body)).await;
    }

    /// A one-time override.
    pub(crate) async fn order(&self, target: &str, mode: &str, uri: Option<&str>) {
        let mut boot = json!({
            "BootSourceOverrideTarget": target,
            "BootSourceOverrideEnabled": "Once",
            "BootSourceOverrideMode": mode,
        });
        if let Some(uri) = uri {
            boot["HttpBootUri"] = json!(uri);
        }
        self.ask(Method::PATCH, "/redfish/v1/Systems/1", Some(json!({ "Boot": boot }))).await;
    }

    pub(crate) async fn insert(&self, path: &str) {
        let body = json!({ "Image": self.url(path) });
        self.ask(Method::POST, &drive("InsertMedia"), Some(body)).await;
    }

    pub(crate) async fn eject(&self) {
        self.ask(Method::POST, &drive("EjectMedia"), Some(json!({}))).await;
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let login = STANDARD.encode("admin:password");
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(AUTHORIZATION, format!("Basic {login}"));
        let response = self.bmc.call(request.body(body).unwrap()).await.unwrap();
        assert!(response.status().is_success(), "{path}: {} {:?}", response.status(), response.body());
        serde_json::from_slice(response.body()).unwrap_or_default()
    }

    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Server) -> bool) {
        self.wait(what, || is_so(&self.server())).await;
    }

    pub(crate) async fn until_serial(&self, text: &str) {
        self.wait(text, || self.serial().contains(text)).await;
    }

    pub(crate) async fn until_fetched(&self, path: &str) {
        self.wait(path, || self.fetched(path) > 0).await;
    }

    async fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                sleep(POLL).await;
            }
        };
        if timeout(BOOT, waiting).await.is_err() {
            let complaints = fs::read_to_string(self.machine().join("qemu.log")).unwrap_or_default();
            let fetched = self.site.fetched.lock().unwrap().clone();
            panic!("waited too long for {what}\nQEMU: {complaints}\nfetched: {fetched:?}\nserial: {}", self.serial());
        }
    }

    /// Ends everything in good order.
    pub(crate) async fn stop(self) {
        self.machines.stop().await;
        assert_eq!(processes(self.bmc.name()), 0);
        if let Some(mut dhcp) = self.dhcp {
            dhcp.kill().await.unwrap();
        }
    }

    /// Forgets everything, and returns the name of the machine.
    pub(crate) fn drop_all(self) -> String {
        self.bmc.name().to_owned()
    }
}

fn drive(action: &str) -> String {
    format!("/redfish/v1/Systems/1/VirtualMedia/CD1/Actions/VirtualMedia.{action}")
}

async fn serve(listener: TcpListener, site: Arc<Site>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let site = site.clone();
        connections.spawn(async move {
            let answer =
                service_fn(|request| std::future::ready(Ok::<_, std::convert::Infallible>(site.answer(&request))));
            // Firmware hangs up as it likes.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// Number of QEMU processes of a machine.
pub(crate) fn processes(machine: &str) -> usize {
    command_lines(machine).len()
}

fn command_lines(machine: &str) -> Vec<String> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = processes.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains("qemu-system") && line.contains(machine)).collect()
}
