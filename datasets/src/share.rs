//! Shares of a whole, exact in billionths.

use std::fmt;

/// The size of one of several parts, in billionths; only the proportion of the parts matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(pub(crate) u64);

impl Share {
    /// The whole, if shares are fractions of a whole.
    pub const ONE: Self = Self(1_000_000_000);

    /// Reads `0.8`, `8` or `80%`: above zero, at most nine digits after the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number, 10_000_000),
            None => (text, 1_000_000_000),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0
            || whole.len() > 9
            || fraction.len() > 9
            || !is_number(whole)
            || !is_number(fraction)
        {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: u128 = format!("{fraction:0<9}").parse().ok()?;
        let billionths = (whole * 1_000_000_000 + fraction) * unit / 1_000_000_000;
        u64::try_from(billionths).ok().filter(|share| *share > 0).map(Self)
    }

    /// The rest of the whole; `None` if nothing remains.
    pub(crate) fn rest(self) -> Option<Self> {
        Self::ONE.0.checked_sub(self.0).filter(|rest| *rest > 0).map(Self)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / Self::ONE.0, self.0 % Self::ONE.0);
        let fraction = format!("{fraction:09}");
        match fraction.trim_end_matches('0') {
            "" => write!(to, "{whole}"),
            digits => write!(to, "{whole}.{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn shares_are_numbers_above_zero() {
        assert_eq!(Share::parse("0.8"), Share::parse("80%"));
        assert_eq!(Share::parse("1"), Some(Share::ONE));
        let said = |text| Share::parse(text).map(|share| share.to_string());
        assert_eq!(said("12.50%").as_deref(), Some("0.125"));
        assert_eq!(said(".5").as_deref(), Some("0.5"));
        assert_eq!(Share::parse("0.000000001"), Some(Share(1)));
        for wrong in ["", ".", "0", "0.0", "-1", "1e3", "NaN", "0.0000000001", "9999999999", "%"] {
            assert_eq!(Share::parse(wrong), None, "{wrong:?}");
        }
    }
}
