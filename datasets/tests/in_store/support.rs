//! A dataset of pictures, on this machine and on a server.

use crate::server::Server;
use meetpoint_datasets::store::{Deadlines, RemoteOptions, RemoteStores};
use meetpoint_datasets::{PackOptions, pack};
use meetpoint_prepare::{
    Dataset, DatasetPaths, Error, OnDamage, ReadStats, RemoteUse, SampleReader,
};
use meetpoint_storage::{EngineKind, open_engine};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A dataset, and a server of it.
pub(crate) struct Given {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) set: PathBuf,
    pub(crate) server: Server,
    pub(crate) bytes: u64,
}

/// Noise compresses badly, so files are long.
fn jpeg(seed: u32) -> Vec<u8> {
    let (width, height) = (160, 120);
    let mut state = u64::from(seed) + 1;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (state >> 56) as u8
    };
    let pixels: Vec<u8> = (0..width * height * 3).map(|_| noise()).collect();
    let mut out = Vec::new();
    jpeg_encoder::Encoder::new(&mut out, 95)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    out
}

impl Given {
    /// Pictures of about 40 KB each, in parts of about 1 MB.
    pub(crate) fn new(samples: u32) -> Self {
        Self::with_parts_of(samples, 1 << 20)
    }

    /// Pictures of about 40 KB each, in parts of about this size.
    pub(crate) fn with_parts_of(samples: u32, part_bytes_target: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let photos = folder.path().join("photos");
        std::fs::create_dir(&photos).unwrap();
        for number in 0..samples {
            let class = photos.join(["cat", "dog"][number as usize % 2]);
            std::fs::create_dir_all(&class).unwrap();
            std::fs::write(class.join(format!("{number}.jpg")), jpeg(number)).unwrap();
        }
        let set = folder.path().join("photos.set");
        let options = PackOptions { part_bytes_target, ..PackOptions::default() };
        pack(&photos, &set, &options, &mut |_| ()).unwrap();
        let server = Server::start(&set);
        let dataset = Dataset::open(&set).unwrap();
        let bytes = dataset.manifest().parts.iter().map(|part| part.bytes).sum();
        Self { folder, set, server, bytes }
    }

    /// The folder of the cache.
    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The dataset at its URL, with a cache of a number of bytes.
    pub(crate) fn paths(&self, cache_bytes: u64) -> DatasetPaths {
        self.paths_with(cache_bytes, Duration::from_millis(400))
    }

    /// As [`Self::paths`], with a time without a byte after which a request is repeated.
    pub(crate) fn paths_with(&self, cache_bytes: u64, quiet: Duration) -> DatasetPaths {
        let cache = Some(self.cache());
        let options = RemoteOptions { cache, cache_bytes, ..RemoteOptions::default() };
        let deadlines = Deadlines { quiet, range: Duration::from_secs(20).max(quiet) };
        let stores = RemoteStores::new(options).with_deadlines(deadlines);
        DatasetPaths::from(&*self.server.url).opened_by(Arc::new(stores))
    }

    pub(crate) fn open(&self, cache_bytes: u64) -> Result<Arc<Dataset>, Error> {
        Dataset::open_paths(&self.paths(cache_bytes)).map(Arc::new)
    }

    /// As [`Self::open`], but the footer of a part is read when one of its samples is requested.
    pub(crate) fn open_for_samples(&self, cache_bytes: u64) -> Result<Arc<Dataset>, Error> {
        Dataset::open_for_samples(&self.paths(cache_bytes)).map(Arc::new)
    }

    /// The stored bytes of every sample.
    pub(crate) fn expected(&self) -> Vec<Vec<u8>> {
        let dataset = Dataset::open(&self.set).unwrap();
        (0..dataset.len()).map(|sample| dataset.read_sample(sample).unwrap()).collect()
    }

    /// Reads samples in an order, and compares each with the local dataset.
    pub(crate) fn read(
        &self,
        dataset: &Arc<Dataset>,
        order: impl IntoIterator<Item = u64>,
    ) -> Result<ReadStats, Error> {
        let expected = self.expected();
        let engine = open_engine(EngineKind::Auto, 32).unwrap().engine;
        let mut reader = SampleReader::new(Arc::clone(dataset), engine, OnDamage::Fail)?;
        let mut order = order.into_iter();
        reader.read(&mut order, &mut |sample, _, bytes| {
            assert!(bytes == expected[sample as usize], "sample {sample} has other bytes");
            Ok(())
        })
    }
}

pub(crate) fn usage(dataset: &Dataset) -> RemoteUse {
    dataset.remote_use().unwrap()
}

/// Bytes of the file system that a folder takes, without its state.
pub(crate) fn allocated(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(folder).into_iter().flatten() {
        if entry.file_name() == "blocks" {
            bytes += entry.metadata().unwrap().blocks() * 512;
        }
    }
    bytes
}
