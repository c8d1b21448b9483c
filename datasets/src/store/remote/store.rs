//! Objects as the files of a store: listed once, fetched when they are opened.

use super::RemoteOptions;
use super::address::Address;
use super::cache::Folder;
use super::connect::connect;
use super::fetcher::Fetcher;
use super::listing::{Object, list};
use crate::Error;
use crate::error::RemoteError;
use crate::store::StorePath;
use crate::store::traits::{FileKind, Metadata};
use crate::store::tree::{Tree, TreeFiles};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The store of all objects of a URL.
#[derive(Debug)]
pub(crate) struct RemoteStore {
    fetcher: Fetcher,
    tree: Tree,
}

impl RemoteStore {
    /// Lists the objects of a URL and returns its path in a store.
    pub(crate) fn find(url: &str, options: &RemoteOptions) -> Result<StorePath, Error> {
        let address = Address::parse(url)?;
        let client = connect(&address, options)?;
        let failed = |error: io::Error| RemoteError::Cache {
            path: PathBuf::from("a runtime"),
            problem: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("transfers")
            .enable_all()
            .build()
            .map_err(failed)?;
        let watch = options.watch.clone();
        let listing = watch.unless_stopped(list(&client, &address, &watch));
        let listing = runtime.block_on(listing).and_then(|listed| listed);
        let listing = listing.map_err(Error::of_remote)?;
        let folder = Folder::create(options.cache.as_deref())?;
        let opened = listing.opened;
        let paths = listing.objects.iter().map(|object| object.file.clone());
        let tree = Tree::new(listing.base, paths);
        let held = (folder, options.cache_bytes);
        let fetcher = Fetcher::new((client, address), listing.objects, held, runtime, watch);
        Ok(StorePath::new(Arc::new(Self { fetcher, tree }), opened))
    }
}

impl TreeFiles for RemoteStore {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn file(&self, index: usize) -> Metadata {
        let Object { bytes, modified, tag, .. } = &self.fetcher.objects()[index];
        let modified = (modified.0, i64::from(modified.1));
        Metadata { kind: FileKind::File, bytes: *bytes, modified, tag: tag.clone() }
    }

    fn open_file(&self, index: usize) -> io::Result<File> {
        self.fetcher.open(index).map_err(io::Error::other)
    }

    fn reserve_files(&self, folder: &Path, indices: &[usize]) -> io::Result<()> {
        let url = folder.display().to_string();
        self.fetcher.reserve(url, indices).map_err(io::Error::other)
    }

    fn check_files(&self) -> Result<(), Error> {
        self.fetcher.failure().map_or(Ok(()), |failure| Err(Error::of_remote(failure)))
    }

    fn check_files_unchanged(&self) -> Result<(), Error> {
        self.check_files()?;
        let (client, address) = (self.fetcher.client(), self.fetcher.address());
        let now = self.fetcher.wait_for(list(client, address, self.fetcher.watch()));
        let now = now.map_err(Error::of_remote)?.objects;
        let listed = self.fetcher.objects();
        let before: HashMap<_, _> = listed.iter().map(|one| (&one.key, one)).collect();
        let other = now.iter().find(|one| before.get(&one.key) != Some(one));
        let there: HashSet<_> = now.iter().map(|one| &one.key).collect();
        let gone = listed.iter().find(|one| !there.contains(&one.key));
        let (key, what) = match (other, gone) {
            (Some(one), _) if before.contains_key(&one.key) => (&one.key, "it is another one"),
            (Some(one), _) => (&one.key, "it is new"),
            (None, Some(one)) => (&one.key, "it is no longer there"),
            (None, None) => return Ok(()),
        };
        let url = address.url_of(key);
        Err(RemoteError::Changed { url, what: what.to_owned() }.into())
    }
}
