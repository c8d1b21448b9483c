//! Removes stuffed zeros from entropy-coded data (T.81 F.1.2.3), so that each bit has one position.

use meetpoint_jpeg::{Segment, SegmentEnd};

/// Bytes that the copy of a segment takes at most behind those that the segment can read.
const SEGMENT_EXTRA: usize = 1;

/// What must follow a segment, as in `cuda/jpeg.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopiedEnd {
    /// Anything.
    Any = 0,
    /// An entry point at the last bit.
    Entry = 1,
    /// A restart marker, less than a byte behind.
    Marker = 2,
    /// The boundary lies where no decoding arrives.
    Nowhere = 3,
}

/// A segment in data without stuffed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopiedSegment {
    pub(super) bit: u32,
    pub(super) bit_end: u32,
    pub(super) end: CopiedEnd,
    /// DC values at an entry point behind it.
    pub(super) end_dc: [i16; 3],
}

/// Maximum bytes that the copy of a segment takes.
pub(super) fn copy_bytes_max(segment: &Segment) -> usize {
    segment.offset_end.saturating_sub(segment.offset).saturating_add(SEGMENT_EXTRA)
}

/// Copies the data of a segment of a file without stuffed bytes, behind `written` bytes, which it
/// increases. A byte that two segments share is copied twice.
pub(super) fn copy_segment(
    file: &[u8],
    segment: &Segment,
    to: &mut [u8],
    written: &mut usize,
) -> CopiedSegment {
    let bit = *written as u32 * 8 + u32::from(segment.bits);
    // Appends what lies before an offset; returns what was not copied.
    let mut copy_until = |end: usize| {
        let data = file.get(segment.offset..end).unwrap_or_default();
        let (bytes, read) = copy_without_stuffing(data, &mut to[*written..]);
        *written += bytes;
        &data[read..]
    };
    let (is_right, end, end_dc, end_bits) = match segment.end {
        SegmentEnd::Any => {
            copy_until(segment.offset_end);
            (true, CopiedEnd::Any, [0; 3], 0)
        }
        SegmentEnd::EntryPoint { offset, bits, dc } => {
            let rest = copy_until(offset);
            let is_right = rest.is_empty() && offset >= segment.offset;
            (is_right, CopiedEnd::Entry, dc, bits)
        }
        SegmentEnd::RestartMarker { offset } => {
            let rest = copy_until(offset);
            // Fill bytes may precede a marker.
            let is_right = rest.iter().all(|byte| *byte == 0xff) && offset >= segment.offset;
            (is_right, CopiedEnd::Marker, [0; 3], 0)
        }
    };
    let mut bit_end = *written as u32 * 8;
    let mut end = if is_right { end } else { CopiedEnd::Nowhere };
    if let (SegmentEnd::EntryPoint { offset, .. }, 1..) = (segment.end, end_bits) {
        // The rest of the byte belongs to the next segment.
        match file.get(offset..) {
            Some([0xff, 0, ..]) => to[*written] = 0xff,
            Some([byte, ..]) if *byte != 0xff => to[*written] = *byte,
            _ => end = CopiedEnd::Nowhere,
        }
        *written += 1;
        bit_end += u32::from(end_bits);
    }
    CopiedSegment { bit, bit_end, end, end_dc }
}

/// Copies data up to their end or to a marker, without stuffed zeros; returns the bytes written
/// and read. `to` is at least as long as the data.
fn copy_without_stuffing(data: &[u8], to: &mut [u8]) -> (usize, usize) {
    let (mut written, mut rest) = (0, data);
    loop {
        let plain = memchr::memchr(0xff, rest).unwrap_or(rest.len());
        to[written..written + plain].copy_from_slice(&rest[..plain]);
        written += plain;
        match &rest[plain..] {
            [0xff, 0, behind @ ..] => rest = behind,
            behind => return (written, data.len() - behind.len()),
        }
        to[written] = 0xff;
        written += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{CopiedEnd, CopiedSegment, copy_bytes_max, copy_segment, copy_without_stuffing};
    use meetpoint_jpeg::{Segment, SegmentEnd};

    fn copied(data: &[u8]) -> (Vec<u8>, usize) {
        let mut to = vec![7; data.len()];
        let (written, read) = copy_without_stuffing(data, &mut to);
        to.truncate(written);
        (to, read)
    }

    #[test]
    fn stuffed_zeros_are_taken_out() {
        let (bytes, read) = copied(&[1, 0xff, 0, 0, 0xff, 0, 0xff, 0]);
        assert_eq!((&bytes[..], read), (&[1, 0xff, 0, 0xff, 0xff][..], 8));
        assert_eq!(copied(&[]), (vec![], 0));
    }

    #[test]
    fn data_end_at_a_marker() {
        assert_eq!(copied(&[1, 2, 0xff, 0xd9, 3]), (vec![1, 2], 2));
        assert_eq!(copied(&[1, 0xff, 0xff, 0]), (vec![1], 1));
        assert_eq!(copied(&[1, 0xff]), (vec![1], 1));
    }

    fn copied_segment(file: &[u8], offset_end: usize, end: SegmentEnd) -> (CopiedSegment, Vec<u8>) {
        let (mcu, mcu_end) = (0, 1);
        let segment = Segment { offset: 1, bits: 3, dc: [0; 3], mcu, mcu_end, offset_end, end };
        let mut to = vec![7; 2 + copy_bytes_max(&segment)];
        let mut written = 2;
        let copied = copy_segment(file, &segment, &mut to, &mut written);
        (copied, to[2..written].to_vec())
    }

    #[test]
    fn a_byte_that_an_entry_point_divides_belongs_to_both_segments() {
        let end = |offset, bits| SegmentEnd::EntryPoint { offset, bits, dc: [4, 5, 6] };
        let file = [9, 1, 0xff, 0, 2, 0xff, 0, 3, 0xff, 0xd9];
        let (segment, bytes) = copied_segment(&file, 7, end(5, 2));
        let (bit, bit_end, end_dc) = (19, 5 * 8 + 2, [4, 5, 6]);
        assert_eq!(segment, CopiedSegment { bit, bit_end, end: CopiedEnd::Entry, end_dc });
        assert_eq!(bytes, [1, 0xff, 2, 0xff]);
        let (segment, bytes) = copied_segment(&file, 6, end(4, 0));
        assert_eq!((segment.bit_end, segment.end), (4 * 8, CopiedEnd::Entry));
        assert_eq!(bytes, [1, 0xff]);
        // Between a byte and its stuffed zero, in a marker, behind a marker.
        for (offset, bits) in [(3, 1), (8, 1), (10, 0)] {
            let (segment, _) = copied_segment(&file, 10, end(offset, bits));
            assert_eq!(segment.end, CopiedEnd::Nowhere, "{offset}");
        }
    }

    #[test]
    fn fill_bytes_may_precede_a_restart_marker() {
        let file = [9, 1, 2, 0xff, 0xff, 0xd0, 0xff, 0xd1];
        for offset in [3, 4] {
            let end = SegmentEnd::RestartMarker { offset };
            let (segment, bytes) = copied_segment(&file, offset + 2, end);
            assert_eq!((segment.bit_end, segment.end), (4 * 8, CopiedEnd::Marker));
            assert_eq!(bytes, [1, 2]);
        }
        let (segment, _) = copied_segment(&file, 8, SegmentEnd::RestartMarker { offset: 6 });
        assert_eq!(segment.end, CopiedEnd::Nowhere);
    }
}
