//! The error of a file that violates its format.

use crate::Error;
use crate::message::Message;
use crate::source::SampleOrigin;
use crate::store::StorePath;

/// The error of a file that violates its format, at an offset if it is known.
pub(crate) fn malformed(
    file: &StorePath,
    offset: Option<u64>,
    problem: impl Into<Message>,
) -> Error {
    Error::Malformed {
        origin: Box::new(SampleOrigin { file: file.display().to_string(), member: None, offset }),
        problem: problem.into(),
    }
}
