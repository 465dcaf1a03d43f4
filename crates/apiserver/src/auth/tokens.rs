//! Bearer tokens: those of service accounts, which are asked for and end, and fixed ones from a file.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use ring::rand::SecureRandom as _;
use schema::object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::review::{or_default, read_body};
use super::{Auth, User, jwt};
use crate::status::{Failure, FieldError, Qualified};

/// Clocks differ; tokens hold this much longer, as Kubernetes has it.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const USUAL: i64 = 3600;

const TOKEN_REQUEST: Qualified<'static> = Qualified { group: "authentication.k8s.io", name: "TokenRequest" };

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    audiences: Vec<String>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundObject>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundObject {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    uid: String,
}

impl Auth {
    /// `POST …/serviceaccounts/<name>/token`: answers a TokenRequest with a token.
    pub fn issue_token(&self, namespace: &str, name: &str, body: &Value) -> Result<Value, Failure> {
        let spec: Spec = read_body(TOKEN_REQUEST.group, TOKEN_REQUEST.name, body)?;
        let asked_namespace = object::namespace(body);
        if !asked_namespace.is_empty() && asked_namespace != namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let asked_name = object::name(body);
        if !asked_name.is_empty() && asked_name != name {
            let wrong =
                FieldError::invalid("metadata.name", asked_name, "must match the service account name if specified");
            return Err(Failure::invalid(TOKEN_REQUEST, name, &[wrong]));
        }
        let account = self
            .core_object("serviceaccounts", namespace, name)?
            .ok_or_else(|| Failure::not_found(Qualified { group: "", name: "serviceaccounts" }, name))?;
        let seconds = spec.expiration_seconds.unwrap_or(USUAL);
        let wrong = if seconds < SHORTEST {
            Some("may not specify a duration less than 10 minutes")
        } else if seconds > LONGEST {
            Some("may not specify a duration larger than 2^32 seconds")
        } else {
            None
        };
        if let Some(why) = wrong {
            return Err(Failure::invalid(
                TOKEN_REQUEST,
                "",
                &[FieldError::invalid("spec.expirationSeconds", seconds, why)],
            ));
        }
        let secret = match &spec.bound_object_ref {
            None => None,
            Some(bound) => Some(self.bound_secret(namespace, bound)?),
        };
        let audiences = if spec.audiences.is_empty() { vec![jwt::ISSUER.to_owned()] } else { spec.audiences };

        let now = self.0.clock.now().as_second();
        let expiry = now + seconds;
        let mut kubernetes = json!({
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": object::uid(&account) },
        });
        if let Some(secret) = secret {
            kubernetes["secret"] = json!({ "name": object::name(&secret), "uid": object::uid(&secret) });
        }
        let claims = json!({
            "iss": jwt::ISSUER,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "aud": audiences,
            "exp": expiry, "iat": now, "nbf": now,
            "jti": new_id()?,
            "kubernetes.io": kubernetes,
        });
        let token = self.0.signer.sign(&claims).ok_or_else(|| Failure::internal("failed to generate token"))?;
        let mut metadata = object::meta(body).cloned().unwrap_or_default();
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), namespace.into());
        metadata.insert("creationTimestamp".to_owned(), shown(now).into());
        Ok(json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": {
                "audiences": audiences, "expirationSeconds": seconds,
                "boundObjectRef": spec.bound_object_ref,
            },
            "status": { "token": token, "expirationTimestamp": shown(expiry) },
        }))
    }

    fn bound_secret(&self, namespace: &str, bound: &BoundObject) -> Result<Value, Failure> {
        let (group, version) = bound.api_version.rsplit_once('/').unwrap_or(("", &bound.api_version));
        let absent = |plural: &str| Failure::not_found(Qualified { group: "", name: plural }, &bound.name);
        match (group, bound.kind.as_str()) {
            ("", "Secret") => {}
            // There are none.
            ("", "Pod") => return Err(absent("pods")),
            ("", "Node") => return Err(absent("nodes")),
            _ => {
                let kind = &bound.kind;
                return Err(Failure::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        }
        let secret = self.core_object("secrets", namespace, &bound.name)?.ok_or_else(|| absent("secrets"))?;
        if !bound.uid.is_empty() && bound.uid != object::uid(&secret) {
            let why = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have \
                 been deleted and then recreated",
                bound.uid
            );
            return Err(Failure::conflict(Qualified { group: "", name: "Secret" }, &bound.name, why));
        }
        Ok(secret)
    }

    fn core_object(&self, plural: &str, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
        // Names come from clients: a slash would lead elsewhere.
        if namespace.contains('/') || name.contains('/') {
            return Ok(None);
        }
        let entry =
            self.0.store.get(&format!("/registry/core/{plural}/{namespace}/{name}")).map_err(Failure::internal)?;
        entry.map(|entry| serde_json::from_slice(&entry.value).map_err(Failure::internal)).transpose()
    }

    pub(super) fn user_of_service_account_token(
        &self,
        token: &str,
        audiences: &[&str],
    ) -> Result<(User, Vec<String>), String> {
        let invalid = || "invalid bearer token".to_owned();
        let because = |why: String| format!("[invalid bearer token, {why}]");
        let claims = self.0.signer.read(token).ok_or_else(invalid)?;
        let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/iss") != jwt::ISSUER {
            return Err(invalid());
        }
        let for_whom: Vec<&str> = match claims.get("aud") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let common: Vec<String> = for_whom
            .iter()
            .filter(|audience| audiences.contains(audience))
            .map(|&audience| audience.to_owned())
            .collect();
        if common.is_empty() {
            let why = format!("token audiences {for_whom:?} is invalid for the target audiences {audiences:?}");
            return Err(because(why));
        }
        self.check_time(&claims).map_err(because)?;
        let (namespace, name) = (text("/kubernetes.io/namespace"), text("/kubernetes.io/serviceaccount/name"));
        let uid = text("/kubernetes.io/serviceaccount/uid");
        self.check_bound(&claims, namespace, name, uid).map_err(because)?;
        let mut user = User::of_service_account(namespace, name, uid);
        if !text("/jti").is_empty() {
            user = user.with_credential(format!("JTI={}", text("/jti")));
        }
        Ok((user.authenticated(), common))
    }

    fn check_time(&self, claims: &Value) -> Result<(), String> {
        let now = self.0.clock.now();
        let time =
            |key: &str| claims.get(key).and_then(Value::as_i64).and_then(|time| Timestamp::from_second(time).ok());
        // A token without an end is not ours, whatever its signature says.
        let ends = time("exp").ok_or("service account token has expired")?;
        if now.duration_since(ends) > LEEWAY {
            return Err("service account token has expired".to_owned());
        }
        let early = |key: &str| time(key).is_some_and(|begins| begins.duration_since(now) > LEEWAY);
        if early("nbf") {
            return Err("service account token is not valid yet".to_owned());
        }
        if early("iat") {
            return Err("service account token is issued in the future".to_owned());
        }
        Ok(())
    }

    fn check_bound(&self, claims: &Value, namespace: &str, name: &str, uid: &str) -> Result<(), String> {
        let find = |plural, name: &str| self.core_object(plural, namespace, name).map_err(|failure| failure.message);
        let account = find("serviceaccounts", name)?.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        let found = object::uid(&account);
        if found != uid {
            return Err(format!("service account UID ({found}) does not match claim ({uid})"));
        }
        if self.is_long_deleted(&account) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        if let Some(bound) = claims.pointer("/kubernetes.io/secret") {
            let text = |key: &str| bound.get(key).and_then(Value::as_str).unwrap_or_default();
            let secret = find("secrets", text("name"))?.filter(|secret| !self.is_long_deleted(secret));
            let secret = secret.ok_or("service account token has been invalidated")?;
            let (found, uid) = (object::uid(&secret), text("uid"));
            if found != uid {
                return Err(format!("secret UID ({found}) does not match service account secret ref claim ({uid})"));
            }
        }
        Ok(())
    }

    fn is_long_deleted(&self, object: &Value) -> bool {
        object::meta_text(object, "deletionTimestamp")
            .parse::<Timestamp>()
            .is_ok_and(|deleted| self.0.clock.now().duration_since(deleted) > LEEWAY)
    }
}

fn shown(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// A random UUID.
fn new_id() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    ring::rand::SystemRandom::new().fill(&mut bytes).map_err(|_| Failure::internal("no random numbers"))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Tokens that never end, each with its user.
#[derive(Clone, Default)]
pub struct StaticTokens(Vec<([u8; 32], User)>);

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticTokens({})", self.0.len())
    }
}

impl StaticTokens {
    /// Reads lines like kube-apiserver's `--token-auth-file`: `token,user,uid` or `token,user,uid,"group1,group2"`.
    /// Empty lines and those that begin with `#` say nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = BTreeMap::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.splitn(4, ',').map(|field| field.trim().trim_matches('"'));
            let (Some(token), Some(name), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
                return Err(format!("line {}: a token, a user and a uid are needed", number + 1));
            };
            if token.is_empty() || name.is_empty() {
                return Err(format!("line {}: token and user must not be empty", number + 1));
            }
            let groups = fields.next().unwrap_or_default();
            let groups =
                groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned).collect();
            let user = User { name: name.to_owned(), uid: uid.to_owned(), groups, ..User::default() };
            tokens.insert(<[u8; 32]>::from(Sha256::digest(token)), user);
        }
        Ok(Self(tokens.into_iter().collect()))
    }

    /// Whose token this is. All are compared, by digest and in full, so that time tells nothing.
    pub(super) fn find(&self, token: &str) -> Option<User> {
        let digest = <[u8; 32]>::from(Sha256::digest(token));
        let mut found = None;
        for (known, user) in &self.0 {
            let difference = known.iter().zip(&digest).fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                found = Some(user);
            }
        }
        found.cloned()
    }
}
