//! Names that replace the paths of this machine in messages to hosts on other machines, so that
//! these learn nothing about its file system.

use crate::extents::ServedExtents;
use crate::roots::Roots;
use meetpoint_diagnose::shown;
use std::borrow::Cow;

/// The name of a block device.
const BLOCK: &str = "the block device";

/// Paths and their names, the longest path first.
#[derive(Debug, Default)]
pub(crate) struct ShownPaths {
    named: Vec<(String, String)>,
}

impl ShownPaths {
    /// The names of everything that is served.
    pub(crate) fn new(roots: &Roots, extents: &ServedExtents) -> Self {
        // As messages show them.
        let shown = |path: &std::path::Path| shown(path).to_string();
        let mut named: Vec<(String, String)> =
            roots.named().map(|(name, folder)| (shown(folder), name.to_owned())).collect();
        for (name, folder) in extents.named() {
            named.push((shown(folder.path()), name.to_owned()));
            named.push((shown(folder.block()), BLOCK.to_owned()));
        }
        // A nested folder has its own name. `/` is left out: it occurs in every path.
        named.retain(|(path, _)| path.len() > 1);
        named.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { named }
    }

    /// The message with names instead of paths: `photos/part-00003.arrow`.
    pub(crate) fn rename<'m>(&self, message: &'m str) -> Cow<'m, str> {
        let mut renamed = String::new();
        let mut rest = message;
        let found = |rest: &str| {
            let of_path = |(path, name): &(String, String)| {
                // A match must not be the beginning of a longer file name.
                let ends = |at: &usize| !continues_name(&rest[at + path.len()..]);
                let mut places = rest.match_indices(path.as_str()).map(|(at, _)| at);
                places.find(ends).map(|at| (at, path.len(), name.clone()))
            };
            let found = self.named.iter().filter_map(of_path);
            found.min_by_key(|(at, bytes, _)| (*at, std::cmp::Reverse(*bytes)))
        };
        while let Some((at, bytes, name)) = found(rest) {
            renamed.push_str(&rest[..at]);
            renamed.push_str(&name);
            rest = &rest[at + bytes..];
        }
        if renamed.is_empty() {
            return Cow::Borrowed(message);
        }
        renamed.push_str(rest);
        Cow::Owned(renamed)
    }
}

/// Whether this text continues a file name before it; a full stop may also end a sentence.
fn continues_name(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some('.') => chars.next().is_some_and(char::is_alphanumeric),
        Some(first) => first.is_alphanumeric() || "-_".contains(first),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::ShownPaths;

    fn shown(named: &[(&str, &str)]) -> ShownPaths {
        let named = named.iter().map(|(path, name)| ((*path).to_owned(), (*name).to_owned()));
        ShownPaths { named: named.collect() }
    }

    #[test]
    fn paths_become_names_and_other_texts_stay() {
        let paths = shown(&[("/data/photos/new", "new"), ("/data/photos", "photos")]);
        for (message, expected) in [
            ("dataset /data/photos: damaged", "dataset photos: damaged"),
            ("/data/photos/part-00003.arrow, row 17", "photos/part-00003.arrow, row 17"),
            ("/data/photos/new/a and /data/photos/b", "new/a and photos/b"),
            ("/data/photos2/a, /data/photos-old/b", "/data/photos2/a, /data/photos-old/b"),
            ("in /data/photos2 and /data/photos", "in /data/photos2 and photos"),
            ("/data/photos.old, in /data/photos.", "/data/photos.old, in photos."),
            ("row 17", "row 17"),
        ] {
            assert_eq!(paths.rename(message), expected);
        }
    }
}
