//! Why the host prepares a batch of a device.

use meetpoint_format::slot::SlotError;
use serde::{Deserialize, Serialize};

/// What went wrong with a batch of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BatchFault {
    /// The device found a damaged sample.
    #[error("{detail}")]
    Damage {
        /// The message of the device.
        detail: String,
    },
    /// The device could not prepare it.
    #[error("{detail}")]
    Preparation {
        /// The message of the device.
        detail: String,
    },
    /// Its pictures exceed the reserved memory.
    #[error("{detail}")]
    Size {
        /// The message of the device.
        detail: String,
    },
    /// The host refused what the device published.
    #[error("{refusal}")]
    Refused {
        /// Why.
        refusal: SlotRefusal,
    },
}

/// Why a published slot is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlotRefusal {
    /// Its header or a column differs from what was granted.
    #[error("{error}")]
    Content {
        /// The difference.
        error: SlotError,
    },
    /// A label is invalid.
    #[error("{error}")]
    Label {
        /// The label.
        error: LabelError,
    },
    /// It cannot be read from the spool.
    #[error("{detail}")]
    NotRead {
        /// Stable name of the error.
        cause: String,
        /// Its message.
        detail: String,
    },
}

impl From<SlotError> for SlotRefusal {
    fn from(error: SlotError) -> Self {
        Self::Content { error }
    }
}

impl From<LabelError> for SlotRefusal {
    fn from(error: LabelError) -> Self {
        Self::Label { error }
    }
}

/// An invalid label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LabelError {
    /// A label that the dataset does not have.
    #[error("label {got}, expected -1 or one of the dataset's {labels}")]
    Unknown {
        /// As found.
        got: i64,
        /// Labels of the dataset.
        labels: usize,
    },
    /// An invalid element of a soft label.
    #[error("{got} in a row of labels, expected a number from 0 to 1")]
    NotAShare {
        /// As found, as text, because it may not be a number.
        got: String,
    },
}

#[cfg(test)]
mod tests {
    use super::{BatchFault, LabelError, SlotRefusal};
    use meetpoint_format::column::ContentError;
    use meetpoint_format::slot::{ColumnField, SlotError, SlotField};

    #[test]
    fn every_refusal_survives_json() {
        let (column, got, expected) = ("image".to_owned(), "1".to_owned(), "2".to_owned());
        let errors = [
            SlotError::Short { got: 1 },
            SlotError::Magic { got: u64::MAX },
            SlotError::Version { got: 4, expected: 3 },
            SlotError::HeaderChecksum { got: 1, expected: 2 },
            SlotError::Field {
                field: SlotField::PayloadBytes,
                got: got.clone(),
                expected: expected.clone(),
            },
            SlotError::Column { column: column.clone(), field: ColumnField::Shape, got, expected },
            SlotError::ColumnChecksum { column: column.clone(), got: 1, expected: 2 },
            SlotError::Content { column, source: ContentError::Text { index: 1 } },
        ];
        let unread = SlotRefusal::NotRead { cause: "input_output".into(), detail: "late".into() };
        let label = LabelError::NotAShare { got: f32::NAN.to_string() };
        let refusals = errors.map(SlotRefusal::from).into_iter().chain([unread, label.into()]);
        for refusal in refusals {
            let fault = BatchFault::Refused { refusal };
            let json = serde_json::to_value(&fault).unwrap();
            assert_eq!(json["kind"], "refused");
            assert_eq!(serde_json::from_value::<BatchFault>(json).unwrap(), fault);
        }
    }
}
