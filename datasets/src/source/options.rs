//! The user's options for a source.

use super::{ContentKind, PixelStore};
use crate::Error;
use crate::store::RemoteOptions;
use meetpoint_diagnose::Setting;
use std::path::PathBuf;

/// The user's options for a source. No option is needed if the source contains the information or
/// follows the conventions of its format.
///
/// A source calls [`SourceOptions::allow_only`] with the options that it supports, so that no
/// option is ignored silently.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SourceOptions {
    /// Name of the column, member or feature that is the content (`--content`): `image`, `jpg`,
    /// `image/encoded`.
    pub content: Option<String>,
    /// Kind of the content (`--kind`).
    pub kind: Option<ContentKind>,
    /// Name of the column, member or feature that is the label (`--label`).
    pub label: Option<String>,
    /// Name of the column, member or feature that is the key (`--key`).
    pub key: Option<String>,
    /// Names of the further columns to take, in this order (`--columns`); `None` takes all of
    /// them, an empty list none.
    pub columns: Option<Vec<String>>,
    /// Which of several sets in the source to read (`--split`): `train`, `t10k`, `fine`.
    pub split: Option<String>,
    /// How a source without picture files stores its pixels (`--store`); `None` for
    /// [`PixelStore::Auto`].
    pub store: Option<PixelStore>,
    /// A table of the samples (`--table`): CSV, TSV, JSON Lines; or other side files of a source.
    pub table: Option<PathBuf>,
    /// Folder to which names in a table are relative (`--root`); the default is that of the table.
    pub root: Option<PathBuf>,
    /// Follow symbolic links that lead out of the source (`--follow-links`); links within it are
    /// always followed. Without it, such a link is unreadable.
    pub follow_links: bool,
    /// Maximum content of a sample in bytes (`--sample-bytes-max`); `None` for the limit of a
    /// dataset, 256 MiB. Longer samples are unreadable.
    pub sample_bytes_max: Option<u64>,
    /// Bytes of memory for decompressed data and lists of values (`--source-memory`); `None`
    /// for [`memory_bytes_default`](super::memory_bytes_default).
    pub memory_bytes_max: Option<u64>,
    /// Options for a remote source; ignored by a local one.
    pub remote: RemoteOptions,
}

impl SourceOptions {
    /// The options that are set.
    pub fn set(&self) -> Vec<Setting> {
        let all = [
            (Setting::Content, self.content.is_some()),
            (Setting::Kind, self.kind.is_some()),
            (Setting::Label, self.label.is_some()),
            (Setting::Key, self.key.is_some()),
            (Setting::Columns, self.columns.is_some()),
            (Setting::Split, self.split.is_some()),
            // The pictures of every other source are encoded.
            (Setting::Store, self.store.is_some_and(|store| store != PixelStore::Encoded)),
            (Setting::Table, self.table.is_some()),
            (Setting::Root, self.root.is_some()),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(option, _)| option).collect()
    }

    /// Refuses an option that has no effect on `source` ("a folder of images"), which supports
    /// only `known`.
    pub fn allow_only(&self, source: &str, known: &[Setting]) -> Result<(), Error> {
        match self.set().into_iter().find(|option| !known.contains(option)) {
            None => Ok(()),
            Some(option) => {
                let source_words = source.to_owned();
                Err(Error::OptionWithoutUse { option, value: None, source_words })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, SourceOptions};
    use crate::Error;

    #[test]
    fn an_option_without_effect_on_a_source_is_refused() {
        let options = SourceOptions { split: Some("train".to_owned()), ..SourceOptions::default() };
        assert!(options.allow_only("a tar file", &[Setting::Content, Setting::Split]).is_ok());
        let refused = options.allow_only("a tar file", &[Setting::Content]);
        assert!(matches!(
            refused,
            Err(Error::OptionWithoutUse { option: Setting::Split, value: None, source_words })
                if source_words == "a tar file"
        ));
    }
}
