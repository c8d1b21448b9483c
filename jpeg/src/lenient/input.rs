//! The bytes of a file, and libjpeg's search for markers in arbitrary bytes.
//!
//! Past the last byte the input is an endless sequence of end markers, as in libjpeg's data sources
//! (jdatasrc.c, `fill_mem_input_buffer`).

use super::super::markers::code::{EOI, RST0, RST7, SOF0};

/// A position in the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a> {
    file: &'a [u8],
    at: usize,
    /// A marker that was read and not yet handled.
    pub(super) unread: Option<u8>,
}

impl<'a> Input<'a> {
    /// The beginning of a file.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, at: 0, unread: None }
    }

    /// Offset of the next byte, no further than the end of the file.
    pub(super) fn offset(&self) -> usize {
        self.at.min(self.file.len())
    }

    /// Bytes of the file that are left.
    pub(super) fn left(&self) -> usize {
        self.file.len().saturating_sub(self.at)
    }

    /// The next `count` bytes of the file, or the remaining ones if there are fewer.
    pub(super) fn ahead(&self, count: usize) -> &'a [u8] {
        let rest = self.file.get(self.at..).unwrap_or_default();
        &rest[..count.min(rest.len())]
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn byte(&mut self) -> u8 {
        let at = self.at;
        self.at += 1;
        match self.file.get(at) {
            Some(byte) => *byte,
            None if (at - self.file.len()).is_multiple_of(2) => 0xff,
            None => EOI,
        }
    }

    /// Reads a big-endian 16-bit number.
    pub(super) fn pair(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Skips bytes.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Goes back to the byte before.
    pub(super) fn step_back(&mut self) {
        self.at -= 1;
    }

    /// Skips everything up to the next marker and the marker itself, which is then unread.
    pub(super) fn next_marker(&mut self) -> u8 {
        loop {
            if let Some(rest) = self.file.get(self.at..) {
                self.at += memchr::memchr(0xff, rest).unwrap_or(rest.len());
            }
            while self.byte() != 0xff {}
            let mut code = self.byte();
            while code == 0xff {
                code = self.byte();
            }
            if code != 0 {
                self.unread = Some(code);
                return code;
            }
        }
    }

    /// Skips restart marker number `wanted`, 0..8, or resynchronises if that is not the next marker
    /// (jdmarker.c, `jpeg_resync_to_restart`). A marker that stays unread means an interval without
    /// data.
    pub(super) fn pass_restart(&mut self, wanted: u8) {
        let mut marker = self.unread.unwrap_or_else(|| self.next_marker());
        loop {
            if marker >= SOF0 && !(RST0..=RST7).contains(&marker) {
                return;
            }
            // How many markers this one is ahead of that which should be here.
            let ahead = marker.wrapping_sub(RST0).wrapping_sub(wanted) & 7;
            match ahead {
                // One that was seen before, or an invalid marker.
                _ if marker < SOF0 => marker = self.next_marker(),
                6 | 7 => marker = self.next_marker(),
                // One or two are lost.
                1 | 2 => return,
                // The right one, or one that is too far away to be used.
                _ => {
                    self.unread = None;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_continues_with_end_markers() {
        let mut input = Input::new(&[1]);
        assert_eq!([0; 5].map(|_| input.byte()), [1, 0xff, EOI, 0xff, EOI]);
        let mut input = Input::new(&[1, 2]);
        input.skip(3);
        assert_eq!(input.next_marker(), EOI);
        assert_eq!((input.offset(), input.left()), (2, 0));
    }

    #[test]
    fn a_marker_is_found_after_other_bytes() {
        let mut input = Input::new(&[7, 0xff, 0, 0xff, 0xff, 0xd3, 9]);
        assert_eq!((input.next_marker(), input.unread, input.byte()), (0xd3, Some(0xd3), 9));
    }

    #[test]
    fn restart_markers_out_of_order_are_skipped_or_stay_unread() {
        // Wanted marker, bytes, remaining bytes, and the next byte.
        let cases: [(u8, &[u8], Option<u8>, u8); 8] = [
            (3, &[0xff, 0xd3, 9], None, 9),
            (3, &[0xff, 0xd4, 9], Some(0xd4), 9),
            (7, &[0xff, 0xd1, 9], Some(0xd1), 9),
            (3, &[0xff, 0xd7, 9], None, 9),
            (3, &[0xff, 0xd2, 9, 0xff, 0xd3, 8], None, 8),
            (0, &[0xff, 0xd6, 9, 0xff, 0xd7, 8, 0xff, 0xd0, 7], None, 7),
            (3, &[0xff, 0x05, 9, 0xff, 0xda, 8], Some(0xda), 8),
            (3, &[9], Some(EOI), 0xff),
        ];
        for (wanted, bytes, unread, next) in cases {
            let mut input = Input::new(bytes);
            input.pass_restart(wanted);
            assert_eq!((input.unread, input.byte()), (unread, next), "{wanted} {bytes:x?}");
        }
    }
}
