//! Validates the pieces in which a device sends the contents of slots.
//!
//! An invalid piece ends the link, and nothing is ever written outside of the device's own slots.

use crate::causes::Breach;
use meetpoint_format::slot::HEADER_BYTES;

/// Smallest offset of a piece of a payload.
const PAYLOAD_BEGIN: u64 = HEADER_BYTES as u64;

/// What to do with an accepted piece, besides writing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The batch that was in the slot is overwritten, so its header must be cleared.
    Begins,
    /// Nothing.
    Continues,
}

/// How much of every slot has arrived.
#[derive(Debug)]
pub(crate) struct SlotPieces {
    slot_bytes: u64,
    /// Where the next piece of a payload begins; 0 before the first.
    next: Vec<u64>,
}

impl SlotPieces {
    pub(crate) fn new(slots: u32, slot_bytes: u64) -> Self {
        Self { slot_bytes, next: vec![0; slots as usize] }
    }

    /// Checks a piece of a given length at `offset` of a slot.
    pub(crate) fn accept(&mut self, slot: u32, offset: u64, bytes: usize) -> Result<Piece, Breach> {
        let (slots, slot_bytes) = (self.next.len() as u32, self.slot_bytes);
        let next = self.next.get_mut(slot as usize).ok_or(Breach::NoSuchSlot { slot, slots })?;
        let range = Breach::OutsideOfSlot { offset, bytes: bytes as u64, slot_bytes };
        let end = offset.checked_add(bytes as u64);
        let end = end.filter(|end| bytes > 0 && *end <= slot_bytes).ok_or(range.clone())?;
        match offset {
            0 if bytes == HEADER_BYTES => {
                *next = 0;
                Ok(Piece::Continues)
            }
            0..PAYLOAD_BEGIN => Err(range),
            PAYLOAD_BEGIN => {
                *next = end;
                Ok(Piece::Begins)
            }
            _ if offset == *next => {
                *next = end;
                Ok(Piece::Continues)
            }
            _ => Err(Breach::OutOfOrder { slot, offset, expected: (*next).max(PAYLOAD_BEGIN) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Breach, Piece, SlotPieces};
    use proptest::prelude::*;

    #[test]
    fn a_payload_in_order_and_its_header_are_accepted() {
        let mut pieces = SlotPieces::new(2, 16384);
        assert_eq!(pieces.accept(1, 4096, 4096), Ok(Piece::Begins));
        assert_eq!(pieces.accept(0, 4096, 12288), Ok(Piece::Begins));
        assert_eq!(pieces.accept(1, 8192, 1), Ok(Piece::Continues));
        assert_eq!(pieces.accept(1, 0, 4096), Ok(Piece::Continues));
        assert_eq!(pieces.accept(1, 4096, 1), Ok(Piece::Begins), "the next batch");
    }

    #[test]
    fn pieces_out_of_order_or_out_of_the_slot_are_refused() {
        let mut pieces = SlotPieces::new(2, 16384);
        let order = |offset| Breach::OutOfOrder { slot: 0, offset, expected: 4096 };
        assert_eq!(pieces.accept(0, 8192, 1), Err(order(8192)));
        assert_eq!(pieces.accept(0, 4096, 100), Ok(Piece::Begins));
        for offset in [4097, 4195, 4197] {
            let refused = pieces.accept(0, offset, 1);
            assert_eq!(refused, Err(Breach::OutOfOrder { slot: 0, offset, expected: 4196 }));
        }
        assert_eq!(pieces.accept(2, 4096, 1), Err(Breach::NoSuchSlot { slot: 2, slots: 2 }));
        for (offset, bytes) in [
            (0, 4095),
            (0, 4097),
            (1, 4096),
            (4095, 1),
            (4096, 0),
            (4096, 12289),
            (u64::MAX, 1),
            (u64::MAX - 1, 4096),
        ] {
            let refused = pieces.accept(0, offset, bytes);
            assert!(matches!(refused, Err(Breach::OutsideOfSlot { .. })), "{offset} {bytes}");
        }
        assert_eq!(pieces.accept(0, 0, 4096), Ok(Piece::Continues));
        assert_eq!(pieces.accept(0, 4196, 1), Err(order(4196)), "the header ends a batch");
    }

    proptest! {
        #[test]
        fn no_accepted_piece_leaves_its_slot(
            pieces in prop::collection::vec((0u32..5, any::<u64>(), 0usize..20_000), 0..200)
        ) {
            let mut slots = SlotPieces::new(3, 12288);
            for (slot, offset, bytes) in pieces {
                for offset in [offset, offset % 16384, 4096, 0] {
                    if slots.accept(slot, offset, bytes).is_ok() {
                        prop_assert!(slot < 3 && offset + bytes as u64 <= 12288);
                    }
                }
            }
        }
    }
}
