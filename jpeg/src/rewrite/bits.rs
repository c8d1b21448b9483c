//! Writes the bits of entropy-coded data, with a zero stuffed after each 0xff (T.81, F.1.2.3).

/// Buffers bits and writes them to the bytes of a scan.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The bits not yet written, in its low end.
    buffer: u64,
    /// Number of free bits in the buffer.
    free: u32,
}

impl<'a> BitWriter<'a> {
    /// Appends to `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, buffer: 0, free: 64 }
    }

    /// Appends the low `count` bits, at most 32; those above must be zero.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(bits) < 1 << count);
        let bits = u64::from(bits);
        if count < self.free {
            self.free -= count;
            self.buffer = self.buffer << count | bits;
        } else {
            // The buffer has at least one bit, so no shift is by 64.
            let over = count - self.free;
            self.write(self.buffer << self.free | bits >> over);
            self.buffer = bits;
            self.free = 64 - over;
        }
    }

    /// Writes 64 bits.
    #[inline]
    fn write(&mut self, word: u64) {
        const LOW: u64 = 0x0101_0101_0101_0101;
        let bytes = word.to_be_bytes();
        // Some byte has its top bit set and loses it when one is added to each: it may be 0xff.
        if word & (LOW << 7) & !word.wrapping_add(LOW) == 0 {
            self.out.extend_from_slice(&bytes);
        } else {
            for byte in bytes {
                self.byte(byte);
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        self.out.push(byte);
        if byte == 0xff {
            self.out.push(0);
        }
    }

    /// Number of bits missing to a whole byte.
    pub(crate) fn open_bits(&self) -> u32 {
        self.free % 8
    }

    /// Fills up the last byte with the low bits of `padding` and writes the buffer.
    pub(crate) fn finish_byte(&mut self, padding: u8) {
        let open = self.open_bits();
        self.put(u32::from(padding) & ((1 << open) - 1), open);
        let held = 64 - self.free;
        for byte in &(self.buffer << (self.free % 64)).to_be_bytes()[..held as usize / 8] {
            self.byte(*byte);
        }
        self.buffer = 0;
        self.free = 64;
    }

    /// Writes a marker; the byte before must be complete.
    pub(crate) fn marker(&mut self, code: u8) {
        debug_assert_eq!(self.free, 64);
        self.out.extend_from_slice(&[0xff, code]);
    }
}

#[cfg(test)]
mod tests {
    use super::BitWriter;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_come_out_in_order_and_stuffed(
            parts in prop::collection::vec((any::<u32>(), 0..=32u32, any::<bool>()), 0..200),
            padding: u8,
        ) {
            let mut text = String::new();
            let mut out = Vec::new();
            let mut writer = BitWriter::new(&mut out);
            for (bits, count, ones) in parts {
                let mask = if count == 32 { u32::MAX } else { (1 << count) - 1 };
                let bits = if ones { mask } else { bits & mask };
                writer.put(bits, count);
                if count > 0 {
                    text += &format!("{bits:0width$b}", width = count as usize);
                }
            }
            let open = (8 - text.len() % 8) % 8;
            prop_assert_eq!(writer.open_bits() as usize, open);
            writer.finish_byte(padding);
            for bit in (0..open).rev() {
                text.push(if padding >> bit & 1 == 1 { '1' } else { '0' });
            }
            let expected: Vec<u8> = text
                .as_bytes()
                .chunks(8)
                .map(|bits| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap())
                .flat_map(|byte| if byte == 0xff { vec![0xff, 0] } else { vec![byte] })
                .collect();
            prop_assert_eq!(out, expected);
        }
    }
}
