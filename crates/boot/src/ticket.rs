//! Tickets decide who may fetch what.
//!
//! A ticket is derived, never stored: any replica that has the [`Key`] makes and checks the same ones, a crash loses none, and
//! a new claim or deployment ends the old ones.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::hmac;
use ring::rand::SecureRandom;

/// The key that all tickets are derived from. Stored in one Secret; its holder may fetch everything.
#[derive(Clone)]
pub struct Key {
    text: [u8; Self::LEN],
    signing: hmac::Key,
}

/// What a ticket opens. One for the ISO must not open the configuration: BMCs log the URLs of their media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Any range of the boot image, as often as a BMC likes, while the deployment lasts.
    Iso,
    /// The bootstrap data, from one address and for a few minutes.
    Config,
    /// What the server boots from the network, while the deployment lasts.
    Boot,
    /// The registry, in which a probe tells what it has found in its server. The deployment is that probe then.
    Registry,
}

/// The holder of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Kind of the host. Empty for PhysicalHosts: their tickets were first made when there was no other kind, and stay as they are.
    pub kind: String,
    /// Namespace of the host; empty if it has none.
    pub namespace: String,
    /// Name of the host.
    pub host: String,
    /// Id of the claim on the host.
    pub claim: String,
    /// Id of the deployment.
    pub deployment: String,
}

/// 128 bits that cannot be guessed. Written as 32 lower-case hexadecimal digits.
#[derive(Clone)]
pub struct Ticket([u8; Self::LEN]);

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Another length, or not base64.
    #[error("the ticket key must be 32 bytes in base64; delete it to have a new one made, which ends all tickets")]
    Malformed,
    /// The system has no randomness to give.
    #[error("the system gave no random numbers for a ticket key")]
    NoRandomness,
}

impl Key {
    const LEN: usize = 32;

    /// A new key.
    pub fn draw(random: &dyn SecureRandom) -> Result<Self, KeyError> {
        let mut bytes = [0; Self::LEN];
        random.fill(&mut bytes).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self::new(bytes))
    }

    /// From what [`Key::to_text`] gave.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim().trim_end_matches('=');
        let bytes = STANDARD_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self::new).ok_or(KeyError::Malformed)
    }

    /// How it is stored.
    pub fn to_text(&self) -> String {
        STANDARD_NO_PAD.encode(self.text)
    }

    /// The ticket of this holder.
    pub fn ticket(&self, purpose: Purpose, holder: &Holder) -> Ticket {
        Ticket(self.sign("beskar7 ticket 1", purpose.word(), holder))
    }

    /// A secret of this holder that is no ticket, such as the seed of a key. The same each time, so it need not be stored.
    pub fn secret(&self, what: &str, holder: &Holder) -> [u8; 32] {
        self.sign("beskar7 secret 1", what, holder)
    }

    fn sign<const N: usize>(&self, domain: &str, what: &str, holder: &Holder) -> [u8; N] {
        let mut context = hmac::Context::with_key(&self.signing);
        // Lengths go first, so that no two lists of words are the same bytes.
        let kind = Some(holder.kind.as_str()).filter(|kind| !kind.is_empty());
        let words = [what, &holder.namespace, &holder.host, &holder.claim, &holder.deployment];
        for word in [domain].into_iter().chain(words).chain(kind) {
            context.update(&(word.len() as u64).to_be_bytes());
            context.update(word.as_bytes());
        }
        let mut signed = [0; N];
        signed.iter_mut().zip(context.sign().as_ref()).for_each(|(byte, signed)| *byte = *signed);
        signed
    }

    /// Whether this is the ticket of this holder. Takes the same time wherever they differ.
    pub fn admits(&self, ticket: &Ticket, purpose: Purpose, holder: &Holder) -> bool {
        // ring compares whole tags only, and ours are cut: so the tags of both are compared.
        let expected = hmac::sign(&self.signing, &self.ticket(purpose, holder).0);
        hmac::verify(&self.signing, &ticket.0, expected.as_ref()).is_ok()
    }

    fn new(bytes: [u8; Self::LEN]) -> Self {
        Self { text: bytes, signing: hmac::Key::new(hmac::HMAC_SHA256, &bytes) }
    }
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::Config => "config",
            Self::Boot => "boot",
            Self::Registry => "registry",
        }
    }
}

impl Ticket {
    const LEN: usize = 16;
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Ticket {
    type Err = NotATicket;

    fn from_str(text: &str) -> Result<Self, NotATicket> {
        let digits = text.as_bytes();
        let mut ticket = [0; Self::LEN];
        if digits.len() != 2 * Self::LEN {
            return Err(NotATicket);
        }
        for (byte, pair) in ticket.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().try_fold(0, |value, digit| Some(value << 4 | nibble(*digit)?)).ok_or(NotATicket)?;
        }
        Ok(Self(ticket))
    }
}

/// A text that cannot be a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a ticket")]
pub struct NotATicket;

/// One spelling only: two URLs for one thing confuse caches and logs.
fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Nothing: logs are read by many.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Nothing: logs are read by many.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holder(words: [&str; 4]) -> Holder {
        let [namespace, host, claim, deployment] = words.map(str::to_owned);
        Holder { kind: String::new(), namespace, host, claim, deployment }
    }

    fn key(byte: u8) -> Key {
        Key::new([byte; 32])
    }

    fn cases() -> impl Strategy<Value = (u8, Purpose, Holder)> {
        // Few letters, so that words of different cases often run into each other.
        let word = || "[ab/]{0,3}";
        let purpose = prop_oneof![Just(Purpose::Iso), Just(Purpose::Config), Just(Purpose::Registry)];
        (0_u8..3, purpose, (word(), word(), word(), word(), word())).prop_map(
            |(key, purpose, (kind, namespace, host, claim, deployment))| {
                (key, purpose, Holder { kind, namespace, host, claim, deployment })
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn a_ticket_admits_its_holder_and_nobody_else(ours in cases(), theirs in cases()) {
            let ticket = key(ours.0).ticket(ours.1, &ours.2);
            prop_assert!(key(ours.0).admits(&ticket, ours.1, &ours.2));
            prop_assert_eq!(key(theirs.0).admits(&ticket, theirs.1, &theirs.2), ours == theirs);
        }

        #[test]
        fn a_changed_bit_makes_a_ticket_worthless(case in cases(), bit in 0_usize..128) {
            let mut ticket = key(case.0).ticket(case.1, &case.2);
            ticket.0[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!key(case.0).admits(&ticket, case.1, &case.2));
        }
    }

    #[test]
    fn secrets_are_each_holders_own_and_tell_nothing_of_tickets() {
        let (one, other) = (holder(["a", "b", "c", "d"]), holder(["a", "b", "c", "e"]));
        let secret = key(1).secret("seed", &one);
        assert_eq!(secret, key(1).secret("seed", &one));
        for another in [key(2).secret("seed", &one), key(1).secret("salt", &one), key(1).secret("seed", &other)] {
            assert_ne!(secret, another);
        }
        let ticket = key(1).ticket(Purpose::Registry, &one);
        assert_ne!(ticket.0, key(1).secret("registry", &one)[..Ticket::LEN]);
    }

    #[test]
    fn the_same_key_makes_the_same_tickets_after_an_upgrade() {
        let ticket = key(7).ticket(Purpose::Iso, &holder(["default", "host-1", "claim", "deployment"]));
        assert_eq!(ticket.to_string(), "673e5d95075e5e419f0880912ccb735a");
    }

    #[test]
    fn a_key_survives_its_secret() {
        let drawn = Key::draw(&ring::rand::SystemRandom::new()).unwrap();
        let holder = holder(["a", "b", "c", "d"]);
        let ticket = drawn.ticket(Purpose::Config, &holder);
        for text in [drawn.to_text(), format!("{}=\n", drawn.to_text())] {
            assert!(Key::from_text(&text).unwrap().admits(&ticket, Purpose::Config, &holder));
        }
        for text in ["", "abc", &"a".repeat(64), "not base64 at all"] {
            assert_eq!(Key::from_text(text).unwrap_err(), KeyError::Malformed);
        }
        assert_ne!(Key::draw(&ring::rand::SystemRandom::new()).unwrap().to_text(), drawn.to_text());
    }

    #[test]
    fn a_ticket_has_one_spelling() {
        let text = key(1).ticket(Purpose::Iso, &holder(["a", "b", "c", "d"])).to_string();
        assert_eq!(text.parse::<Ticket>().unwrap().to_string(), text);
        for wrong in [&text[1..], &format!("{text}0"), &text.to_uppercase(), "", &"g".repeat(32), &"é".repeat(16)] {
            assert!(wrong.parse::<Ticket>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn debug_output_shows_neither_keys_nor_tickets() {
        let ticket = key(1).ticket(Purpose::Iso, &holder(["a", "b", "c", "d"]));
        assert_eq!(format!("{:?} {ticket:?}", key(1)), "Key Ticket");
    }
}
