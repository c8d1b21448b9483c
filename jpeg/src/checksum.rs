//! CRC-32C (Castagnoli, RFC 3720 appendix B.4), which ties entry points to their file.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(bytes);
    u32::try_from(digest.finalize()).expect("a CRC-32 fits 32 bits")
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// RFC 3720 appendix B.4 and the check value of the CRC catalogue.
    #[test]
    fn crc32c_equals_the_published_vectors() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0u8; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b""), 0);
    }
}
