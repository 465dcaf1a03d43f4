//! Who is calling, by client certificate or bearer token, and what they may do.
//!
//! Requests from sockets pass through a [`Gate`], which refuses strangers and marks the others with their [`User`].
//! Requests within the process carry no credentials: whoever can call a function here is the admin ([`caller`]).

mod gate;
mod impersonate;
mod jwt;
mod review;
mod tokens;

#[cfg(test)]
mod tests;

pub use gate::Gate;
pub use review::{REVIEWS, ReviewKind};
pub use tokens::StaticTokens;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use http::{Extensions, HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};
use store::Store;

use crate::clock::Clock;
use crate::status::Failure;
use crate::tls::{Peer, Pki};

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// Tells one credential of a user from another, in `extra`.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// `admin`, `system:serviceaccount:default:robot`.
    pub name: String,
    /// Tells users apart that had one name at different times; mostly empty.
    pub uid: String,
    /// `system:masters`, `system:authenticated`, …
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The admin: who calls within the process, and who has the kubeconfig.
    pub fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            groups: vec!["system:masters".to_owned(), AUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    fn of_service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ..Self::default()
        }
    }

    fn authenticated(mut self) -> Self {
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    fn with_credential(mut self, id: String) -> Self {
        self.extra.insert(CREDENTIAL.to_owned(), vec![id]);
        self
    }

    /// `authentication/v1.UserInfo`.
    fn to_json(&self) -> Value {
        let mut user = Map::new();
        for (key, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                user.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            user.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            user.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(user)
    }
}

/// Who is behind a request: the user that the [`Gate`] has found, or the admin if the request did not come through it.
pub fn caller(extensions: &Extensions) -> &User {
    static WITHIN: LazyLock<User> = LazyLock::new(User::admin);
    extensions.get::<User>().unwrap_or_else(|| &*WITHIN)
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `impersonate`.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural; empty when it is about a path.
    pub resource: &'a str,
    /// `status`, `token`, …; mostly empty.
    pub subresource: &'a str,
    /// Empty for all namespaces and for cluster-wide resources.
    pub namespace: &'a str,
    /// Empty when it is about many objects.
    pub name: &'a str,
    /// A path that leads to no resource: `/metrics`.
    pub path: &'a str,
}

/// Whether somebody may do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They may not; a sentence, or nothing.
    Deny(String),
}

/// Decides. So far everybody whom the server knows is its admin; role-based rules will be asked here.
pub fn authorize(user: &User, attributes: &Attributes<'_>) -> Decision {
    let known = !user.groups.iter().any(|group| group == UNAUTHENTICATED);
    if known || (attributes.verb == "get" && is_open(attributes.path)) {
        Decision::Allow
    } else {
        Decision::Deny(String::new())
    }
}

/// Whether a path is open for everybody: whether we live is no secret.
pub fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz")
}

/// Knows users by their credentials, and vouches for service accounts.
#[derive(Debug, Clone)]
pub struct Auth(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    store: Store,
    signer: jwt::Signer,
    fixed: StaticTokens,
}

impl Auth {
    /// Tokens are signed by the authority's key, and hold as long as their service account is in the store.
    pub fn new(pki: &Pki, clock: &Clock, store: &Store, fixed: StaticTokens) -> Result<Self, Failure> {
        let signer = jwt::Signer::new(pki.token_key()).ok_or_else(|| Failure::internal("the token key is unusable"))?;
        Ok(Self(Arc::new(Inner { clock: clock.clone(), store: store.clone(), signer, fixed })))
    }

    /// Who sends a request with these headers over a connection to that peer. Without credentials it is nobody, for
    /// whom only health is open.
    pub fn authenticate(&self, path: &str, headers: &HeaderMap, peer: Option<&Peer>) -> Result<User, Failure> {
        let (certified, refused) = match peer {
            Some(Peer::Certified(client)) if client.is_valid_at(self.0.clock.now()) => (Some(client), false),
            Some(Peer::Certified(_) | Peer::Refused) => (None, true),
            Some(Peer::Unknown) | None => (None, false),
        };
        let user = if let Some(client) = certified {
            User { name: client.name.clone(), groups: client.groups.clone(), ..User::default() }
                .with_credential(format!("X509SHA256={}", client.fingerprint))
                .authenticated()
        } else if let Some(token) = bearer(headers) {
            self.user_of_token(token, &[jwt::ISSUER]).map_err(|_| unauthorized())?.0
        } else if is_open(path) && !refused {
            User::anonymous()
        } else {
            return Err(unauthorized());
        };
        impersonate::impersonate(user, headers)
    }

    /// Whose token this is, and for which of the audiences; or why not.
    fn user_of_token(&self, token: &str, audiences: &[&str]) -> Result<(User, Vec<String>), String> {
        if let Some(user) = self.0.fixed.find(token) {
            return Ok((user.authenticated(), audiences.iter().map(|&audience| audience.to_owned()).collect()));
        }
        self.user_of_service_account_token(token, audiences)
    }
}

/// No, or wrong, credentials.
pub fn unauthorized() -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

/// The token in `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let scheme = words.next()?;
    words.next().filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}
