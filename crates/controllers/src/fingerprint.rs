//! Digests that are stored on objects or in tickets: of what a BMC is spoken to with, of orders, of deployments.
//!
//! They outlive the program, so they are made of words that are written down here and nowhere derived: a field that is renamed must
//! not lift a hold on refused credentials, nor end a ticket that a BMC is reading. The words look like those of the first
//! releases, which derived them.

use std::borrow::Cow;

use bmc::{Address, Family, SystemChoice};
use k8s_openapi::api::core::v1::Secret;

use crate::dialect::{Connection, Login, TrustWish};
use crate::object::{KindId, ObjectId};
use crate::vault::Vault;

/// A short digest, to compare by.
pub(crate) fn digest(text: &str) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(text.as_bytes())[..10])
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        write!(hex, "{byte:02x}").ok();
        hex
    })
}

/// How a BMC would be spoken to now: it changes when the object, a Secret or the trust does. What version 0.1.0 has made of the same is the
/// answer where that is `stored`: an upgrade must not lift a hold.
pub(crate) fn inputs<'a>(connection: &Connection, vault: &Vault, stored: impl IntoIterator<Item = &'a str>) -> String {
    let mut stored = stored.into_iter().peekable();
    if stored.peek().is_some() {
        let versions: Vec<_> = connection.secrets().map(|secret| vault.former_version(secret)).collect();
        let former = digest(&inputs_words(connection, &versions));
        if stored.any(|stored| stored == former) {
            return former;
        }
    }
    digest(&inputs_words(connection, &versions(connection, vault)))
}

/// Everything but the system, which may also stand in the address: hosts that differ in nothing else share a session, also if what they
/// log in with is kept in several objects. Never stored: `credentials` is a word that only this process understands.
pub(crate) fn line(connection: &Connection, credentials: &str, vault: &Vault) -> String {
    let Connection { address, system: _, credentials: _, trust, family } = connection;
    let authorities = match trust {
        TrustWish::CaBundle(secret) => vault.version(secret),
        _ => String::new(),
    };
    let (origin, trust, family) = (address.origin(), trust_words(trust), optional(*family, family_word));
    digest(&format!("{origin} {credentials} {trust} {family} {authorities}"))
}

fn versions(connection: &Connection, vault: &Vault) -> Vec<String> {
    let given = match &connection.credentials {
        Login::Given(given) => Some(vault.word_for(&[&given.username, &given.password])),
        Login::Kept(_) => None,
    };
    given.into_iter().chain(connection.secrets().map(|secret| vault.version(secret))).collect()
}

/// What holds the credentials. Of its kind nothing was said when there was only one.
fn secret_word(id: &ObjectId) -> Cow<'_, str> {
    if id.kind == KindId::of::<Secret>() { (&id.name).into() } else { format!("{} {}", id.kind.kind, id.name).into() }
}

fn inputs_words(connection: &Connection, versions: &[String]) -> String {
    let Connection { address, system, credentials: _, trust, family } = connection;
    let credentials = connection.kept_credentials();
    let system = match system {
        SystemChoice::Only => "Only".to_owned(),
        SystemChoice::Named(name) => format!("Named({})", quoted(name)),
    };
    format!(
        "Connection {{ address: {}, system: {system}, credentials: {}, trust: {}, family: {} }} {} {}",
        address_words(address),
        quoted(credentials.map_or("given".into(), secret_word)),
        trust_words(trust),
        optional(*family, family_word),
        credentials.map_or("", ObjectId::namespace),
        list(versions)
    )
}

fn address_words(address: &Address) -> String {
    format!(
        "Address {{ secure: {}, host: {}, port: {}, system: {} }}",
        address.is_secure(),
        quoted(address.host()),
        address.port(),
        optional(address.system(), quoted)
    )
}

fn trust_words(trust: &TrustWish) -> String {
    match trust {
        TrustWish::SystemRoots => "SystemRoots".to_owned(),
        TrustWish::CaBundle(secret) => format!("CaBundle({})", quoted(secret_word(secret))),
        TrustWish::Pin(fingerprint) => format!("Pin({fingerprint})"),
        TrustWish::FirstUse => "FirstUse".to_owned(),
        TrustWish::Anything => "Anything".to_owned(),
    }
}

fn family_word(family: Family) -> &'static str {
    match family {
        Family::Generic => "Generic",
        Family::DellIdrac8 => "DellIdrac8",
        Family::DellIdrac9 => "DellIdrac9",
        Family::DellIdrac10 => "DellIdrac10",
        Family::HpeIlo4 => "HpeIlo4",
        Family::HpeIlo5 => "HpeIlo5",
        Family::LenovoXcc => "LenovoXcc",
        Family::AmiMegarac => "AmiMegarac",
        Family::NvidiaDgx => "NvidiaDgx",
        Family::NvidiaOpenBmc => "NvidiaOpenBmc",
        Family::NvidiaBluefield => "NvidiaBluefield",
        Family::Supermicro => "Supermicro",
        Family::FujitsuIrmc => "FujitsuIrmc",
        Family::CiscoCimc => "CiscoCimc",
        Family::HuaweiIbmc => "HuaweiIbmc",
        Family::Nokia => "Nokia",
        Family::OpenBmc => "OpenBmc",
        Family::Sushy => "Sushy",
    }
}

/// A text between quotation marks, with what could end it escaped.
pub(crate) fn quoted(text: impl AsRef<str>) -> String {
    format!("{:?}", text.as_ref())
}

/// `None`, or `Some(…)` of what the words say.
pub(crate) fn optional<T, W: std::fmt::Display>(value: Option<T>, words: impl FnOnce(T) -> W) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("Some({})", words(value)))
}

fn list(texts: &[String]) -> String {
    let all: Vec<_> = texts.iter().map(quoted).collect();
    format!("[{}]", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the present release writes, every release reads.
    #[test]
    fn what_is_stored_of_a_connection_stays_the_same_from_release_to_release() {
        let connection = |address: &str, trust, family| Connection {
            address: Address::parse(address).unwrap(),
            system: SystemChoice::Only,
            credentials: ObjectId::named::<Secret>(Some("lab"), "bmc").into(),
            trust,
            family,
        };
        let pin = format!("sha256:{}", "ab".repeat(32)).parse().unwrap();
        let table = [
            (
                connection("https://10.0.0.1", TrustWish::SystemRoots, None),
                r#"Connection { address: Address { secure: true, host: "10.0.0.1", port: 443, system: None }, system: Only, credentials: "bmc", trust: SystemRoots, family: None } lab ["u/1"]"#,
                "8ca64dbe5008a2ec3a3f",
            ),
            (
                Connection {
                    system: SystemChoice::Named("1".into()),
                    ..connection(
                        "http://[fd00::1]:8000/redfish/v1/Systems/1",
                        TrustWish::Pin(pin),
                        Some(Family::DellIdrac9),
                    )
                },
                r#"Connection { address: Address { secure: false, host: "fd00::1", port: 8000, system: Some("/redfish/v1/Systems/1") }, system: Named("1"), credentials: "bmc", trust: Pin(sha256:abababababababababababababababababababababababababababababababab), family: Some(DellIdrac9) } lab ["u/1"]"#,
                "7dcd13d3b85961aded35",
            ),
            (
                connection("bmc.example", TrustWish::CaBundle(ObjectId::named::<Secret>(Some("lab"), "ca")), None),
                r#"Connection { address: Address { secure: true, host: "bmc.example", port: 443, system: None }, system: Only, credentials: "bmc", trust: CaBundle("ca"), family: None } lab ["u/1"]"#,
                "8e51ad3aa276317b543c",
            ),
        ];
        for (connection, words, known) in table {
            let written = inputs_words(&connection, &["u/1".to_owned()]);
            assert_eq!(written, words);
            assert_eq!(digest(&written), known);
        }
    }
}
