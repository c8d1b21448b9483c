//! The location of a source: on this machine, or in a store named by a URL.

use super::detect::open_kind;
use super::{Entry, Finished, Size, Source, SourceOptions, SourceSchema, SourceStamp};
use crate::Error;
use crate::error::RemoteError;
#[cfg(feature = "remote")]
use crate::store::RemoteStore;
use crate::store::{RemoteOptions, StorePath};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use meetpoint_prepare::is_url;

/// Finds the source that a user named; lists the objects of a URL.
pub fn find(path: &Path, options: &RemoteOptions) -> Result<StorePath, Error> {
    if !is_url(path) {
        return Ok(StorePath::local(path));
    }
    let url = path.display().to_string();
    #[cfg(feature = "remote")]
    return RemoteStore::find(&url, options);
    #[cfg(not(feature = "remote"))]
    {
        let _ = options;
        Err(RemoteError::NotBuilt { url }.into())
    }
}

/// Opens the source at a path of a store as the kind of that name, or as the detected kind.
pub fn open_in(
    from: &StorePath,
    kind: Option<&str>,
    options: &SourceOptions,
) -> Result<Box<dyn Source>, Error> {
    let source = open_kind(from, kind, options);
    // A failed access that detection ignored must not decide the kind.
    from.store().check()?;
    Ok(Box::new(StoreChecked { source: source?, from: from.clone() }))
}

/// Opens the source at `path`, which may be a URL, as the kind of that name, or as the detected
/// kind.
pub fn open(
    path: &Path,
    kind: Option<&str>,
    options: &SourceOptions,
) -> Result<Box<dyn Source>, Error> {
    open_in(&find(path, &options.remote)?, kind, options)
}

/// Names, lengths and times of everything that a source reads. For objects they are those in the
/// listing; later changes are detected when objects are fetched and when the source ends.
pub(crate) fn stamp(from: &StorePath, options: &SourceOptions) -> Result<SourceStamp, Error> {
    stamp_listing(from, options, &mut |_, _| ())
}

/// As [`stamp`], and calls `each` with every file and the stamp of it alone.
pub(crate) fn stamp_listing(
    from: &StorePath,
    options: &SourceOptions,
    each: &mut dyn FnMut(&Path, u128),
) -> Result<SourceStamp, Error> {
    SourceStamp::listing(&given_paths(from, options), options.follow_links, each)
}

/// The paths that the user named: the source, its table, its root.
fn given_paths(from: &StorePath, options: &SourceOptions) -> Vec<StorePath> {
    let given = [&options.table, &options.root];
    let given = given.into_iter().flatten().map(|path| from.given(path));
    std::iter::once(from.clone()).chain(given).collect()
}

/// The first path on this machine that the user named and that does not exist; of a pattern, its
/// folder. [`stamp`] cannot tell a missing path from a pattern.
pub(crate) fn missing(from: &StorePath, options: &SourceOptions) -> Result<Option<PathBuf>, Error> {
    for path in given_paths(from, options) {
        let is_pattern = path.shown().contains('{') && !path.exists();
        let path = if is_pattern { path.folder() } else { path };
        if is_url(path.path()) || path.path().as_os_str().is_empty() {
            continue;
        }
        match path.metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Some(path.to_path_buf()));
            }
            Err(source) => return Err(Error::Source { path: path.to_path_buf(), source }),
        }
    }
    Ok(None)
}

/// Refuses a URL as a destination.
pub(crate) fn refuse_destination(path: &Path) -> Result<(), Error> {
    if is_url(path) {
        return Err(RemoteError::Destination { url: path.display().to_string() }.into());
    }
    Ok(())
}

/// A source that fails if its store failed, even if the samples do not show it.
struct StoreChecked {
    source: Box<dyn Source>,
    from: StorePath,
}

impl Source for StoreChecked {
    fn schema(&self) -> &SourceSchema {
        self.source.schema()
    }

    fn size(&self) -> Size {
        self.source.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let next = self.source.next();
        self.from.store().check()?;
        next
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        let finished = self.source.finish();
        self.from.store().check()?;
        let finished = finished?;
        self.from.store().check_unchanged()?;
        Ok(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::{is_url, missing};
    use crate::source::SourceOptions;
    use crate::store::StorePath;
    use std::path::Path;

    #[test]
    fn a_url_has_a_scheme() {
        for url in ["s3://bucket/a", "https://host/a.tar", "gs://b", "x-y+z.1://h"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in ["/a/b", "a://b".get(1..).unwrap(), "a b://c", "./s3://x", "1a://b", ""] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_missing_unless_it_is_a_pattern_in_a_folder_that_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let missing = |from: &str, table: Option<&str>| {
            let options = SourceOptions { table: table.map(at), ..SourceOptions::default() };
            missing(&StorePath::local(at(from)), &options).unwrap()
        };
        std::fs::write(at("a.tar"), "").unwrap();
        assert_eq!(missing("a.tar", None), None);
        assert_eq!(missing("a.tar", Some("a.csv")), Some(at("a.csv")));
        assert_eq!(missing("b.tar", None), Some(at("b.tar")));
        assert_eq!(missing("{a,b}.tar", None), None);
        assert_eq!(missing("below/{a,b}.tar", None), Some(at("below")));
    }
}
