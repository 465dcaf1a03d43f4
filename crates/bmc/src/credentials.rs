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

    /// A BMC may quote what it was sent: removes the secret from its message.
    pub(crate) fn redact(&self, mut text: String) -> String {
        let (username, password) = (self.username.expose_secret(), self.password.expose_secret());
        let pair = STANDARD.encode(format!("{username}:{password}"));
        // Removing a very short password would cut words apart and reveal more than it hides.
        for secret in [pair.as_str(), password] {
            if secret.len() >= 4 && text.contains(secret) {
                text = text.replace(secret, "[password]");
            }
        }
        without_word(text, username)
    }
}

/// The name only as a word of its own: "admin" must not leave a hole in "administrator".
fn without_word(text: String, word: &str) -> String {
    if word.is_empty() || !text.contains(word) {
        return text;
    }
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(word) {
        shown.push_str(before);
        let is_whole = !is_part(shown.chars().next_back()) && !is_part(after.chars().next());
        shown.push_str(if is_whole { "[user]" } else { word });
        rest = after;
    }
    shown.push_str(rest);
    shown
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
        assert_eq!(
            credentials.redact("user 'root': no ServiceRoot, rooted".into()),
            "user '[user]': no ServiceRoot, rooted"
        );
        let basic = STANDARD.encode("root:calvin-2");
        assert_eq!(credentials.redact(format!("Basic {basic} is bad")), "Basic [password] is bad");
        assert_eq!(Credentials::new("", "").redact("as it was".into()), "as it was");
    }
}
