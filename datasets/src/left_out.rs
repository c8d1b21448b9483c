//! A sample or file of a source that is not in the result.

use crate::message::Message;
use meetpoint_diagnose::Surface;
use meetpoint_diagnose::printable;

/// A sample or file of a source that is not in the dataset.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// Path relative to the source, `/`-separated, or another identifying name.
    pub path: String,
    /// Why.
    pub reason: Message,
}

impl LeftOut {
    /// One line for a message, with options spelled for `surface`.
    pub fn in_words(&self, surface: Surface) -> String {
        format!("{}: {}", printable(&self.path), printable(&self.reason.in_full(surface)))
    }

    /// Replaces the options in the reasons by their spelling for a surface, which is then
    /// serialised.
    pub fn spell(all: &mut [Self], surface: Surface) {
        for left_out in all {
            left_out.reason = left_out.reason.in_full(surface).into();
        }
    }
}

/// As [`Self::in_words`] for the command line.
impl std::fmt::Display for LeftOut {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.in_words(Surface::CommandLine))
    }
}
