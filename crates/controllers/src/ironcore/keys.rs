//! How people log in on the system of a probe, to see why it does not report.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use ssh_key::private::{Ed25519Keypair, Ed25519PrivateKey, KeypairData};
use ssh_key::public::Ed25519PublicKey;
use ssh_key::{LineEnding, PrivateKey};

use crate::fingerprint::hex;

/// What a strong guess costs.
const BCRYPT_COST: u32 = 10;

/// A key and a password. Both follow from a seed, so that each replica makes the same.
pub(super) struct Login {
    /// Private key in OpenSSH's format.
    pub(super) private: String,
    /// Public key as a line of `authorized_keys`.
    pub(super) public: String,
    pub(super) password: String,
    salt: [u8; 16],
}

impl Login {
    pub(super) fn from_seed(seed: [u8; 32], comment: &str) -> Result<Self, String> {
        let part = |what: &str| {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &seed);
            ring::hmac::sign(&key, what.as_bytes())
        };
        let key_seed: [u8; 32] = part("key").as_ref().try_into().map_err(|_| "a seed has 32 bytes")?;
        let salt = part("salt").as_ref().iter().take(16).copied().collect::<Vec<_>>();
        let pair = Ed25519KeyPair::from_seed_unchecked(&key_seed).map_err(|error| error.to_string())?;
        let public = pair.public_key().as_ref().try_into().map(Ed25519PublicKey);
        let keypair = Ed25519Keypair {
            public: public.map_err(|_| "a public key has 32 bytes")?,
            private: Ed25519PrivateKey::from_bytes(&key_seed),
        };
        let told = |error: ssh_key::Error| error.to_string();
        let key = PrivateKey::new(KeypairData::Ed25519(keypair), comment).map_err(told)?;
        Ok(Self {
            private: key.to_openssh(LineEnding::LF).map_err(told)?.to_string(),
            public: key.public_key().to_openssh().map_err(told)?,
            // 80 bits.
            password: hex(&part("password").as_ref()[..10]),
            salt: salt.try_into().map_err(|_| "a salt has 16 bytes")?,
        })
    }

    /// The password as `/etc/shadow` has it. It takes long to make, on purpose.
    pub(super) fn password_hash(&self) -> Result<String, String> {
        let hash = bcrypt::hash_with_salt(&self.password, BCRYPT_COST, self.salt);
        Ok(hash.map_err(|error| error.to_string())?.format_for_version(bcrypt::Version::TwoA))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_follows_from_its_seed_and_opens_what_it_should() {
        let login = Login::from_seed([7; 32], "server-0").unwrap();
        let again = Login::from_seed([7; 32], "server-0").unwrap();
        assert_eq!((&login.private, &login.password), (&again.private, &again.password));
        assert_ne!(login.private, Login::from_seed([8; 32], "server-0").unwrap().private);

        let key = PrivateKey::from_openssh(&login.private).unwrap();
        assert_eq!(key.public_key().to_openssh().unwrap(), login.public);
        assert!(login.public.starts_with("ssh-ed25519 ") && login.public.ends_with(" server-0"), "{}", login.public);
        assert_eq!(login.password.len(), 20);
        assert!(bcrypt::verify(&login.password, &login.password_hash().unwrap()).unwrap());
    }
}
