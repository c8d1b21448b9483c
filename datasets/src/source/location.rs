//! The location of a source: on this machine, or in a store named by a URL.

use super::detect::open_kind;
use super::{Entry, Finished, Size, Source, SourceOptions, SourceSchema, SourceStamp};
use crate::Error;
use crate::error::RemoteError;
#[cfg(feature = "remote")]
use crate::store::RemoteStore;
use crate::store::{RemoteOptions, StorePath};
use std::path::Path;

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
    let given = [&options.table, &options.root];
    let given = given.into_iter().flatten().map(|path| from.given(path));
    let paths: Vec<StorePath> = std::iter::once(from.clone()).chain(given).collect();
    SourceStamp::listing(&paths, options.follow_links, each)
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
    use super::is_url;
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
}
