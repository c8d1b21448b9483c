//! Columns that are named like a label but are not the class label.

use meetpoint_diagnose::{Setting, Surface, printable};
use serde::{Deserialize, Serialize};

/// The usual name of a column of labels.
pub(super) const LABEL_NAME: &str = "label";

/// A column that is called a label and did not become the class label. It is a further column,
/// unless the user chose others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedLabel {
    /// Its name in the source.
    pub column: String,
    /// Its Arrow type in lower case; `null` if it has no values.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The column, member or field that is the class label instead; `None` if there is none.
    pub class_label: Option<String>,
}

impl UnusedLabel {
    /// A column of this type, if `class_label` is the label.
    pub(super) fn new(
        column: &str,
        data_type: &arrow_schema::DataType,
        class_label: Option<String>,
    ) -> Self {
        let data_type = data_type.to_string().to_ascii_lowercase();
        Self { column: column.to_owned(), data_type, class_label }
    }

    /// The problem and its remedy as text, with options spelled for `surface`.
    pub fn in_words(&self, surface: Surface) -> String {
        let (column, data_type) = (printable(&self.column), printable(&self.data_type));
        match &self.class_label {
            Some(label) => {
                let label = printable(label);
                format!("column `{column}` is not the class label, since `{label}` is")
            }
            None => format!(
                "column `{column}` is {data_type}, not a class label: class labels are integers \
                 or texts; if another column has them, name it with {}",
                Setting::Label.spelled(surface)
            ),
        }
    }
}

impl std::fmt::Display for UnusedLabel {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.in_words(Surface::CommandLine))
    }
}
