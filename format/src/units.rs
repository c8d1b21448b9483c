//! Quantities with units, in jobs, scenarios and on command lines: `512MiB`, `500MB/s`,
//! `100us`.
//!
//! A bare number is refused, since its unit is ambiguous.

use std::time::Duration;

/// Names and factors of bytes; a name that ends in another precedes it.
pub const BYTES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Names and factors of time, in nanoseconds.
pub const TIMES: [(&str, u64); 7] = [
    ("min", 60_000_000_000),
    ("ns", 1),
    ("µs", 1_000),
    ("μs", 1_000),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Bytes from `512MiB`, `1.5 GB`, `4096B`; `None` for anything else, including a bare number.
pub fn parse_bytes(text: &str) -> Option<u64> {
    parse(text, &BYTES)
}

/// Bytes a second from `500MB/s`.
pub fn parse_bandwidth(text: &str) -> Option<u64> {
    parse(text.trim().strip_suffix("/s")?, &BYTES)
}

/// Time from `100us`, `20ms`, `1.5s`, `0s`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse(text, &TIMES).map(Duration::from_nanos)
}

/// A number and one of `units` ([`BYTES`], [`TIMES`]), in the smallest unit; `None` for anything
/// else.
pub fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), *factor)))?;
    // `f64` would also accept "inf", "1e9" and "-0".
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let scaled = (number.parse::<f64>().ok()? * factor as f64).round();
    // Beyond 2^53, fractions are not represented any more.
    (scaled < (1_u64 << 53) as f64).then_some(scaled as u64)
}

/// Bytes in the largest binary unit with a short number.
pub fn show_bytes(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in units {
        if bytes >= 1 << shift {
            let number = bytes as f64 / (1_u64 << shift) as f64;
            let digits = if bytes.is_multiple_of(1 << shift) { 0 } else { 1 };
            return format!("{number:.digits$} {unit}");
        }
    }
    format!("{bytes} bytes")
}

/// As [`show_bytes`], rounded up, for messages such as "set it to at least …".
pub fn show_bytes_at_least(bytes: u64) -> String {
    // A tenth of the unit in which it is shown; exact if that is a whole number.
    let shift = [40, 30, 20, 10].into_iter().find(|shift| bytes >= 1 << shift);
    let Some(unit) = shift.map(|shift| 1_u64 << shift).filter(|unit| !bytes.is_multiple_of(*unit))
    else {
        return show_bytes(bytes);
    };
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
    let name = show_bytes(unit);
    let name = name.trim_start_matches("1 ");
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sufficient_numbers_are_never_rounded_down() {
        assert_eq!(show_bytes_at_least(96 << 10), "96 KiB");
        assert_eq!(show_bytes_at_least(7_270_400), "7.0 MiB");
        assert_eq!(show_bytes_at_least(1000), "1000 bytes");
        for bytes in [1025, 1_238_999, (3 << 30) / 2, (7 << 30) + 1] {
            let shown = show_bytes_at_least(bytes);
            assert!(parse_bytes(&shown).unwrap() >= bytes, "{bytes}: {shown}");
        }
    }

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("512MiB"), Some(512 << 20));
        assert_eq!(parse_bytes(" 1.5 GB "), Some(1_500_000_000));
        assert_eq!(parse_bytes("4096B"), Some(4096));
        assert_eq!(parse_bandwidth("500MB/s"), Some(500_000_000));
        assert_eq!(parse_duration("100us"), Some(Duration::from_micros(100)));
        assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_duration("0s"), Some(Duration::ZERO));
        assert_eq!(parse_duration("3µs"), Some(Duration::from_micros(3)));
        assert_eq!(parse_duration("2 min"), Some(Duration::from_secs(120)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "512", "MiB", "-1MB", "infMB", "1e9B", "1..5MB", "12mb", "99999999TB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        assert_eq!(parse_bandwidth("500MB"), None);
        for text in ["5", "5m", "5 minutes", "s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_shown_short() {
        assert_eq!(show_bytes(512 << 20), "512 MiB");
        assert_eq!(show_bytes((3 << 30) / 2), "1.5 GiB");
        assert_eq!(show_bytes(900 << 40), "900 TiB");
        assert_eq!(show_bytes(1000), "1000 bytes");
    }
}
