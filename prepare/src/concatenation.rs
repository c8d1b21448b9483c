//! The common properties of several folders of a dataset: columns, labels, and a combined manifest.

use crate::Error;
use crate::dataset_folder::DatasetFolder;
use meetpoint_format::dataset::{Columns, Manifest, Provenance};
use meetpoint_format::sampler::DATASETS_MAX;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// Prefix of the input of the checksum of several datasets.
const CHECKSUM_DOMAIN: &[u8] = b"meetpoint datasets";

/// Several folders as one dataset.
#[derive(Debug)]
pub(crate) struct Concatenation {
    manifest: Manifest,
    sha256: [u8; 32],
    /// By folder: the common label for each of its labels; `None` if they are equal.
    labels: Vec<Option<Vec<i32>>>,
}

impl Concatenation {
    /// Combines folders with the same columns.
    pub(crate) fn new(members: &[DatasetFolder]) -> Result<Self, Error> {
        let [first, others @ ..] = members else { return Err(Error::NoDataset) };
        if members.len() > DATASETS_MAX {
            return Err(Error::TooManyDatasets { datasets: members.len() });
        }
        for other in others {
            if let Some([column, expected, found]) = difference(first.columns(), other.columns()) {
                let [path, first] = [other, first].map(|member| member.path().to_path_buf());
                let [column, expected, found] = [column, expected, found].map(Into::into);
                return Err(Error::ColumnsDiffer { path, first, column, found, expected });
            }
        }
        let mut manifest = Manifest::new(first.columns(), Provenance::default());
        let stored = &first.manifest().stored;
        let is_alike = members.iter().all(|member| member.manifest().stored == *stored);
        manifest.stored = stored.clone().filter(|_| is_alike);
        let mut sha256 = Sha256::new_with_prefix(CHECKSUM_DOMAIN);
        for member in members {
            let own = member.manifest();
            manifest.samples += own.samples;
            manifest.image_bytes += own.image_bytes;
            manifest.image_bytes_max = manifest.image_bytes_max.max(own.image_bytes_max);
            for part in &own.parts {
                let mut part = part.clone();
                part.file = member.path().join(&part.file).display().to_string();
                manifest.parts.push(part);
            }
            sha256.update(member.manifest_sha256());
        }
        let labels = unite_labels(members, &mut manifest.labels);
        Ok(Self { manifest, sha256: sha256.finalize().into(), labels })
    }

    /// Counts, labels and parts of all folders; names of parts include their folder.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// SHA-256 over the manifests of all folders, in order.
    pub(crate) fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The common label for a label of a folder, which was checked against the folder's manifest.
    pub(crate) fn label(&self, member: usize, label: i32) -> i32 {
        let of_member = self.labels[member].as_ref();
        of_member.map_or(label, |labels| labels[usize::try_from(label).expect("it was checked")])
    }
}

/// Adds the labels of all folders to `united`, in the order in which they first occur, so that
/// another folder at the end changes no label of those before it.
fn unite_labels(members: &[DatasetFolder], united: &mut Vec<String>) -> Vec<Option<Vec<i32>>> {
    let mut known: HashMap<String, i32> = HashMap::new();
    let mut of_member = |member: &DatasetFolder| {
        let labels = member.manifest().labels.iter().map(|label| {
            *known.entry(label.clone()).or_insert_with(|| {
                united.push(label.clone());
                i32::try_from(united.len() - 1).expect("a manifest has fewer than 2^31 labels")
            })
        });
        let labels: Vec<i32> = labels.collect();
        let is_same = labels.iter().copied().eq(0..labels.len() as i32);
        (!is_same).then_some(labels)
    };
    members.iter().map(&mut of_member).collect()
}

/// The first column in which two datasets differ, with its type in each.
fn difference(first: &Arc<Columns>, other: &Arc<Columns>) -> Option<[String; 3]> {
    let content = |columns: &Columns| (columns.kind, columns.content_name().to_owned());
    let ((kind, name), (other_kind, other_name)) = (content(first), content(other));
    if (kind, &name) != (other_kind, &other_name) {
        let words = |kind: &str, name: &str| format!("content `{name}` ({kind})");
        let found = words(other_kind.name(), &other_name);
        return Some([name.clone(), words(kind.name(), &name), found]);
    }
    if first.prepared != other.prepared {
        let words = |columns: &Columns| match &columns.prepared {
            None => "as it is in its source".to_owned(),
            Some(it) => {
                let (count, codec) = (it.operations, it.codec.name());
                format!("prepared by {count} operations ({codec}, SHA-256 {})", it.recipe_sha256)
            }
        };
        return Some([name, words(first), words(other)]);
    }
    let (firsts, others) = (first.extra.fields(), other.extra.fields());
    let at = (0..firsts.len().max(others.len())).find(|&at| firsts.get(at) != others.get(at))?;
    let words = |field: Option<&arrow_schema::FieldRef>, other: Option<&arrow_schema::FieldRef>| {
        let Some(field) = field else { return "absent".to_owned() };
        let nullable = if field.is_nullable() { "nullable " } else { "" };
        let mut words = format!("`{}` of type {nullable}{}", field.name(), field.data_type());
        if other.is_some_and(|other| other.metadata() != field.metadata()) {
            let mut metadata: Vec<_> = field.metadata().iter().collect();
            metadata.sort();
            words += &format!(" with metadata {metadata:?}");
        }
        words
    };
    let (field, found) = (firsts.get(at), others.get(at));
    let name = field.or(found).map(|field| field.name().clone()).unwrap_or_default();
    Some([name, words(field, found), words(found, field)])
}
