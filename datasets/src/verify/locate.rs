//! Finds the single changed byte from a CRC-32C mismatch.
//!
//! A CRC is linear: the XOR of the checksums of two inputs of equal length is the checksum (without
//! its initial and final inversion) of the XOR of the inputs. If that is one byte followed by
//! zeros, undoing the zeros one by one leads to the byte's table entry.

/// The reflected Castagnoli polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// A byte that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangedByte {
    /// Its index.
    pub(crate) index: usize,
    /// The bits that changed.
    pub(crate) xor: u8,
}

/// Finds the one byte of `length` that explains two different checksums; `None` if more than one
/// byte changed, or if several positions explain them (which becomes likely beyond some megabytes).
pub(crate) fn changed_byte(length: usize, got: u32, expected: u32) -> Option<ChangedByte> {
    let table = table();
    // The high byte of every entry is unique, and so identifies it.
    let mut by_high_byte = [0_u8; 256];
    for (index, entry) in (0_u8..=255).zip(table) {
        by_high_byte[(entry >> 24) as usize] = index;
    }
    let mut rest = got ^ expected;
    if rest == 0 {
        return None;
    }
    let mut found = None;
    for index in (0..length).rev() {
        let byte = by_high_byte[(rest >> 24) as usize];
        let entry = table[byte as usize];
        if rest == entry {
            if found.is_some() {
                return None;
            }
            found = Some(ChangedByte { index, xor: byte });
        }
        // Undo one zero byte: `rest = (before >> 8) ^ table[before & 0xff]`.
        rest = ((rest ^ entry) << 8) | u32::from(byte);
    }
    found
}

fn table() -> [u32; 256] {
    let mut table = [0; 256];
    for (byte, entry) in (0_u32..).zip(&mut table) {
        *entry = (0..8).fold(
            byte,
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 }
            },
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::checksum::crc32c;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_changed_byte_is_found(
            text in proptest::collection::vec(any::<u8>(), 1..2000), at: usize, xor in 1_u8..,
        ) {
            let index = at % text.len();
            let mut changed = text.clone();
            changed[index] ^= xor;
            let found = changed_byte(text.len(), crc32c(&changed), crc32c(&text));
            prop_assert_eq!(found, Some(ChangedByte { index, xor }));
        }
    }

    #[test]
    fn two_changed_bytes_are_not_blamed_on_one() {
        let text = [7_u8; 500];
        for second in 1..500 {
            let mut changed = text;
            changed[0] ^= 1;
            changed[second] ^= 0x80;
            assert_eq!(changed_byte(500, crc32c(&changed), crc32c(&text)), None, "{second}");
        }
    }

    #[test]
    fn equal_checksums_indicate_no_changed_byte() {
        assert_eq!(changed_byte(100, 5, 5), None);
    }
}
