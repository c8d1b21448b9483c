//! The files of a source beside the one that the user named.

use crate::store::StorePath;

/// Suffixes of the files beside a datadings file.
pub(super) const INDEX_SUFFIXES: [&str; 3] = ["offsets", "keys", "index"];
/// Name of the file with the names of labels.
pub(crate) const LABELS_NAME: &str = "labels.json";

/// The files that are read beside a file: an index (`X.msgpack.offsets`), the names of the labels,
/// the labels of IDX pictures.
pub(super) fn side_files(path: &StorePath) -> Vec<StorePath> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file())
    else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        INDEX_SUFFIXES.iter().map(|suffix| format!("{name}.{suffix}")).collect();
    names.push(LABELS_NAME.to_owned());
    names.extend(labels_names(name));
    names.into_iter().map(|name| path.with_file_name(name)).filter(|path| path.is_file()).collect()
}

/// Possible names of the label file of a file of pictures; empty for other files.
pub(super) fn labels_names(name: &str) -> Vec<String> {
    images_of(name).map_or_else(Vec::new, |(_, names)| names.to_vec())
}

/// The name of the set, and the possible names of its label file, from the name of a file of
/// pictures.
pub(super) fn images_of(name: &str) -> Option<(String, [String; 2])> {
    let at = name.find("images")?;
    name[at..].contains("idx3").then_some(())?;
    let labels = name.replacen("images", "labels", 1).replacen("idx3", "idx1", 1);
    let other = match labels.strip_suffix(".gz") {
        Some(plain) => plain.to_owned(),
        None => format!("{labels}.gz"),
    };
    let set = name[..at].trim_end_matches(['-', '_', '.']);
    Some((if set.is_empty() { "all" } else { set }.to_owned(), [labels, other]))
}
