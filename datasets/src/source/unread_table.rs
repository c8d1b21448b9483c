//! Tables in a source that are not read, although they may contain labels of its samples.

use super::SampleOrigin;
use crate::Error;
use crate::message::Message;
use meetpoint_diagnose::{Change, Remedy, Setting};

/// A table that may contain labels of the samples and is not read.
///
/// It is an error if the kind of the source was detected, because the labels would be lost without
/// a word. A user who names the kind gets the samples without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadTable {
    /// Its location.
    pub origin: SampleOrigin,
    /// How to have it read.
    pub remedy: Remedy,
}

impl UnreadTable {
    /// A table in an archive.
    pub(super) fn in_archive(origin: SampleOrigin) -> Self {
        Self { origin, remedy: "extract the archive and pack the folder".into() }
    }

    /// The error of the kind of source with this name.
    pub(super) fn refused(&self, kind: &str) -> Error {
        let way_out = Change::To(kind.to_owned());
        let remedy = self.remedy.clone().or_by("pack without it", Setting::From, way_out);
        Error::Malformed {
            origin: Box::new(self.origin.clone()),
            problem: Message::from("a table that is not read here, whose labels would be lost")
                .remedy(remedy),
        }
    }
}
