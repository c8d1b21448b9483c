//! Where a source is: here, or elsewhere.

use super::detect::open_here;
#[cfg(feature = "remote")]
use super::remote::{Mirror, open as open_elsewhere};
use super::{RemoteError, RemoteOptions, Source, SourceOptions, SourceStamp};
use crate::Error;
use std::path::{Path, PathBuf};
#[cfg(feature = "remote")]
use std::sync::Arc;

/// Where a source is.
#[derive(Debug)]
pub enum Location {
    /// On this machine.
    Here(PathBuf),
    /// Elsewhere, with what was listed of it.
    #[cfg(feature = "remote")]
    Elsewhere(Arc<Mirror>),
}

/// Whether this is a URL (`s3://bucket/name`), not a path.
pub fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://"));
    scheme.is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|other| other.is_ascii_alphanumeric() || "+-.".contains(other))
    })
}

impl Location {
    /// Finds it; what is elsewhere is listed.
    pub fn find(path: &Path, options: &RemoteOptions) -> Result<Self, Error> {
        if !is_url(path) {
            return Ok(Self::Here(path.to_path_buf()));
        }
        let url = path.display().to_string();
        #[cfg(feature = "remote")]
        return Ok(Self::Elsewhere(Arc::new(Mirror::of(&url, options)?)));
        #[cfg(not(feature = "remote"))]
        {
            let _ = options;
            Err(RemoteError::NotBuilt { url }.into())
        }
    }

    /// Opens it as the kind of that name, or as what it is found to be.
    pub fn open(
        &self,
        kind: Option<&str>,
        options: &SourceOptions,
    ) -> Result<Box<dyn Source>, Error> {
        match self {
            Self::Here(path) => open_here(path, kind, options),
            #[cfg(feature = "remote")]
            Self::Elsewhere(mirror) => open_elsewhere(mirror, kind, options),
        }
    }

    /// Names, lengths and times of everything that is read: of objects as they were listed, whose
    /// changes are found when they are fetched and when the source ends.
    pub(crate) fn stamp(&self, options: &SourceOptions) -> Result<SourceStamp, Error> {
        match self {
            Self::Here(path) => {
                let said = [&options.table, &options.root];
                let said = said.into_iter().flatten().map(PathBuf::as_path);
                let paths: Vec<&Path> = std::iter::once(path.as_path()).chain(said).collect();
                SourceStamp::of(&paths, options.follow_links)
            }
            #[cfg(feature = "remote")]
            Self::Elsewhere(mirror) => Ok(mirror.stamp()),
        }
    }

    /// Fails if an object could not be fetched, whatever became of the samples in it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Here(_) => Ok(()),
            #[cfg(feature = "remote")]
            Self::Elsewhere(mirror) => mirror.check(),
        }
    }

    /// An error in terms of what the user named.
    pub(crate) fn told(&self, error: Error) -> Error {
        match self {
            Self::Here(_) => error,
            #[cfg(feature = "remote")]
            Self::Elsewhere(mirror) => mirror.told(error),
        }
    }
}

/// Opens what `path` names, a URL too, as the kind of that name, or as what it is found to be.
pub fn open(
    path: &Path,
    kind: Option<&str>,
    options: &SourceOptions,
) -> Result<Box<dyn Source>, Error> {
    Location::find(path, &options.remote)?.open(kind, options)
}

/// Refuses a URL where something is to be written.
pub(crate) fn refuse_destination(path: &Path) -> Result<(), Error> {
    if is_url(path) {
        return Err(RemoteError::Destination { url: path.display().to_string() }.into());
    }
    Ok(())
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
