//! CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of samples and slots; checksums as
//! text.

use crc_fast::{CrcAlgorithm, Digest};
use std::fmt::Write;

/// Bytes in hexadecimal, two lower-case digits each.
///
/// ```
/// assert_eq!(meetpoint_format::checksum::hexadecimal(&[0x0a, 0xff]), "0aff");
/// ```
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string never fails");
        text
    })
}

/// CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_of([bytes])
}

/// CRC-32C of byte strings, one after another.
pub fn crc32c_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut crc = Crc32c::default();
    parts.into_iter().for_each(|part| crc.update(part));
    crc.finish()
}

/// CRC-32C of bytes that arrive piece by piece.
#[derive(Debug)]
pub struct Crc32c(Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Crc32c {
    /// Adds bytes at the end.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes.
    pub fn finish(self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a CRC-32 fits 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::{Crc32c, crc32c, crc32c_of};

    /// RFC 3720 appendix B.4 and the check value of the CRC catalogue.
    #[test]
    fn crc32c_equals_the_published_vectors() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0u8; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xffu8; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c_of([&b"1234"[..], b"", b"56789"]), crc32c(b"123456789"));
        let mut pieces = Crc32c::default();
        b"123456789".chunks(4).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish(), 0xe306_9283);
    }
}
