//! A refused call: the reason in the message of the status, the remedy in its details.

use meetpoint_diagnose::Remedy;
use tonic::{Code, Status};

/// Longest details of a status that are read, in bytes.
const DETAILS_BYTES_MAX: usize = 4096;

/// A status with a reason, and the remedy as JSON.
pub fn status(code: Code, reason: String, remedy: Option<&Remedy>) -> Status {
    let details = remedy.and_then(|remedy| serde_json::to_vec(remedy).ok());
    let details = details.filter(|bytes| bytes.len() <= DETAILS_BYTES_MAX);
    Status::with_details(code, reason, details.unwrap_or_default().into())
}

/// The remedy in the details of a status; `None` if there is none that can be parsed.
pub fn remedy(status: &Status) -> Option<Remedy> {
    let details = status.details();
    let remedy: Option<Remedy> = match details.len() {
        1..=DETAILS_BYTES_MAX => serde_json::from_slice(details).ok(),
        _ => None,
    };
    remedy.filter(|remedy| !remedy.steps().is_empty())
}

#[cfg(test)]
mod tests {
    use super::{DETAILS_BYTES_MAX, remedy, status};
    use meetpoint_diagnose::{Change, Remedy, Setting};
    use tonic::{Code, Status};

    #[test]
    fn a_remedy_survives_the_status() {
        let sent = Remedy::set(Setting::DeviceRoot, Change::To("/data".to_owned()));
        let refused = status(Code::PermissionDenied, "outside".to_owned(), Some(&sent));
        assert_eq!((refused.message(), remedy(&refused)), ("outside", Some(sent)));
        assert_eq!(remedy(&status(Code::NotFound, String::new(), None)), None);
    }

    #[test]
    fn details_that_are_not_a_remedy_or_too_long_are_ignored() {
        let long = format!("[{{\"action\":\"advice\",\"text\":\"{}\"}}]", "a".repeat(5000));
        assert!(long.len() > DETAILS_BYTES_MAX);
        for details in ["[]", "{", "\"text\"", &long] {
            let details = details.as_bytes().to_vec().into();
            let sent = Status::with_details(Code::NotFound, "no", details);
            assert_eq!(remedy(&sent), None);
        }
    }
}
