//! Parses and formats quantities with units.

use meetpoint_format::units;
pub(crate) use meetpoint_report::units::{bytes, count, nanoseconds, rate, seconds, significant};
use std::time::Duration;

/// Reads `500MB/s`, `1.5GiB/s`, `2000000B/s`: bytes per second, at least 1.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a rate; write for example 500MB/s or 1.5GiB/s");
    units::parse_bandwidth(text).filter(|rate| *rate > 0).ok_or_else(wrong)
}

/// Reads `512MiB`, `2GB`, `4096B`: bytes, at least 1.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let problem = if is_bare && !text.is_empty() { "has no unit" } else { "is not a size" };
    let wrong = || format!("\"{text}\" {problem}; write for example 512MiB, 2GB or 4096B");
    units::parse_bytes(text).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// Reads `20ms`, `100us`, `1.5s`: a time of at most a day.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = |what| format!("\"{text}\" is {what}; write for example 20ms, 100us or 1.5s");
    let time = units::parse_duration(text).ok_or_else(|| wrong("not a time"))?;
    let day = Duration::from_secs(86_400);
    Some(time).filter(|time| *time <= day).ok_or_else(|| wrong("more than a day"))
}

/// Reads a time above zero, of at most a day.
pub(crate) fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" must be more than zero; write for example 2s or 10min");
    Some(parse_duration(text)?).filter(|time| !time.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{parse_bytes, parse_duration, parse_positive_duration, parse_rate};
    use std::time::Duration;

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
        assert!(parse_bytes("0B").unwrap_err().starts_with("\"0B\" is not a size; write"));
        for text in ["500MB", "500/s", "0MB/s"] {
            assert!(parse_rate(text).unwrap_err().contains("500MB/s"));
        }
        for text in ["20", "-1s", "s"] {
            assert!(parse_duration(text).unwrap_err().contains("is not a time; write"), "{text}");
        }
        for text in ["999999s", "10000000000s"] {
            assert!(parse_duration(text).unwrap_err().contains("is more than a day"), "{text}");
        }
        assert_eq!(parse_positive_duration("1ns"), Ok(Duration::from_nanos(1)));
        for text in ["0s", "0.0ms", "-0s", "0.1ns"] {
            assert!(parse_positive_duration(text).is_err(), "{text}");
        }
    }
}
