//! Reads bits of entropy-coded data, taking out stuffed bytes and stopping at markers.

/// A reader of one run of entropy-coded data. Behind its end it gives zeros and counts them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// What of `data` is not taken in yet.
    rest: &'a [u8],
    /// The next bits, the first one being the highest; only the first ones count.
    pub(super) next: u64,
    /// Its lower six bits say how many of `next` count, its other bits nothing.
    count: u32,
    /// Zeros among those and before that do not come from the data.
    made_up: u32,
}

/// Bits that there are at least after [`Bits::refill`].
pub(super) const REFILLED: u32 = 56;

/// A place in the data, between two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset of the byte that holds the next bit.
    pub(super) offset: usize,
    /// Bits of it that are already read, 0..8.
    pub(super) bits: u32,
}

impl<'a> Bits<'a> {
    /// A reader that begins at a place in `data`.
    pub(super) fn new(data: &'a [u8], place: Place) -> Self {
        let rest = data.get(place.offset..).unwrap_or_default();
        let mut bits = Self { data, rest, next: 0, count: 0, made_up: 0 };
        if place.bits > 0 {
            bits.refill();
            bits.skip(place.bits);
        }
        bits
    }

    /// Takes in data until there are at least [`REFILLED`] bits.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if let Some(bytes) = self.rest.first_chunk() {
            let bytes = u64::from_be_bytes(*bytes);
            if !has_byte_ff(bytes) {
                // The bits that come in without being counted come in again next time.
                self.next |= bytes >> (self.count & 63);
                self.rest = &self.rest[((!self.count & 63) >> 3) as usize..];
                self.count |= 56;
                return;
            }
        }
        // By value: the reader must be free to stay in registers.
        *self = self.refilled_bytewise();
    }

    #[cold]
    #[inline(never)]
    fn refilled_bytewise(mut self) -> Self {
        self.count &= 63;
        if let Some(bytes) = self.rest.first_chunk() {
            // Those before the first byte that could be stuffed or begin a marker.
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

    /// Moves on by `count` bits, which must be there.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        debug_assert!(count <= self.count(), "bits are taken in before they are read");
        self.skip_low(count);
    }

    /// Moves on by the number in the lower six bits of an entry of a table. No other bits need to
    /// be taken off it, which is time on the way from one look at the data to the next.
    #[inline(always)]
    pub(super) fn skip_low(&mut self, entry: u32) {
        self.next <<= entry & 63;
        self.count = self.count.wrapping_sub(entry);
    }

    /// Bits that are there, 63 at most.
    #[inline(always)]
    pub(super) fn count(&self) -> u32 {
        self.count & 63
    }

    /// Whether more was read than there is.
    pub(super) fn is_overrun(&self) -> bool {
        self.count() < self.made_up
    }

    /// Offset of the byte that is taken in next, about where the reader is.
    pub(super) fn offset(&self) -> usize {
        self.data.len() - self.rest.len()
    }

    /// Where the next bit is. The reader must not be overrun.
    pub(super) fn place(&self) -> Place {
        let mut offset = self.offset();
        let unread = self.count() - self.made_up;
        for _ in 0..unread.div_ceil(8) {
            let stuffed = offset >= 2 && self.data[offset - 2..offset] == [0xff, 0];
            offset -= if stuffed { 2 } else { 1 };
        }
        Place { offset, bits: unread.wrapping_neg() & 7 }
    }

    /// Passes over a restart marker, which must be the next byte and the `number`th modulo 8.
    /// False, and nothing changes, when it is not.
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

    const START: Place = Place { offset: 0, bits: 0 };

    /// Stuffs zeros behind 0xff, as a file does.
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
        fn reading_goes_on_at_a_place(
            bytes in any_bytes(), before in prop::collection::vec(0..32_u32, 0..20),
        ) {
            let data = stuffed(&bytes);
            let mut bits = Bits::new(&data, START);
            for length in before {
                take(&mut bits, length);
            }
            if !bits.is_overrun() {
                let mut again = Bits::new(&data, bits.place());
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
    fn a_restart_marker_is_passed_only_where_it_stands() {
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
