//! A Kubernetes control plane of our own: etcd, kube-apiserver and kube-controller-manager as plain processes.

mod access;
mod apply;
mod audit;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::OnceCell;

use access::Access;
pub use access::Account;
pub use audit::AuditWrite;

use crate::parts;
use crate::pki::{self, Authority};
use crate::process::Process;
use crate::scratch::{Scratch, free_port};
use crate::wait::wait_ok;

/// Four times what a busy machine with two cores needs.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A running control plane with RBAC, an audit log and garbage collection, but without nodes.
///
/// Objects outlive the test that made them: give each test a namespace of its own with [`Cluster::namespace`].
pub struct Cluster {
    // Dropped in this order: clients of a server before the server, and the files last.
    _controller_manager: Process,
    apiserver: Mutex<Option<Process>>,
    _etcd: Process,
    arguments: Vec<String>,
    bin: PathBuf,
    admin: Access,
    shared: bool,
    dir: Scratch,
}

/// What a cluster is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Shared,
    Own,
    Measured,
}

/// What one run of kubectl answered.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// What users see.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Kubectl {
    /// The standard output of a run that must succeed.
    pub fn ok(self) -> String {
        assert!(self.status.success(), "kubectl failed ({}): {}", self.status, self.stderr);
        self.stdout
    }
}

impl Cluster {
    /// The one cluster of this test process; started by whoever asks first, in about three seconds.
    pub async fn shared() -> &'static Cluster {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED.get_or_init(|| Self::start_one(Use::Shared)).await
    }

    /// A cluster of one's own, for tests that stop the API server or change what all others would see.
    pub async fn start() -> Cluster {
        Self::start_one(Use::Own).await
    }

    /// A cluster to measure: what it has acknowledged is on disk, and nothing is written about who asked for what.
    pub async fn start_durable() -> Cluster {
        Self::start_one(Use::Measured).await
    }

    async fn start_one(purpose: Use) -> Cluster {
        let bin = parts::home("kube").join("bin");
        let dir = Scratch::new("cluster");
        let authority = Authority::new("beskar7-test");
        let port = free_port();
        let etcd_url = format!("http://127.0.0.1:{}", free_port());
        let arguments = apiserver_arguments(&dir, &authority, port, &etcd_url, purpose);
        let admin = Access::certificate(&dir, &authority, port, "admin");
        let controller_manager = Access::certificate(&dir, &authority, port, "kube-controller-manager");

        let etcd = start_etcd(&bin, &dir, &etcd_url, purpose);
        let apiserver = Process::start("kube-apiserver", &dir, &bin.join("kube-apiserver"), &arguments);
        wait_until_ready(&admin, &[&etcd, &apiserver]).await;
        let controller_manager = start_controller_manager(&bin, &dir, controller_manager.kubeconfig());
        wait_for_default_account(&admin, &controller_manager).await;

        Cluster {
            _controller_manager: controller_manager,
            apiserver: Mutex::new(Some(apiserver)),
            _etcd: etcd,
            arguments,
            bin,
            admin,
            shared: purpose == Use::Shared,
            dir,
        }
    }

    /// A new client that may do everything. Clients belong to the runtime of the test that made them.
    pub fn admin(&self) -> Client {
        self.admin.client()
    }

    /// A kubeconfig file for [`Cluster::admin`]'s user.
    pub fn admin_kubeconfig(&self) -> &Path {
        self.admin.kubeconfig()
    }

    /// The API server's address, `https://127.0.0.1:port`.
    pub fn url(&self) -> &str {
        self.admin.url()
    }

    /// The certificate of the authority that signed the API server's, PEM.
    pub fn authority_pem(&self) -> &str {
        self.admin.authority_pem()
    }

    /// Creates a namespace with an unused name that starts with `prefix`.
    pub async fn namespace(&self, prefix: &str) -> String {
        let suffix: String = std::iter::repeat_with(fastrand::lowercase).take(6).collect();
        let name = format!("{prefix}-{suffix}");
        let namespace =
            Namespace { metadata: ObjectMeta { name: Some(name.clone()), ..Default::default() }, ..Default::default() };
        Api::all(self.admin())
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap_or_else(|error| panic!("cannot create namespace {name}: {error}"));
        name
    }

    /// Runs the kubectl of the same release as the admin.
    pub async fn kubectl(&self, arguments: &[&str]) -> Kubectl {
        self.kubectl_with(self.admin_kubeconfig(), arguments).await
    }

    /// Runs kubectl with another kubeconfig, for what an account of less power sees.
    pub async fn kubectl_with(&self, kubeconfig: &Path, arguments: &[&str]) -> Kubectl {
        // HOME is where it caches discovery, which must not be shared between clusters.
        let output = tokio::process::Command::new(self.bin.join("kubectl"))
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &*self.dir)
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("kubectl starts");
        Kubectl {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status,
        }
    }

    /// Ends the API server at once, as a crash would. Only for a cluster of one's own.
    pub fn stop_apiserver(&self) {
        assert!(!self.shared, "other tests use the shared cluster: take Cluster::start() to stop its API server");
        drop(self.apiserver.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Starts the API server again, on the same port and with the same data, and waits until it is ready.
    pub async fn start_apiserver(&self) {
        let apiserver = Process::start("kube-apiserver", &self.dir, &self.bin.join("kube-apiserver"), &self.arguments);
        wait_until_ready(&self.admin, &[&apiserver]).await;
        *self.apiserver.lock().unwrap_or_else(PoisonError::into_inner) = Some(apiserver);
    }
}

/// Strangers see whether the server is well, and nothing else.
const AUTHENTICATION: &str = "\
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
    - path: /healthz
    - path: /livez
    - path: /readyz
";

fn start_etcd(bin: &Path, dir: &Path, url: &str, purpose: Use) -> Process {
    let peer = format!("http://127.0.0.1:{}", free_port());
    let mut arguments = vec![
        format!("--data-dir={}", dir.join("etcd").display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ];
    if purpose != Use::Measured {
        // The data need not survive a power cut, and disks of build machines are slow.
        arguments.push("--unsafe-no-fsync".to_owned());
    }
    Process::start("etcd", dir, &bin.join("etcd"), &arguments)
}

fn apiserver_arguments(dir: &Path, authority: &Authority, port: u16, etcd: &str, purpose: Use) -> Vec<String> {
    let serving = authority.server(dir, "apiserver");
    let token_key = pki::new_key();
    pki::write(&dir.join("token.key"), token_key.serialize_pem());
    pki::write(&dir.join("token.pub"), token_key.public_key_pem());
    let authority_file = dir.join("authority.crt");
    pki::write(&authority_file, authority.pem());
    let authentication = dir.join("authentication.yaml");
    pki::write(&authentication, AUTHENTICATION);
    let mut arguments = vec![
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", serving.certificate_file.display()),
        format!("--tls-private-key-file={}", serving.key_file.display()),
        format!("--client-ca-file={}", authority_file.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        // Watches that begin with what is there; on by default in most other releases.
        "--feature-gates=WatchList=true".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        format!("--service-account-key-file={}", dir.join("token.pub").display()),
        format!("--service-account-signing-key-file={}", dir.join("token.key").display()),
        format!("--authentication-config={}", authentication.display()),
    ];
    if purpose != Use::Measured {
        let policy = dir.join("audit-policy.yaml");
        pki::write(&policy, audit::POLICY);
        arguments.push(format!("--audit-policy-file={}", policy.display()));
        arguments.push(format!("--audit-log-path={}", dir.join(audit::LOG).display()));
    }
    arguments
}

fn start_controller_manager(bin: &Path, dir: &Path, kubeconfig: &Path) -> Process {
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--service-account-private-key-file={}", dir.join("token.key").display()),
        format!("--root-ca-file={}", dir.join("authority.crt").display()),
        // Without these, deletion of owners and namespaces never ends, and namespaces have no default account.
        "--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,\
         serviceaccount-token-controller,clusterrole-aggregation-controller"
            .to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    Process::start("kube-controller-manager", dir, &bin.join("kube-controller-manager"), &arguments)
}

async fn wait_until_ready(admin: &Access, processes: &[&Process]) {
    let client = admin.client();
    wait_ok("the API server to be ready", START_TIMEOUT, || async {
        for process in processes {
            process.alive().unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        }
        let request = http::Request::get("/readyz").body(Vec::new()).expect("a fixed request");
        client.request_text(request).await
    })
    .await;
}

async fn wait_for_default_account(admin: &Access, controller_manager: &Process) {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.client(), "default");
    wait_ok("the controllers to work", START_TIMEOUT, || async {
        controller_manager.alive().unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        accounts.get("default").await
    })
    .await;
}
