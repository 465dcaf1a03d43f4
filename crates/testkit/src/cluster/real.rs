//! etcd, kube-apiserver and kube-controller-manager.

use std::path::Path;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

use super::access::Access;
use super::{Cluster, Program, START_TIMEOUT, Use, audit, wait_until_ready};
use crate::parts;
use crate::pki::{self, Authority};
use crate::process::Process;
use crate::scratch::{Scratch, free_port};
use crate::wait::wait_ok;

pub(super) async fn start(purpose: Use) -> Cluster {
    let bin = parts::home("kube").join("bin");
    let dir = Scratch::new("cluster");
    let authority = Authority::new("beskar7-test");
    let port = free_port();
    let url = format!("https://127.0.0.1:{port}");
    let etcd_url = format!("http://127.0.0.1:{}", free_port());
    let program = Program {
        name: "kube-apiserver",
        path: bin.join("kube-apiserver"),
        arguments: apiserver_arguments(&dir, &authority, port, &etcd_url, purpose),
    };
    let admin = Access::certificate(&dir, &authority, &url, "admin");
    let controller_manager = Access::certificate(&dir, &authority, &url, "kube-controller-manager");

    let etcd = start_etcd(&bin, &dir, &etcd_url, purpose);
    let apiserver = program.start(&dir);
    wait_until_ready(&admin, &[&etcd, &apiserver]).await;
    let controller_manager = start_controller_manager(&bin, &dir, controller_manager.kubeconfig());
    wait_for_default_account(&admin, &controller_manager).await;

    Cluster {
        _controller_manager: Some(controller_manager),
        apiserver: Mutex::new(Some(apiserver)),
        _etcd: Some(etcd),
        program: Some(program),
        kubectl: bin.join("kubectl"),
        admin,
        authority: Some(authority),
        shared: purpose == Use::Shared,
        embedded: false,
        home: dir.to_path_buf(),
        dir,
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

async fn wait_for_default_account(admin: &Access, controller_manager: &Process) {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.client(), "default");
    wait_ok("the controllers to work", START_TIMEOUT, || async {
        controller_manager.alive().unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        accounts.get("default").await
    })
    .await;
}
