//! Signed tokens: JSON Web Tokens with ES256, and nothing else.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Who signs, and whom tokens are for if nothing else is asked.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Ours have less than one kilobyte; audiences are free text.
const LONGEST: usize = 32 << 10;

/// What comes before the point in a public key on P-256: its algorithm.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Signs tokens and knows its signature again.
pub(super) struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    /// Says which key it was, in the header.
    id: String,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// From a key on P-256, in PKCS #8.
    pub(super) fn new(pkcs8: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).ok()?;
        let id = Sha256::new().chain_update(P256_PREFIX).chain_update(key.public_key().as_ref()).finalize();
        Some(Self { key, random, id: BASE64_URL_SAFE_NO_PAD.encode(id) })
    }

    /// The token that says this.
    pub(super) fn sign(&self, claims: &Value) -> Option<String> {
        let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let said = format!("{}.{}", encode(&json!({ "alg": "ES256", "kid": self.id })), encode(claims));
        let signature = self.key.sign(&self.random, said.as_bytes()).ok()?;
        Some(format!("{said}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token says, if we have signed it. Whether it still holds is another question.
    pub(super) fn read(&self, token: &str) -> Option<Value> {
        if token.len() > LONGEST {
            return None;
        }
        let (said, signature) = token.rsplit_once('.')?;
        let (header, claims) = said.split_once('.')?;
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        let known_key = header.get("kid").is_none_or(|id| id.as_str() == Some(&self.id));
        if header.get("alg").and_then(Value::as_str) != Some("ES256") || !known_key {
            return None;
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref())
            .verify(said.as_bytes(), &decode(signature)?)
            .ok()?;
        serde_json::from_slice(&decode(claims)?).ok().filter(Value::is_object)
    }
}
