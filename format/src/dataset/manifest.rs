//! `dataset.json`: counts, schema version, labels, checksums and provenance.

use super::schema::{FORMAT, IMAGE_BYTES_MAX, VERSION};
use super::{
    ColumnEntry, Columns, ContentEntry, ContentKind, DatasetError, Form, PLACE_COLUMN, Prepared,
    Stored,
};
use crate::checksum::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};

/// File name of the manifest in a dataset's folder.
pub const MANIFEST_NAME: &str = "dataset.json";

/// Name of the last member of the manifest: SHA-256 of everything before it.
pub const SELF_SHA256: &str = "self_sha256";

/// Longest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 28;

/// File name of part `index`.
pub fn part_name(index: usize) -> String {
    format!("part-{index:05}.arrow")
}

/// The manifest of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always `meetpoint-dataset`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// What the content of samples is.
    pub content: ContentEntry,
    /// The further columns in order.
    pub columns: Vec<ColumnEntry>,
    /// Samples in all parts.
    pub samples: u64,
    /// Bytes of all content (images, …) as stored.
    pub image_bytes: u64,
    /// Length of the longest content of a sample in bytes, as stored; readers need a buffer of this
    /// size.
    pub image_bytes_max: u64,
    /// Label names by label; empty if the source was flat.
    pub labels: Vec<String>,
    /// The parts in order.
    pub parts: Vec<PartEntry>,
    /// Form of the images. Always present in a file; `None` represents several datasets with
    /// different forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
    /// Its provenance.
    pub provenance: Provenance,
}

/// One part in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEntry {
    /// File name in the dataset's folder.
    pub file: String,
    /// Samples.
    pub samples: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// CRC-32C of the file's end, from the end-of-stream marker on.
    pub tail_crc32c: u32,
    /// SHA-256 of the file, lower-case hexadecimal.
    pub sha256: String,
}

/// The provenance of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Program and version.
    pub tool: String,
    /// The packed source, as the user named it.
    pub source: String,
    /// Files that were skipped as unreadable.
    pub skipped: u64,
    /// The options it was packed with, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Time of creation: RFC 3339, in UTC, as in `2026-01-31T23:59:59Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Operations that were applied to the samples before they were stored, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
}

/// The members that manifests of every version have.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl Manifest {
    /// A manifest of the current version, without samples so far.
    pub fn new(columns: &Columns, provenance: Provenance) -> Self {
        let column = columns.content_name().to_owned();
        let fields = columns.extra.fields().iter();
        let prepared = columns.prepared.clone();
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            content: ContentEntry { kind: columns.kind, column, prepared },
            columns: fields.map(|field| ColumnEntry::of(field)).collect(),
            samples: 0,
            image_bytes: 0,
            image_bytes_max: 0,
            labels: Vec::new(),
            parts: Vec::new(),
            stored: Some(Stored::default()),
            provenance,
        }
    }

    /// The kind of the content.
    pub fn kind(&self) -> ContentKind {
        self.content.kind
    }

    /// Name of the column with the content.
    pub fn content_name(&self) -> &str {
        &self.content.column
    }

    /// Which operations of a recipe were executed before samples were stored.
    pub fn prepared(&self) -> Option<&Prepared> {
        self.content.prepared.as_ref()
    }

    /// Whether the content stays in files outside of the parts.
    pub fn is_in_place(&self) -> bool {
        self.columns.last().is_some_and(|column| column.kind.as_deref() == Some(PLACE_COLUMN))
    }

    /// How a part's columns differ from those that the manifest lists.
    pub fn differs(&self, columns: &Columns) -> Option<String> {
        if (self.kind(), self.content_name()) != (columns.kind, columns.content_name()) {
            let (found, expected) = (columns.content_name(), self.content_name());
            let (kind, said) = (columns.kind.name(), self.kind().name());
            return Some(format!(
                "its content is `{found}` ({kind}), dataset.json says `{expected}` ({said})"
            ));
        }
        if self.prepared() != columns.prepared.as_ref() {
            return Some(
                "its samples were prepared differently from what dataset.json says".to_owned(),
            );
        }
        let listed = &self.columns;
        let found: Vec<_> = columns.extra.fields().iter().map(|f| ColumnEntry::of(f)).collect();
        if found == *listed {
            return None;
        }
        let words = |column: Option<&ColumnEntry>| match column {
            None => "none".to_owned(),
            Some(column) => format!("`{}` {}", column.name, column.type_words),
        };
        let differs = |index: &usize| found.get(*index) != listed.get(*index);
        let index = (0..found.len().max(listed.len())).find(differs)?;
        let (found, listed) = (words(found.get(index)), words(listed.get(index)));
        Some(format!("its further column {index} is {found}, dataset.json says {listed}"))
    }

    /// Reads and checks a manifest: format, version, its own checksum, sums, part names without
    /// path separators.
    pub fn from_json(bytes: &[u8]) -> Result<Self, DatasetError> {
        let broken = |problem: String| DatasetError::Manifest { problem };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| broken(format!("not UTF-8 from byte {}", error.valid_up_to())))?;
        let head: Head = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        if head.format != FORMAT {
            return Err(broken(format!("format is {:?}, expected {FORMAT:?}", head.format)));
        }
        if head.version != VERSION {
            return Err(DatasetError::Version { version: head.version });
        }
        let (body, stated) = split_self_sha256(text).ok_or_else(|| {
            broken(format!("does not end with `{SELF_SHA256}`; it was changed or truncated"))
        })?;
        let got = hexadecimal(&Sha256::digest(body.as_bytes()));
        if got != stated {
            return Err(broken(format!(
                "changed since it was written: its SHA-256 is {got}, `{SELF_SHA256}` says {stated}"
            )));
        }
        let body = format!("{body}\n}}\n");
        let manifest: Self =
            serde_json::from_str(&body).map_err(|error| broken(error.to_string()))?;
        manifest.check().map_err(broken)?;
        Ok(manifest)
    }

    /// The manifest's text, ending in its own checksum and a newline.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self)
            .expect("strings, integers and lists of them always serialise");
        let body = text.strip_suffix("\n}").expect("a pretty-printed object ends in a brace");
        let sha256 = hexadecimal(&Sha256::digest(body.as_bytes()));
        format!("{body},\n  \"{SELF_SHA256}\": \"{sha256}\"\n}}\n")
    }

    /// The form of its JPEGs.
    pub fn form(&self) -> Form {
        self.stored.as_ref().map_or(Form::Jpeg, |stored| stored.form)
    }

    fn check(&self) -> Result<(), String> {
        self.check_parts()?;
        self.stored.as_ref().ok_or("missing member `stored`")?.check(self.samples)?;
        self.check_content()?;
        let mut labels = HashSet::new();
        match self.labels.iter().find(|label| label.is_empty() || !labels.insert(*label)) {
            Some(label) => Err(format!("label {label:?} is empty or listed twice")),
            None => Ok(()),
        }
    }

    /// Checks that the content's kind agrees with the other fields, and that the time is valid.
    fn check_content(&self) -> Result<(), String> {
        if let Some(prepared) = self.prepared() {
            prepared.beginning()?;
            let wanted = ContentKind::of_prepared(prepared);
            if wanted != self.kind() {
                let (kind, wanted) = (self.kind().name(), wanted.name());
                return Err(format!("the content is {kind}, prepared samples are {wanted}"));
            }
        }
        if self.kind() == ContentKind::None && self.image_bytes > 0 {
            let bytes = self.image_bytes;
            return Err(format!("image_bytes is {bytes}, samples have no content"));
        }
        match &self.provenance.time {
            Some(time) if !is_utc_time(time) => Err(format!(
                "provenance.time is {time:?}, expected a time in UTC as in 2026-01-31T23:59:59Z"
            )),
            _ => Ok(()),
        }
    }

    /// Checks the names and sums of the parts.
    fn check_parts(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        let (mut samples, mut bytes) = (0_u64, 0_u64);
        for part in &self.parts {
            let name = &part.file;
            if !is_plain_name(name) {
                return Err(format!("part file {name:?} is not a plain file name"));
            }
            if !names.insert(name) {
                return Err(format!("part file {name:?} is listed twice"));
            }
            if part.samples == 0 {
                return Err(format!("part {name} has no samples"));
            }
            let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if part.sha256.len() != 64 || !part.sha256.bytes().all(digits) {
                return Err(format!("sha256 of part {name} is not 64 hexadecimal digits"));
            }
            samples = samples.checked_add(part.samples).ok_or("samples overflow")?;
            bytes = bytes.checked_add(part.bytes).ok_or("bytes overflow")?;
        }
        if samples != self.samples {
            return Err(format!("samples is {}, the parts add up to {samples}", self.samples));
        }
        if self.image_bytes > bytes && !self.is_in_place() {
            return Err(format!(
                "image_bytes is {}, the parts have only {bytes} bytes",
                self.image_bytes
            ));
        }
        if self.image_bytes_max > self.image_bytes.min(IMAGE_BYTES_MAX) {
            return Err(format!(
                "image_bytes_max is {}, more than image_bytes or the limit of {IMAGE_BYTES_MAX}",
                self.image_bytes_max
            ));
        }
        Ok(())
    }
}

/// Splits off the last member; `None` if the text does not end with it exactly.
fn split_self_sha256(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_suffix("\"\n}\n")?;
    let (body, stated) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    let body = body.strip_suffix(&format!(",\n  \"{SELF_SHA256}\": \""))?;
    Some((body, stated))
}

/// Whether a file name stays in its folder and differs from the manifest's.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name != MANIFEST_NAME
        && name.len() <= 255
        && !name.contains(['/', '\\', '\0'])
}

/// Whether a text is an RFC 3339 time in UTC, with or without a fraction of a second.
fn is_utc_time(text: &str) -> bool {
    let Some((seconds, rest)) = text.split_at_checked(19) else { return false };
    let has_form = seconds
        .bytes()
        .zip("0000-00-00T00:00:00".bytes())
        .all(|(byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form });
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(fraction) = rest.strip_suffix('Z') else { return false };
    has_form && (fraction.is_empty() || fraction.strip_prefix('.').is_some_and(digits))
}
