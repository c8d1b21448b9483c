//! The secret of the ranks, and how both ends of a connection prove that they have it.
//!
//! It never crosses the network. Each end sends a random nonce; a proof is HMAC-SHA-256 (RFC 2104)
//! of both nonces under the secret, so a recorded proof is worthless in the next connection. Two
//! keys, one for each direction, authenticate every later message. Nothing is encrypted.
//!
//! ```text
//! rank 0  ──► rank r    magic, version, nonce of rank 0
//! rank r  ──► rank 0    magic, version, nonce of rank r, proof of rank r
//! rank 0  ──► rank r    proof of rank 0, or zeros: rank 0 has another secret
//! both                  messages, each with a code of its direction and position
//! ```
//!
//! Up to and including the proof of rank r, this is the same in every version of the messages.

use hmac::{Hmac, KeyInit, Mac};
use meetpoint_link::TokenError;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::Path;

/// Bytes of a [`Token`].
pub const TOKEN_BYTES: usize = 32;

/// Bytes of a nonce, of a proof and of the code of a message.
pub(super) const CODE_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"MPRANKS\n";

const VERSION_BYTES: usize = 4;

/// Bytes of the first message of rank 0.
pub(super) const GREETING_BYTES: usize = MAGIC.len() + VERSION_BYTES + CODE_BYTES;

/// Bytes of the answer to it.
pub(super) const ANSWER_BYTES: usize = GREETING_BYTES + CODE_BYTES;

/// In place of the proof of rank 0.
pub(super) const REFUSED: [u8; CODE_BYTES] = [0; CODE_BYTES];

type Code = [u8; CODE_BYTES];

/// The secret that ranks share: connections without it are refused.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Token(pub [u8; TOKEN_BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    /// The token that a text stands for.
    pub fn from_text(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The token in a file, as that of a device: at least 16 printable characters.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        Ok(Self::from_text(meetpoint_link::Token::read(path)?.text()))
    }

    fn code(&self, purpose: &str, parts: &[&[u8]]) -> Code {
        code(&self.0, purpose, parts).finalize().into_bytes().into()
    }
}

fn code(key: &[u8], purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).expect("any length of a key is valid");
    code.update(purpose.as_bytes());
    // All parts but the last have fixed lengths, so the text is unambiguous.
    parts.iter().for_each(|part| code.update(part));
    code
}

/// What one end of a connection says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: u32,
    nonce: Code,
}

impl Greeting {
    /// With a new nonce.
    pub(super) fn new(version: u32) -> io::Result<Self> {
        let mut nonce = [0; CODE_BYTES];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        Ok(Self { version, nonce })
    }

    pub(super) fn to_bytes(self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        let (version, nonce) = rest.split_at_mut(VERSION_BYTES);
        magic.copy_from_slice(&MAGIC);
        version.copy_from_slice(&self.version.to_le_bytes());
        nonce.copy_from_slice(&self.nonce);
        bytes
    }

    /// `None` if these are not the bytes of a greeting.
    pub(super) fn from_bytes(bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        let (version, nonce) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        Some(Self { version: u32::from_le_bytes(*version), nonce: nonce.try_into().ok()? })
    }
}

/// The greetings of both ends of a connection, and their secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange<'t> {
    pub(super) token: &'t Token,
    pub(super) rank_0: Greeting,
    pub(super) other: Greeting,
}

impl Exchange<'_> {
    fn code(&self, purpose: &str, version: u32) -> Code {
        let version = version.to_le_bytes();
        self.token.code(purpose, &[&version, &self.rank_0.nonce, &self.other.nonce])
    }

    /// The answer of the other rank, with its proof.
    pub(super) fn answer(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let (greeting, proof) = bytes.split_at_mut(GREETING_BYTES);
        greeting.copy_from_slice(&self.other.to_bytes());
        proof.copy_from_slice(&self.proof_of_other());
        bytes
    }

    pub(super) fn proof_of_other(&self) -> Code {
        self.code("meetpoint ranks: proof of another rank", self.other.version)
    }

    pub(super) fn proof_of_rank_0(&self) -> Code {
        self.code("meetpoint ranks: proof of rank 0", self.rank_0.version)
    }

    /// The keys of messages of rank 0, and of messages to it.
    pub(super) fn keys(&self) -> [MessageKey; 2] {
        ["meetpoint ranks: messages of rank 0", "meetpoint ranks: messages to rank 0"]
            .map(|purpose| MessageKey { key: self.code(purpose, self.rank_0.version), next: 0 })
    }
}

/// Whether two codes are equal, in constant time.
pub(super) fn are_equal(left: &[u8], right: &[u8]) -> bool {
    let differing = left.iter().zip(right).fold(0, |differing, (l, r)| differing | (l ^ r));
    left.len() == right.len() && differing == 0
}

/// Authenticates the messages of one direction, in order.
#[derive(Clone)]
pub(super) struct MessageKey {
    key: Code,
    /// Position of the next message.
    next: u64,
}

impl fmt::Debug for MessageKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MessageKey").field("next", &self.next).finish_non_exhaustive()
    }
}

impl MessageKey {
    fn next_code(&mut self, text: &[u8]) -> Hmac<Sha256> {
        let position = self.next.to_le_bytes();
        self.next += 1;
        code(&self.key, "", &[&position, text])
    }

    /// The code of the next message.
    pub(super) fn sign(&mut self, text: &[u8]) -> Code {
        self.next_code(text).finalize().into_bytes().into()
    }

    /// Whether this is the code of the next message, compared in constant time.
    pub(super) fn is_signed(&mut self, text: &[u8], code: &[u8]) -> bool {
        self.next_code(text).verify_slice(code).is_ok()
    }

    /// A key for tests of messages.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self { key: [7; CODE_BYTES], next: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, section 4.3 (test case 2).
    #[test]
    fn codes_are_hmac_sha_256() {
        let code = code(b"Jefe", "what do ya want ", &[b"for nothing?"]);
        let digits: String =
            code.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(digits, expected);
    }

    #[test]
    fn a_greeting_survives_its_bytes_and_others_are_refused() {
        let greeting = Greeting::new(3).unwrap();
        let mut bytes = greeting.to_bytes();
        assert_eq!(Greeting::from_bytes(&bytes), Some(greeting));
        bytes[0] ^= 1;
        assert_eq!(Greeting::from_bytes(&bytes), None);
        assert_ne!(greeting, Greeting::new(3).unwrap(), "nonces differ");
    }

    #[test]
    fn proofs_and_keys_depend_on_everything() {
        let [token, other] = ["a", "b"].map(Token::from_text);
        let [rank_0, rank_1] = [(); 2].map(|()| Greeting::new(3).unwrap());
        let exchange = Exchange { token: &token, rank_0, other: rank_1 };
        let mut seen = vec![exchange.proof_of_other(), exchange.proof_of_rank_0()];
        for changed in [
            Exchange { token: &other, ..exchange },
            Exchange { rank_0: Greeting::new(3).unwrap(), ..exchange },
            Exchange { other: Greeting::new(3).unwrap(), ..exchange },
            Exchange { other: Greeting { version: 4, ..rank_1 }, ..exchange },
        ] {
            seen.push(changed.proof_of_other());
        }
        seen.extend(exchange.keys().map(|key| key.key));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert!(!format!("{exchange:?} {:?}", exchange.keys()).contains(&format!("{:?}", token.0)));
    }

    #[test]
    fn a_code_belongs_to_one_message_at_one_position() {
        let (mut ours, mut theirs) = (MessageKey::of_test(), MessageKey::of_test());
        let first = ours.sign(b"agreed");
        assert!(theirs.is_signed(b"agreed", &first));
        assert!(!theirs.clone().is_signed(b"agreed", &first), "a repeated message");
        let second = ours.sign(b"agreed");
        assert!(!theirs.clone().is_signed(b"agreeD", &second), "a changed message");
        assert!(!theirs.clone().is_signed(b"agreed", &second[..16]), "a short code");
        assert!(theirs.is_signed(b"agreed", &second));
    }
}
