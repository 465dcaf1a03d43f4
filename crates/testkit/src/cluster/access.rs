//! Ways into the cluster: kubeconfig files and clients that hold one identity each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use super::Cluster;
use crate::pki::{self, Authority};
use crate::wait::wait_ok;

/// One identity: as a file for programs, as a client for tests.
pub(super) struct Access {
    url: String,
    authority_pem: String,
    /// The `user` of a kubeconfig.
    user: Value,
    kubeconfig: PathBuf,
}

/// A service account that can do what its roles allow, and nothing else; everything where there are no roles.
pub struct Account {
    access: Access,
    user: String,
    token: String,
}

impl Account {
    /// A new client that acts with the account's token.
    pub fn client(&self) -> Client {
        self.access.client()
    }

    /// A kubeconfig file with the account's token.
    pub fn kubeconfig(&self) -> &Path {
        &self.access.kubeconfig
    }

    /// The name under which the API server knows it, as in the audit log.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The bearer token, valid for an hour.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The real API server stores roles first and learns of them a moment later.
    async fn wait_until_granted(&self, namespace: &str, rules: &[Value]) {
        let reviews: Api<SelfSubjectRulesReview> = Api::all(self.client());
        let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
        let review = SelfSubjectRulesReview { spec, ..Default::default() };
        wait_ok(&format!("the roles of {} to hold", self.user), Duration::from_secs(30), || async {
            let answer = reviews.create(&PostParams::default(), &review).await.map_err(|error| error.to_string())?;
            let status = answer.status.unwrap_or_default();
            let granted: Vec<Value> = status.resource_rules.iter().map(|rule| json!(rule)).collect();
            match rules.iter().find(|rule| !granted.contains(rule)) {
                None => Ok(()),
                Some(missing) => Err(format!("it lacks {missing}")),
            }
        })
        .await;
    }
}

impl Cluster {
    /// Creates a service account, applies `roles` (RBAC documents, by default in the same namespace), and logs in as it;
    /// what the roles allow, it can do there when this returns.
    pub async fn service_account(&self, namespace: &str, name: &str, roles: &str) -> Account {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin(), namespace);
        let manifest = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        accounts
            .patch(name, &PatchParams::apply("testkit"), &Patch::Apply(manifest))
            .await
            .unwrap_or_else(|error| panic!("cannot create service account {namespace}/{name}: {error}"));
        let applied = self.apply_yaml_in(namespace, roles).await;
        let granted = accounts
            .create_token_request(name, &PostParams::default(), &TokenRequest::default())
            .await
            .unwrap_or_else(|error| panic!("cannot get a token for {namespace}/{name}: {error}"));
        let token = granted.status.expect("a granted token request has a status").token;
        let user = json!({"token": token});
        let file = self.dir.join(format!("{namespace}.{name}.kubeconfig"));
        let account = Account {
            access: Access::new(self.url().to_owned(), self.authority_pem().to_owned(), user, file),
            user: format!("system:serviceaccount:{namespace}:{name}"),
            token,
        };
        let promised = rules(&applied);
        if !promised.is_empty() {
            account.wait_until_granted(namespace, &promised).await;
        }
        account
    }
}

/// The rules of all roles about resources.
fn rules(applied: &[DynamicObject]) -> Vec<Value> {
    let rules = applied.iter().filter_map(|object| object.data["rules"].as_array()).flatten();
    rules.filter(|rule| rule["resources"].is_array()).cloned().collect()
}

impl Access {
    /// A user of the group that may do everything, known by a client certificate.
    pub(super) fn certificate(dir: &Path, authority: &Authority, url: &str, user: &str) -> Self {
        let identity = authority.client(dir, user, "system:masters");
        let user_entry = json!({
            "client-certificate-data": BASE64_STANDARD.encode(&identity.certificate_pem),
            "client-key-data": BASE64_STANDARD.encode(&identity.key_pem),
        });
        let file = dir.join(format!("{user}.kubeconfig"));
        Self::new(url.to_owned(), authority.pem(), user_entry, file)
    }

    fn new(url: String, authority_pem: String, user: Value, kubeconfig: PathBuf) -> Self {
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {
                "server": url,
                "certificate-authority-data": BASE64_STANDARD.encode(&authority_pem),
            }}],
            "users": [{"name": "test", "user": user}],
        });
        pki::write(&kubeconfig, document.to_string());
        Access { url, authority_pem, user, kubeconfig }
    }

    /// What a kubeconfig file says that somebody else wrote, with all certificates in it.
    pub(super) fn read(kubeconfig: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig that can be read");
        let document: Value = serde_saphyr::from_str(&text).expect("a kubeconfig is YAML");
        let cluster = &document["clusters"][0]["cluster"];
        let part = |name: &str| cluster[name].as_str().unwrap_or_else(|| panic!("the kubeconfig has no {name}"));
        let authority = BASE64_STANDARD.decode(part("certificate-authority-data")).expect("a certificate in base64");
        Access {
            url: part("server").to_owned(),
            authority_pem: String::from_utf8(authority).expect("a certificate in PEM"),
            user: document["users"][0]["user"].clone(),
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Built by hand rather than read from the file, so that it needs no `await`.
    pub(super) fn client(&self) -> Client {
        let mut config = Config::new(self.url.parse().expect("the address of the API server"));
        config.root_cert = Some(vec![pki::der(&self.authority_pem)]);
        config.auth_info = serde_json::from_value(self.user.clone()).expect("the user of a kubeconfig");
        Client::try_from(config).expect("a client from certificates of our own")
    }
}
