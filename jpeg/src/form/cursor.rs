//! Reads the stored bytes in order, and reports the offset of a premature end.

use crate::form_error::{FormError, damaged};

/// A position in the stored bytes.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// The start of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], FormError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| damaged(self.bytes.len(), "it ends too early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, FormError> {
        self.take(1).map(|byte| byte[0])
    }

    /// The next two bytes as a little-endian number.
    pub(super) fn u16(&mut self) -> Result<u16, FormError> {
        self.take(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// A number in LEB128: seven bits a byte from the lowest on, the top bit says that more follow.
    pub(super) fn number(&mut self) -> Result<u32, FormError> {
        let start = self.at;
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number)
                    .map_err(|_| damaged(start, "a number has more than 32 bits"));
            }
        }
        Err(damaged(start, "a number has more than 32 bits"))
    }
}

/// Appends a number in LEB128.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
