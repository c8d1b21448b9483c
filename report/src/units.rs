//! Formats quantities with units: bytes, rates and times.

/// `1.4 GiB`, `512 MiB`, `17 B`.
pub fn bytes(count: u64) -> String {
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
pub fn count(count: u64, unit: &str) -> String {
    let ending = match unit {
        _ if count == 1 => "",
        _ if unit.ends_with("tch") => "es",
        _ => "s",
    };
    format!("{count} {unit}{ending}")
}

/// `500 MB/s`, in powers of 1000 as drives are sold.
pub fn rate(bytes_per_second: f64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let fitting = units.into_iter().find(|(_, factor)| bytes_per_second >= factor * 0.9995);
    let (unit, factor) = fitting.unwrap_or(("B/s", 1.0));
    format!("{} {unit}", significant(bytes_per_second / factor))
}

/// `1.52 s`, `20.3 ms`, `140 µs`, `2 min 05 s`.
pub fn seconds(value: f64) -> String {
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
pub fn nanoseconds(value: u64) -> String {
    seconds(value as f64 / 1e9)
}

/// Three significant digits, no exponent: `0.12`, `4.31`, `20.3`, `512`, `12800`.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// `+3.1 %`, `-0.4 %`.
pub fn signed_percent(ratio: f64) -> String {
    format!("{:+.1} %", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, rate, seconds, signed_percent};

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
}
