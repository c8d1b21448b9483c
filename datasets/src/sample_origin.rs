//! Where a sample is in its source.

use meetpoint_diagnose::printable;

/// Where a sample is in its source, as messages show it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleOrigin {
    /// File (or URL), as the user would name it.
    pub file: String,
    /// Member of an archive, row of a table: `member 00012.jpg`, `row 17`.
    pub member: Option<String>,
    /// First byte in the file, if that applies.
    pub offset: Option<u64>,
}

impl std::fmt::Display for SampleOrigin {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}", printable(&self.file))?;
        if let Some(member) = &self.member {
            write!(to, ", {}", printable(member))?;
        }
        match self.offset {
            Some(offset) => write!(to, ", at byte {offset}"),
            None => Ok(()),
        }
    }
}
