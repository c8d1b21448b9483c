//! Who a certificate is for and until when, for names and metrics.
//!
//! Only certificates that rustls has verified are read here; anything unexpected gives `None`, and
//! never decides about trust.

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 128;

/// DER tags (X.690, section 8.1.2).
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
/// `[3]` of TBSCertificate: the extensions (RFC 5280, section 4.1).
const EXTENSIONS: u8 = 0xa3;
/// `[0]` of TBSCertificate: the version.
const VERSION: u8 = 0xa0;
/// `[2]` and `[6]` of GeneralName: dNSName and uniformResourceIdentifier.
const DNS: u8 = 0x82;
const URI: u8 = 0x86;

/// 2.5.4.3, commonName.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.29.17, subjectAltName.
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];

/// Elements of DER, one after the other.
#[derive(Clone, Copy)]
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (bytes, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // The long form, with at most 4 bytes of length.
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(bytes)?;
        self.0 = rest;
        Some((tag, value))
    }
}

impl<'a> Elements<'a> {
    /// The value of the next element, which must have this tag.
    fn expect_tag(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, value)| value)
    }
}

/// The fields of a certificate that are used.
#[derive(Clone, Copy)]
struct Fields<'a> {
    not_after: (u8, &'a [u8]),
    subject: &'a [u8],
    extensions: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Splits a certificate (RFC 5280, section 4.1).
    fn read(der: &'a [u8]) -> Option<Self> {
        let certificate = Elements(der).expect_tag(SEQUENCE)?;
        let mut fields = Elements(Elements(certificate).expect_tag(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.next()?;
        }
        // Serial number, signature algorithm, issuer.
        let validity = fields.nth(3)?.1;
        let not_after = Elements(validity).nth(1)?;
        let subject = fields.expect_tag(SEQUENCE)?;
        let extensions = fields.find(|(tag, _)| *tag == EXTENSIONS).map(|(_, value)| value);
        Some(Self { not_after, subject, extensions })
    }

    fn common_name(&self) -> Option<String> {
        Elements(self.subject).filter(|(tag, _)| *tag == SET).find_map(|(_, set)| {
            let mut pair = Elements(Elements(set).expect_tag(SEQUENCE)?);
            pair.expect_tag(OBJECT).filter(|object| *object == COMMON_NAME)?;
            let (tag, value) = pair.next()?;
            [UTF8, PRINTABLE, IA5].contains(&tag).then(|| printable(value))?
        })
    }

    /// The first URI, as in certificates of SPIFFE, or else the first DNS name.
    fn alternative_name(&self) -> Option<String> {
        let extensions = Elements(self.extensions?).expect_tag(SEQUENCE)?;
        let names = Elements(extensions).find_map(|(_, extension)| {
            let mut parts = Elements(extension);
            parts.expect_tag(OBJECT).filter(|object| *object == ALTERNATIVE_NAMES)?;
            let (_, value) = parts.find(|(tag, _)| *tag == OCTETS)?;
            Elements(value).expect_tag(SEQUENCE)
        })?;
        let named = |wanted| {
            let (_, value) = Elements(names).find(|(tag, _)| *tag == wanted)?;
            printable(value)
        };
        named(URI).or_else(|| named(DNS))
    }
}

/// Text without control characters, of limited length; `None` if nothing is left.
fn printable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(|it| !it.is_control()).take(NAME_CHARS_MAX).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The name that a certificate is for: its common name, or else its first URI or DNS name.
pub(super) fn subject_name(der: &[u8]) -> Option<String> {
    let fields = Fields::read(der)?;
    fields.common_name().or_else(|| fields.alternative_name())
}

/// When a certificate expires, in seconds of Unix time.
pub(super) fn expiry(der: &[u8]) -> Option<i64> {
    let (tag, text) = Fields::read(der)?.not_after;
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |sum, it| sum * 10 + i64::from(it - b'0'));
    let (year, rest) = match (tag, digits.len()) {
        // Two digits: from 1950 to 2049 (RFC 5280, section 4.1.2.5.1).
        (UTC_TIME, 12) => match number(&digits[..2]) {
            year @ 50.. => (1900 + year, &digits[2..]),
            year => (2000 + year, &digits[2..]),
        },
        (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(&rest[at..at + 2]));
    Some(days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March, so that the leap day is the last one.
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(days + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::{days, expiry, subject_name};
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;

    /// Certificates that OpenSSL wrote, and what `openssl x509 -noout -enddate` says of them.
    const NAMED: &str = include_str!("golden/named.pem");
    const SPIFFE: &str = include_str!("golden/spiffe.pem");

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn the_name_is_the_common_name_or_the_first_uri() {
        assert_eq!(subject_name(&der(NAMED)).as_deref(), Some("trainer-7"));
        let uri = "spiffe://example.org/ns/train/sa/loader";
        assert_eq!(subject_name(&der(SPIFFE)).as_deref(), Some(uri));
    }

    #[test]
    fn the_expiry_is_read_in_both_forms_of_time() {
        // 2046 has two digits of a year, 2051 has four.
        assert_eq!(expiry(&der(NAMED)), Some(2_400_586_190));
        assert_eq!(expiry(&der(SPIFFE)), Some(2_573_386_190));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (date, expected) in [
            ((1970, 1, 1), Some(0)),
            ((1969, 12, 31), Some(-1)),
            ((2000, 2, 29), Some(11_016)),
            ((2000, 3, 1), Some(11_017)),
            ((2026, 11, 27), Some(20_784)),
            ((2026, 13, 1), None),
        ] {
            assert_eq!(days(date.0, date.1, date.2), expected, "{date:?}");
        }
    }

    #[test]
    fn truncated_and_flipped_bytes_give_a_value_or_none() {
        let whole = der(NAMED);
        for end in 0..whole.len() {
            let _ = (subject_name(&whole[..end]), expiry(&whole[..end]));
            let mut flipped = whole.to_vec();
            flipped[end] ^= 0xff;
            let _ = (subject_name(&flipped), expiry(&flipped));
        }
    }
}
