//! Quantities as people read and write them: bytes, rates and times, with their units.

use meetpoint_format::units;
use std::time::Duration;

/// `1.4 GiB`, `512 MiB`, `17 B`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in UNITS {
        // What would print as 1024 of a unit belongs to the next one.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", significant(value))
}

/// `1 sample`, `12 samples`, `2 batches`.
pub(crate) fn count(count: u64, unit: &str) -> String {
    let ending = match unit {
        _ if count == 1 => "",
        _ if unit.ends_with("tch") => "es",
        _ => "s",
    };
    format!("{count} {unit}{ending}")
}

/// `500 MB/s`, in powers of 1000 as drives are sold.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let fitting = units.into_iter().find(|(_, factor)| bytes_per_second >= factor * 0.9995);
    let (unit, factor) = fitting.unwrap_or(("B/s", 1.0));
    format!("{} {unit}", significant(bytes_per_second / factor))
}

/// `1.52 s`, `20.3 ms`, `140 µs`, `2 min 05 s`.
pub(crate) fn seconds(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 119.5 {
        let whole = value.round() as i64;
        return format!("{} min {:02} s", whole / 60, whole % 60);
    }
    let (scale, unit) = match magnitude {
        m if m == 0.0 || m >= 0.9995 => (1.0, "s"),
        m if m >= 0.9995e-3 => (1e3, "ms"),
        m if m >= 0.9995e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", significant(value * scale))
}

/// Nanoseconds as [`seconds`].
pub(crate) fn nanoseconds(value: u64) -> String {
    seconds(value as f64 / 1e9)
}

/// Three significant digits, no exponent: `0.12`, `4.31`, `20.3`, `512`, `12800`.
pub(crate) fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// `+3.1 %`, `-0.4 %`.
pub(crate) fn signed_percent(ratio: f64) -> String {
    format!("{:+.1} %", ratio * 100.0)
}

/// Reads `500MB/s`, `1.5GiB/s`, `2000000B/s`: bytes in a second, at least 1.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is no rate; write 500MB/s, 1.5GiB/s or the like");
    units::parse_bandwidth(text).filter(|rate| *rate > 0).ok_or_else(wrong)
}

/// Reads `512MiB`, `2GB`, `4096B`: bytes, at least 1.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let problem = if is_bare && !text.is_empty() { "has no unit" } else { "is no size" };
    let wrong = || format!("\"{text}\" {problem}; write 512MiB, 2GB, 4096B or the like");
    units::parse_bytes(text).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// Reads `20ms`, `100us`, `1.5s`: a time of at most a day.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no time; write 20ms, 100us, 1.5s or the like");
    let day = Duration::from_secs(86_400);
    units::parse_duration(text).filter(|time| *time <= day).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{
        bytes, count, parse_bytes, parse_duration, parse_rate, rate, seconds, signed_percent,
    };
    use std::time::Duration;

    #[test]
    fn bytes_change_unit_where_people_do() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1024 * 1024 - 1), "1.00 MiB");
        assert_eq!(bytes(512 << 20), "512 MiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(rate(5e8), "500 MB/s");
        assert_eq!(rate(999_900.0), "1.00 MB/s");
    }

    #[test]
    fn times_change_unit_where_people_do() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(0.0203), "20.3 ms");
        assert_eq!(seconds(0.99996), "1.00 s");
        assert_eq!(seconds(140e-6), "140 µs");
        assert_eq!(seconds(125.2), "2 min 05 s");
    }

    #[test]
    fn one_of_a_thing_is_no_plural() {
        assert_eq!(["sample", "batch"].map(|unit| count(1, unit)), ["1 sample", "1 batch"]);
        assert_eq!(["sample", "batch"].map(|unit| count(0, unit)), ["0 samples", "0 batches"]);
    }

    #[test]
    fn a_percentage_always_has_its_sign() {
        assert_eq!(signed_percent(-0.0312), "-3.1 %");
        assert_eq!(signed_percent(0.05), "+5.0 %");
    }

    #[test]
    fn quantities_are_read_with_their_unit() {
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("1.5 GB"), Ok(1_500_000_000));
        assert_eq!(parse_rate("500MB/s"), Ok(500_000_000));
        assert_eq!(parse_duration("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
    }

    #[test]
    fn quantities_without_sense_are_refused_with_an_example() {
        for text in ["", "MB", "500", "-1MB", "NaNMB", "infB", "1e300GB", "0B", "5XB", "1 000MB"] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.contains("512MiB"), "{error}");
        }
        assert!(parse_bytes("500").unwrap_err().starts_with("\"500\" has no unit; write"));
        assert!(parse_bytes("0B").unwrap_err().starts_with("\"0B\" is no size; write"));
        for text in ["500MB", "500/s", "0MB/s"] {
            assert!(parse_rate(text).unwrap_err().contains("500MB/s"));
        }
        for text in ["20", "-1s", "999999s", "s"] {
            assert!(parse_duration(text).unwrap_err().contains("20ms"));
        }
    }
}
