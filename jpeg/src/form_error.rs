//! Errors of a coefficient form: damaged bytes are data and never cause a panic.

/// A coefficient form that cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The stored bytes are invalid.
    #[error("coefficient form is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Offset in the stored bytes.
        offset: usize,
        /// The problem.
        reason: &'static str,
    },
    /// The stored bytes have an earlier version of the layout, which is no longer supported.
    #[error(
        "the coefficient form is of version {version}, and this program reads version {read}: \
         pack the files again"
    )]
    Older {
        /// Their version.
        version: u8,
        /// The version that is read.
        read: u8,
    },
    /// The stored bytes are of a later version of the layout.
    #[error(
        "the coefficient form is of version {version}, and this program reads up to {newest}: a \
         newer Meetpoint is needed to read it"
    )]
    Newer {
        /// Their version.
        version: u8,
        /// The newest one that is known.
        newest: u8,
    },
    /// The form does not support the frame, or the planes do not fit it.
    #[error("no coefficient form for this picture: {reason}")]
    Unfit {
        /// The contradiction.
        reason: &'static str,
    },
    /// The caller requested a stop.
    #[error("interrupted")]
    Interrupted,
    /// Rows, columns or buffers that do not fit the picture.
    #[error("request does not fit the coefficient form: {reason}")]
    Request {
        /// The contradiction.
        reason: &'static str,
    },
}

/// An error at an offset in the stored bytes.
pub(crate) fn damaged(offset: usize, reason: &'static str) -> FormError {
    FormError::Damaged { offset, reason }
}
