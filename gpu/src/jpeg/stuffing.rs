//! Takes stuffed zeros out of entropy-coded data (T.81 F.1.2.3), so that a bit has one position.

/// Copies data up to their end or to a marker, without stuffed zeros; returns the bytes written.
/// `to` is at least as long as the data.
pub(super) fn copy_without_stuffing(mut data: &[u8], to: &mut [u8]) -> usize {
    let mut written = 0;
    loop {
        let plain = memchr::memchr(0xff, data).unwrap_or(data.len());
        to[written..written + plain].copy_from_slice(&data[..plain]);
        written += plain;
        match &data[plain..] {
            [0xff, 0, rest @ ..] => data = rest,
            _ => return written,
        }
        to[written] = 0xff;
        written += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::copy_without_stuffing;

    fn copied(data: &[u8]) -> Vec<u8> {
        let mut to = vec![7; data.len()];
        let written = copy_without_stuffing(data, &mut to);
        to.truncate(written);
        to
    }

    #[test]
    fn stuffed_zeros_are_taken_out() {
        assert_eq!(copied(&[1, 0xff, 0, 0, 0xff, 0, 0xff, 0]), [1, 0xff, 0, 0xff, 0xff]);
        assert_eq!(copied(&[]), []);
    }

    #[test]
    fn data_end_at_a_marker() {
        assert_eq!(copied(&[1, 2, 0xff, 0xd9, 3]), [1, 2]);
        assert_eq!(copied(&[1, 0xff, 0xff, 0]), [1]);
        assert_eq!(copied(&[1, 0xff]), [1]);
    }
}
