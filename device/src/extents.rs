//! Datasets that a device serves by their extents, without mounting their file system.
//!
//! A host names them by the checksum of `dataset.json`; its paths mean nothing here.

use crate::{Error, ExtentRoot, ServeNotice};
use meetpoint_format::wire::LoadRequest;
use meetpoint_prepare::ExtentFolder;
use meetpoint_storage::EngineKind;
use std::path::PathBuf;
use std::sync::Arc;

/// The datasets that are served by their extents.
#[derive(Debug, Default)]
pub(crate) struct ServedExtents {
    served: Vec<(Option<String>, Arc<ExtentFolder>)>,
}

impl ServedExtents {
    /// Opens all of them through an engine of this kind; with `must_be_named`, each must have a
    /// name.
    pub(crate) fn open(
        given: &[ExtentRoot],
        must_be_named: bool,
        kind: EngineKind,
    ) -> Result<Self, Error> {
        let mut served: Vec<(Option<String>, Arc<ExtentFolder>)> = Vec::with_capacity(given.len());
        for ExtentRoot { name, file, block } in given {
            if must_be_named && name.is_none() {
                return Err(Error::UnnamedExtents { path: file.clone() });
            }
            if let Some(name) = name.clone().filter(|_| served.iter().any(|it| it.0 == *name)) {
                return Err(Error::RootNamedTwice { name });
            }
            let folder = ExtentFolder::open(file, block, kind).map_err(Error::Extents)?;
            served.push((name.clone(), Arc::new(folder)));
        }
        Ok(Self { served })
    }

    /// Their files of extents.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.served.iter().map(|(_, folder)| folder.path().to_path_buf())
    }

    /// The names and files of those that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &ExtentFolder)> {
        self.served.iter().filter_map(|(name, folder)| Some((name.as_deref()?, &**folder)))
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.served.iter().filter_map(|(name, _)| name.as_deref())
    }

    /// For each, what is read, as a notice for the user.
    pub(crate) fn notices(&self) -> impl Iterator<Item = ServeNotice> {
        self.served.iter().map(|(_, folder)| ServeNotice::Extents {
            file: folder.path().to_path_buf(),
            block: folder.block().to_path_buf(),
            device: folder.extents().device.name.clone(),
            begin: folder.begin(),
            engine: folder.engine(),
        })
    }

    /// The datasets of a request, if all of them are served by their extents. A host on this
    /// machine (`is_remote` is false) finds only single datasets.
    pub(crate) fn of_request(
        &self,
        request: &LoadRequest,
        is_remote: bool,
    ) -> Option<Vec<Arc<ExtentFolder>>> {
        let find = |name: &str, sha256: &[u8]| {
            let is_it = |(own, folder): &&(Option<String>, Arc<ExtentFolder>)| {
                (name.is_empty() || own.as_deref() == Some(name))
                    && folder.manifest_sha256()[..] == *sha256
            };
            self.served.iter().find(is_it).map(|(_, folder)| Arc::clone(folder))
        };
        if is_remote {
            let named = request.named.iter().map(|it| find(&it.root, &it.manifest_sha256));
            return named.collect::<Option<Vec<_>>>().filter(|found| !found.is_empty());
        }
        match request.datasets.len() {
            1 => find("", &request.manifest_sha256).map(|folder| vec![folder]),
            _ => None,
        }
    }
}
