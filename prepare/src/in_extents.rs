//! A dataset that is read by its extents: how it is opened, and the engine that reads it.

use crate::dataset_folder::DatasetFolder;
use crate::{Dataset, Error, ExtentFolder};
use meetpoint_storage::extents::{DeviceRange, ExtentEngine, ExtentFiles, open_block_engine};
use meetpoint_storage::{Engine, EngineKind, Error as StorageError, SelectedEngine, open_engine};
use std::path::PathBuf;
use std::sync::Arc;

impl Dataset {
    /// Opens one or several datasets by their extents as one.
    pub fn open_extents(folders: &[Arc<ExtentFolder>]) -> Result<Self, Error> {
        let members = folders.iter().map(DatasetFolder::open_extents).collect::<Result<_, _>>()?;
        Self::of_members(members)
    }

    /// The folders that are read by their extents.
    pub(crate) fn extent_folders(&self) -> impl Iterator<Item = &Arc<ExtentFolder>> {
        self.members().filter_map(|(_, member)| member.extents())
    }

    /// Whether the dataset is read by its extents.
    pub fn has_extents(&self) -> bool {
        self.extent_folders().next().is_some()
    }

    /// Creates the engine that a preparer of this dataset needs: of the given kind, unless the
    /// dataset is on an NVMe namespace that is read by commands.
    pub fn open_engine(
        &self,
        kind: EngineKind,
        depth: usize,
    ) -> Result<SelectedEngine, StorageError> {
        match self.extent_folders().next() {
            None => open_engine(kind, depth),
            Some(folder) => open_block_engine(kind, depth, folder.block()),
        }
    }

    /// `engine`, limited to the extents of the dataset if it is read by them.
    pub(crate) fn limited_to_extents(&self, engine: Box<dyn Engine>) -> Box<dyn Engine> {
        let files: ExtentFiles = self
            .extent_folders()
            .flat_map(|folder| folder.files().iter())
            .map(|(path, file)| (path.clone(), Arc::clone(file)))
            .collect();
        match files.is_empty() {
            true => engine,
            false => Box::new(ExtentEngine::new(engine, files)),
        }
    }

    /// The ranges of storage that hold bytes of a part: ranges of the block device if the dataset
    /// is read by its extents, else of the file of the part.
    pub(crate) fn storage_ranges(
        &self,
        part: usize,
        offset: u64,
        bytes: u64,
    ) -> Vec<(PathBuf, DeviceRange)> {
        let path = self.part_path(part);
        let file = self.extent_folders().find_map(|folder| folder.files().get(&path));
        match file {
            None => vec![(path, DeviceRange { offset, bytes })],
            Some(file) => {
                let bytes = usize::try_from(bytes).expect("at most 256 MiB");
                let ranges = file.device_ranges(offset, bytes).into_iter();
                ranges.map(|range| (file.block().clone(), range)).collect()
            }
        }
    }
}
