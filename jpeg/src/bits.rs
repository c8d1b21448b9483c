//! Reads bits of entropy-coded data, taking out stuffed bytes and stopping at markers.

/// A reader of one run of entropy-coded data. Past the end it reads zeros and counts them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The part of `data` that is not loaded yet.
    rest: &'a [u8],
    /// The next bits, the first one being the highest; only the first ones are valid.
    pub(super) next: u64,
    /// Its lower six bits are the number of valid bits in `next`; the others are meaningless.
    count: u32,
    /// Number of zero bits read or loaded past the end of the data.
    made_up: u32,
}

/// Minimum number of bits available after [`Bits::refill`].
pub(super) const REFILLED: u32 = 56;

/// The position of a bit in the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitPosition {
    /// Offset of the byte that holds the next bit.
    pub(super) offset: usize,
    /// Bits of it that are already read, 0..8.
    pub(super) bits: u32,
}

impl<'a> Bits<'a> {
    /// A reader that begins at a position in `data`.
    pub(super) fn new(data: &'a [u8], position: BitPosition) -> Self {
        let rest = data.get(position.offset..).unwrap_or_default();
        let mut bits = Self { data, rest, next: 0, count: 0, made_up: 0 };
        if position.bits > 0 {
            bits.refill();
            bits.skip(position.bits);
        }
        bits
    }

    /// Loads data until at least [`REFILLED`] bits are available.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if let Some(bytes) = self.rest.first_chunk() {
            let bytes = u64::from_be_bytes(*bytes);
            if !has_byte_ff(bytes) {
                // Bits that are loaded but not counted are loaded again next time.
                self.next |= bytes >> (self.count & 63);
                self.rest = &self.rest[((!self.count & 63) >> 3) as usize..];
                self.count |= 56;
                return;
            }
        }
        // By value, so that the compiler can keep the reader in registers.
        *self = self.refilled_bytewise();
    }

    #[cold]
    #[inline(never)]
    fn refilled_bytewise(mut self) -> Self {
        self.count &= 63;
        if let Some(bytes) = self.rest.first_chunk() {
            // The bytes before the first one that could be stuffed or begin a marker.
            let bytes = u64::from_be_bytes(*bytes);
            let plain = bytes_before_ff(bytes).min((63 - self.count) / 8);
            let kept = bytes & !(u64::MAX >> (8 * plain));
            self.next |= kept >> self.count;
            self.count += 8 * plain;
            self.rest = &self.rest[plain as usize..];
        }
        while self.count < REFILLED {
            let byte = match self.rest {
                [0xff, ..] => {
                    let fill = self.rest.iter().take_while(|byte| **byte == 0xff).count();
                    match &self.rest[fill..] {
                        [0, rest @ ..] => {
                            self.rest = rest;
                            0xff
                        }
                        _ => self.make_up(),
                    }
                }
                [byte, rest @ ..] => {
                    self.rest = rest;
                    *byte
                }
                [] => self.make_up(),
            };
            self.next |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    fn make_up(&mut self) -> u8 {
        self.made_up = self.made_up.saturating_add(8);
        0
    }

    /// Advances by `count` bits, which must be available.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        debug_assert!(count <= self.count(), "bits are loaded before they are read");
        self.skip_low(count);
    }

    /// Advances by the number in the lower six bits of a table entry. The other bits need no
    /// masking, which would lengthen the dependency from one lookup to the next.
    #[inline(always)]
    pub(super) fn skip_low(&mut self, entry: u32) {
        self.next <<= entry & 63;
        self.count = self.count.wrapping_sub(entry);
    }

    /// Number of available bits, at most 63.
    #[inline(always)]
    pub(super) fn count(&self) -> u32 {
        self.count & 63
    }

    /// Whether more bits were read than the data have.
    pub(super) fn is_overrun(&self) -> bool {
        self.count() < self.made_up
    }

    /// Offset of the byte that is loaded next, near the position of the reader.
    pub(super) fn offset(&self) -> usize {
        self.data.len() - self.rest.len()
    }

    /// The position of the next bit. The reader must not be overrun.
    pub(super) fn position(&self) -> BitPosition {
        let mut offset = self.offset();
        let unread = self.count() - self.made_up;
        for _ in 0..unread.div_ceil(8) {
            let stuffed = offset >= 2 && self.data[offset - 2..offset] == [0xff, 0];
            offset -= if stuffed { 2 } else { 1 };
        }
        BitPosition { offset, bits: unread.wrapping_neg() & 7 }
    }

    /// Skips a restart marker, which must come next and have number `number` modulo 8. Otherwise
    /// returns false and changes nothing.
    pub(super) fn pass_restart(&mut self, number: u32) -> bool {
        if self.is_overrun() || self.count() - self.made_up >= 8 {
            return false;
        }
        let fill = self.rest.iter().take_while(|byte| **byte == 0xff).count();
        if fill == 0 || self.rest.get(fill) != Some(&(0xd0 | (number & 7) as u8)) {
            return false;
        }
        *self = Self { rest: &self.rest[fill + 1..], next: 0, count: 0, made_up: 0, ..*self };
        true
    }
}

/// Whether one of the eight bytes is 0xff.
#[inline(always)]
fn has_byte_ff(bytes: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    // A byte of `!bytes` that is zero borrows from its highest bit.
    (!bytes).wrapping_sub(ONES) & bytes & (ONES << 7) != 0
}

/// Bytes before the first 0xff, the first byte being the highest; there are less than eight.
#[inline(always)]
fn bytes_before_ff(bytes: u64) -> u32 {
    // The top bit of each byte that is 0xff: its lower bits carry, and its own is set.
    const LOW: u64 = u64::MAX / 255 * 0x7f;
    let found = ((bytes & LOW) + u64::MAX / 255) & bytes & !LOW;
    (found.leading_zeros() / 8).min(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: BitPosition = BitPosition { offset: 0, bits: 0 };

    /// Stuffs zeros after 0xff, as a file does.
    fn stuffed(bytes: &[u8]) -> Vec<u8> {
        bytes
            .iter()
            .flat_map(|byte| [*byte, 0].into_iter().take(1 + usize::from(*byte == 0xff)))
            .collect()
    }

    fn take(bits: &mut Bits<'_>, count: u32) -> u64 {
        bits.refill();
        let value = if count == 0 { 0 } else { bits.next >> (64 - count) };
        bits.skip(count);
        value
    }

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0xff), Just(0), any::<u8>()], 1..60)
    }

    proptest! {
        #[test]
        fn bits_are_those_of_the_bytes(
            bytes in any_bytes(), lengths in prop::collection::vec(0..32_u32, 1..80),
        ) {
            let data = stuffed(&bytes);
            let mut bits = Bits::new(&data, START);
            let mut at = 0;
            for length in lengths {
                let expected = (at..at + length as usize).fold(0, |value, bit| {
                    let byte = bytes.get(bit / 8).copied().unwrap_or(0);
                    value << 1 | u64::from(byte >> (7 - bit % 8) & 1)
                });
                prop_assert_eq!(take(&mut bits, length), expected);
                at += length as usize;
                prop_assert_eq!(bits.is_overrun(), at > bytes.len() * 8);
            }
        }

        #[test]
        fn reading_resumes_at_a_position(
            bytes in any_bytes(), before in prop::collection::vec(0..32_u32, 0..20),
        ) {
            let data = stuffed(&bytes);
            let mut bits = Bits::new(&data, START);
            for length in before {
                take(&mut bits, length);
            }
            if !bits.is_overrun() {
                let mut again = Bits::new(&data, bits.position());
                for _ in 0..80 {
                    prop_assert_eq!(take(&mut again, 7), take(&mut bits, 7));
                }
                prop_assert_eq!(again.is_overrun(), bits.is_overrun());
            }
        }
    }

    #[test]
    fn nothing_is_read_beyond_a_marker() {
        let mut bits = Bits::new(&[0x12, 0xff, 0xd9, 0x34], START);
        assert_eq!(take(&mut bits, 8), 0x12);
        assert!(!bits.is_overrun());
        assert_eq!(take(&mut bits, 16), 0);
        assert!(bits.is_overrun());
    }

    #[test]
    fn a_restart_marker_is_skipped_only_at_its_position() {
        let data = [0x12, 0x7f, 0xff, 0xff, 0xd3, 0x56];
        let mut bits = Bits::new(&data, START);
        assert!(!bits.pass_restart(3), "a whole byte is left");
        take(&mut bits, 8);
        assert!(!bits.pass_restart(3), "a whole byte is left");
        take(&mut bits, 1);
        assert!(!bits.pass_restart(2), "it has another number");
        assert!(bits.pass_restart(11));
        assert_eq!(take(&mut bits, 8), 0x56);
        let mut bits = Bits::new(&data, START);
        take(&mut bits, 20);
        assert!(!bits.pass_restart(3), "more was read than there is");
    }
}
