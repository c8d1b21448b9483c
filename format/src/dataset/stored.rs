//! The form in which images are stored, and how many were converted, in the manifest.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The form in which the JPEGs of a dataset are stored; other files are stored unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// As JPEG files.
    #[default]
    Jpeg,
    /// In the coefficient form that is about as small as the file.
    Compact,
    /// In the coefficient form that unpacks fastest.
    Fast,
}

impl Form {
    /// The name in the manifest and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Compact => "compact",
            Self::Fast => "fast",
        }
    }
}

/// Why an image was not converted as requested and is stored unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotConverted {
    /// It is not a JPEG.
    NotJpeg,
    /// It could not be restored byte for byte from the coefficient form.
    NotReproducible,
    /// The rewriter does not support its coding process, or the result would have different pixels.
    NotRewritable,
}

impl NotConverted {
    /// The reason, which follows "kept as it was:".
    pub fn words(self) -> &'static str {
        match self {
            Self::NotJpeg => "no JPEG",
            Self::NotReproducible => "could not be restored byte for byte",
            Self::NotRewritable => "cannot be re-written without loss",
        }
    }
}

/// The spacing of entry points: `"row"`, or a number of MCUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EntryPointSpacing {
    /// One for each row of MCUs.
    #[default]
    McuRow,
    /// One after this number of MCUs, at least 1.
    Mcus(u16),
}

impl Serialize for EntryPointSpacing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::McuRow => serializer.serialize_str("row"),
            Self::Mcus(count) => serializer.serialize_u16(*count),
        }
    }
}

impl<'de> Deserialize<'de> for EntryPointSpacing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Name(String),
            Mcus(u16),
        }
        match Written::deserialize(deserializer)? {
            Written::Name(name) if name == "row" => Ok(Self::McuRow),
            Written::Mcus(count) if count > 0 => Ok(Self::Mcus(count)),
            _ => Err(serde::de::Error::custom("spacing is neither \"row\" nor 1 to 65535")),
        }
    }
}

/// The entry points of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryPointsStored {
    /// Their spacing; absent if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<EntryPointSpacing>,
    /// Samples that have entry points.
    pub samples: u64,
    /// Total bytes of the entry points.
    pub bytes: u64,
}

/// What the requested restart markers did to the files of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartMarkersStored {
    /// Samples into whose file restart markers were inserted.
    pub inserted: u64,
    /// Samples whose file had restart markers before. They were replaced by the requested ones, or
    /// removed if none were requested.
    pub had_before: u64,
    /// Bytes of the files with inserted markers.
    pub bytes: u64,
    /// Bytes that the same files have when they are rewritten in the same way without markers.
    pub bytes_without: u64,
}

impl RestartMarkersStored {
    /// Adds the counts of other samples.
    pub fn add(&mut self, more: &Self) {
        self.inserted += more.inserted;
        self.had_before += more.had_before;
        self.bytes += more.bytes;
        self.bytes_without += more.bytes_without;
    }

    /// Bytes that the markers added.
    pub fn growth_bytes(&self) -> i128 {
        i128::from(self.bytes) - i128::from(self.bytes_without)
    }

    /// The same in percent of the files without markers; 0 without files.
    pub fn growth_percent(&self) -> f64 {
        100.0 * self.growth_bytes() as f64 / self.bytes_without.max(1) as f64
    }
}

/// The form of the images of a dataset, and how many files were converted to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The requested form.
    pub form: Form,
    /// Bytes of the files that were packed.
    pub source_bytes: u64,
    /// Samples that are in the coefficient form.
    pub converted: u64,
    /// Samples whose file was rewritten first: the original bytes cannot be restored.
    pub rewritten: u64,
    /// Rewritten samples that were progressive and are now baseline.
    pub transcoded: u64,
    /// Samples that were not converted as requested, by reason.
    pub kept: BTreeMap<NotConverted, u64>,
    /// Entry points.
    pub entry_points: EntryPointsStored,
    /// Restart markers; absent if they were not to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_markers: Option<RestartMarkersStored>,
}

impl Stored {
    /// Checks the counts; the error describes the contradiction.
    pub(super) fn check(&self, samples: u64) -> Result<(), String> {
        let counts = [
            ("converted", self.converted),
            ("rewritten", self.rewritten),
            ("entry_points.samples", self.entry_points.samples),
        ];
        let restarts = self.restart_markers.unwrap_or_default();
        let counts = counts.into_iter().chain([
            ("restart_markers.inserted", restarts.inserted),
            ("restart_markers.had_before", restarts.had_before),
        ]);
        let kept = self.kept.values().map(|count| ("kept", *count));
        for (name, count) in counts.chain(kept) {
            if count > samples {
                return Err(format!("stored.{name} is {count} of {samples} samples"));
            }
        }
        if self.transcoded > self.rewritten {
            let (transcoded, rewritten) = (self.transcoded, self.rewritten);
            return Err(format!("stored.transcoded is {transcoded} of {rewritten} rewritten"));
        }
        if self.form == Form::Jpeg && self.converted > 0 {
            return Err(format!("stored.converted is {}, the form is jpeg", self.converted));
        }
        let entry_points = &self.entry_points;
        if entry_points.bytes < entry_points.samples
            || entry_points.samples == 0 && entry_points.bytes > 0
            || entry_points.spacing.is_none() && entry_points.samples > 0
        {
            return Err(format!(
                "stored.entry_points names {} samples and {} bytes",
                entry_points.samples, entry_points.bytes
            ));
        }
        Ok(())
    }
}
