//! User name and password: held in memory only, and never shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// What to log in with. Neither part appears in `Debug`, logs or errors.
#[derive(Clone)]
pub struct Credentials {
    username: SecretString,
    password: SecretString,
}

impl Credentials {
    /// A pair as it stands in a Secret.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: SecretString::from(username.into()), password: SecretString::from(password.into()) }
    }

    /// The body of a login.
    pub(crate) fn login_body(&self) -> serde_json::Value {
        serde_json::json!({"UserName": self.username.expose_secret(), "Password": self.password.expose_secret()})
    }

    /// The header of HTTP Basic authentication.
    pub(crate) fn basic(&self) -> Option<HeaderValue> {
        let pair = format!("{}:{}", self.username.expose_secret(), self.password.expose_secret());
        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// A BMC may quote what it was sent: takes the password out of its sentence.
    pub(crate) fn redact(&self, text: String) -> String {
        let password = self.password.expose_secret();
        // A very short password would cut words apart and tell more than it hides.
        if password.len() >= 4 && text.contains(password) { text.replace(password, "[password]") } else { text }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials([hidden])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_show_nothing() {
        let credentials = Credentials::new("root", "calvin-2");
        assert_eq!(format!("{credentials:?}"), "Credentials([hidden])");
        assert_eq!(format!("{:?}", credentials.basic().unwrap()), "Sensitive");
        assert_eq!(credentials.redact("the value calvin-2 is bad".into()), "the value [password] is bad");
    }
}
