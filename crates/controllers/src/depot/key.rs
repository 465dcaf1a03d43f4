//! The key that all tickets are made with: one Secret, made by whoever is first.

use std::collections::BTreeMap;

use boot::ticket::{self, Key};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use ring::rand::SystemRandom;
use tracing::{info, warn};

use crate::watches::pauses;

const NAME: &str = "beskar7-boot-key";
const ENTRY: &str = "key";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// What is in the Secret is none.
    #[error("Secret {namespace}/{NAME}, key {ENTRY}: {source}")]
    Invalid {
        /// Namespace of the Secret.
        namespace: String,
        /// What is wrong.
        source: ticket::KeyError,
    },
    /// We may not read or make it.
    #[error(
        "Secret {namespace}/{NAME}, with which the boot service makes its tickets, cannot be read or created: {message}"
    )]
    Refused {
        /// Namespace of the Secret.
        namespace: String,
        /// What the API server said.
        message: String,
    },
}

/// The key: the one that is there, or a new one. Tries again for as long as the API server cannot be asked.
pub(super) async fn open(client: &Client, namespace: &str) -> Result<Key, KeyError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut pauses = pauses();
    loop {
        let error = match find_or_make(&secrets, namespace).await {
            Ok(Some(key)) => return key,
            // Somebody was faster, or slower: look again.
            Ok(None) => continue,
            Err(kube::Error::Api(status)) if matches!(status.code, 400..=422) => {
                return Err(KeyError::Refused { namespace: namespace.to_owned(), message: status.message });
            }
            Err(error) => error,
        };
        warn!(%error, "cannot read the key of the boot service, retrying");
        if let Some(pause) = pauses.next() {
            tokio::time::sleep(pause).await;
        }
    }
}

async fn find_or_make(secrets: &Api<Secret>, namespace: &str) -> kube::Result<Option<Result<Key, KeyError>>> {
    let invalid = |source| KeyError::Invalid { namespace: namespace.to_owned(), source };
    if let Some(secret) = secrets.get_opt(NAME).await? {
        let text = secret.data.as_ref().and_then(|data| data.get(ENTRY)).map(|text| text.0.as_slice());
        let text = std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default();
        return Ok(Some(Key::from_text(text).map_err(invalid)));
    }
    let key = match Key::draw(&SystemRandom::new()) {
        Ok(key) => key,
        Err(error) => return Ok(Some(Err(invalid(error)))),
    };
    let secret = Secret {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([(ENTRY.to_owned(), ByteString(key.to_text().into_bytes()))])),
        immutable: Some(true),
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => {
            info!(secret = NAME, namespace, "created the key of the boot service");
            Ok(Some(Ok(key)))
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}
