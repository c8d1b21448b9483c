//! How a spool's file descriptor reaches the device: a separate connection on the same socket.
//!
//! A connection whose first byte is that of [`FD_CHANNEL_MAGIC`] is not HTTP/2 (whose preface
//! starts with `P`). The host sends one [`FdOffer`] of 16 bytes with the descriptor attached as
//! `SCM_RIGHTS`; the device answers with the same 16 bytes once it holds the descriptor, or with
//! [`FD_CHANNEL_BUSY`] if it holds too many already.

/// First eight bytes of an offer.
pub const FD_CHANNEL_MAGIC: [u8; 8] = *b"mpspool1";

/// Answer of a device that already holds the maximum number of descriptors without a `Load`.
pub const FD_CHANNEL_BUSY: [u8; 16] = *b"mpbusy_1\0\0\0\0\0\0\0\0";

/// Announces one file descriptor under a token that `Load` then names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdOffer {
    /// Chosen by the host at random; unique among its spools.
    pub token: u64,
}

impl FdOffer {
    /// The 16 bytes on the wire: magic, then the token in little-endian order.
    pub fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&FD_CHANNEL_MAGIC);
        bytes[8..].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }

    /// Parses an offer; `None` if the magic differs.
    pub fn decode(bytes: &[u8; 16]) -> Option<Self> {
        let (magic, token) = bytes.split_first_chunk::<8>()?;
        let token = u64::from_le_bytes(token.try_into().ok()?);
        (*magic == FD_CHANNEL_MAGIC).then_some(Self { token })
    }
}

#[cfg(test)]
mod tests {
    use super::{FD_CHANNEL_BUSY, FD_CHANNEL_MAGIC, FdOffer};

    #[test]
    fn an_offer_is_its_magic_and_its_token_in_little_endian_order() {
        let offer = FdOffer { token: 0x0102_0304_0506_0708 };
        assert_eq!(&offer.encode(), b"mpspool1\x08\x07\x06\x05\x04\x03\x02\x01");
        for token in [0, 1, u64::MAX, offer.token] {
            assert_eq!(FdOffer::decode(&FdOffer { token }.encode()), Some(FdOffer { token }));
        }
    }

    #[test]
    fn busy_is_the_echo_of_no_offer() {
        assert_eq!(FdOffer::decode(&FD_CHANNEL_BUSY), None);
    }

    #[test]
    fn a_flipped_bit_of_the_magic_is_no_offer() {
        for bit in 0..64 {
            let mut bytes = FdOffer { token: 7 }.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FdOffer::decode(&bytes), None, "bit {bit}");
        }
    }

    /// The first byte of a connection determines its protocol (RFC 9113 section 3.4 has the
    /// preface).
    #[test]
    fn the_first_byte_distinguishes_an_offer_from_http2() {
        assert_ne!(FD_CHANNEL_MAGIC[0], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[0]);
    }
}
