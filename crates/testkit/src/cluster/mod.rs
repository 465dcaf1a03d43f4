//! A Kubernetes control plane of our own, as plain processes: etcd, kube-apiserver and kube-controller-manager, or the
//! API server that is part of the binary.

mod access;
mod apply;
mod audit;
mod bed;
mod embedded;
mod real;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::OnceCell;

use access::Access;
pub use access::Account;
pub use audit::AuditWrite;

use crate::pki::Authority;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::wait::wait_ok;

/// Four times what a busy machine with two cores needs.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A running control plane with accounts, a log of writes and garbage collection, but without nodes.
///
/// It is the real one, with roles, unless `BESKAR7_TEST_API` has the path of a `beskar7` whose API server takes its place.
///
/// Objects outlive the test that made them: give each test a namespace of its own with [`Cluster::namespace`].
pub struct Cluster {
    // Dropped in this order: clients of a server before the server, and the files last.
    _controller_manager: Option<Process>,
    apiserver: Mutex<Option<Process>>,
    _etcd: Option<Process>,
    /// `None` for a test bed, whose API server another process has started.
    program: Option<Program>,
    kubectl: PathBuf,
    admin: Access,
    /// What signs for a real cluster; the embedded API server keeps its own to itself.
    authority: Option<Authority>,
    shared: bool,
    embedded: bool,
    /// Where the API server writes its logs, and kubectl caches what it knows of it.
    home: PathBuf,
    /// Files of this process.
    dir: Scratch,
}

/// The API server, as it is started, and started again.
struct Program {
    name: &'static str,
    path: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    fn start(&self, dir: &Path) -> Process {
        Process::start(self.name, dir, &self.path, &self.arguments)
    }
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
    /// The cluster that this test process shares with others: the test bed that `BESKAR7_BED` names, else one that the first
    /// test to ask starts for its process, in about three seconds.
    pub async fn shared() -> &'static Cluster {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED
            .get_or_init(async || match bed::from_environment() {
                Some(bed) => bed.join(),
                None => Self::start_one(Use::Shared).await,
            })
            .await
    }

    /// Starts a test bed and writes `file`, which tells other processes how to use it.
    pub async fn start_bed(file: &Path) -> Cluster {
        let cluster = Self::start_one(Use::Shared).await;
        bed::Bed::of(&cluster).write(file);
        cluster
    }

    /// A cluster of one's own, for tests that stop the API server or change what all others would see.
    pub async fn start() -> Cluster {
        Self::start_one(Use::Own).await
    }

    /// A real cluster to measure: what it has acknowledged is on disk, and nothing is written about who asked for what.
    pub async fn start_durable() -> Cluster {
        real::start(Use::Measured).await
    }

    async fn start_one(purpose: Use) -> Cluster {
        match embedded::path() {
            Some(path) => embedded::start(path, purpose == Use::Shared).await,
            None => real::start(purpose).await,
        }
    }

    /// Whether a test ends here because it is about something that the embedded API server does not promise.
    ///
    /// What it lacks is listed in `docs/develop/testing.md`.
    #[expect(clippy::print_stderr, reason = "a test that did less than its name says must say so")]
    pub fn is_embedded_and_has(&self, lack: &str) -> bool {
        if self.embedded {
            eprintln!("skipped: the embedded API server has {lack}");
        }
        self.embedded
    }

    /// Whether this is our own API server.
    pub fn is_embedded(&self) -> bool {
        self.embedded
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

    /// A kubeconfig file for one more user who may do everything, known to the audit log by that name.
    pub(crate) fn master_kubeconfig(&self, user: &str) -> PathBuf {
        Access::certificate(&self.dir, self.authority(), self.url(), user).kubeconfig().to_owned()
    }

    /// The authority that everybody in a real cluster trusts.
    pub(crate) fn authority(&self) -> &Authority {
        self.authority.as_ref().expect("only a real API server has webhooks, and an authority that signs for others")
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Where its logs, keys and data are.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
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
        let output = tokio::process::Command::new(&self.kubectl)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &self.home)
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
        let program = self.program.as_ref().expect("only a test bed has none, and it is shared");
        let apiserver = program.start(&self.dir);
        wait_until_ready(&self.admin, &[&apiserver]).await;
        *self.apiserver.lock().unwrap_or_else(PoisonError::into_inner) = Some(apiserver);
    }
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
