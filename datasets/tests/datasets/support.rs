//! Folders of small pictures, and shorthand for packing them.

use meetpoint_datasets::{Error, PackOptions, PackSummary, pack};
use meetpoint_prepare::Dataset;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a source `in` to be filled and room for a dataset `out`.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder }
    }

    /// With a JPEG under each name.
    pub(crate) fn with_images(names: &[&str]) -> Self {
        let bench = Self::new();
        for (index, name) in names.iter().enumerate() {
            bench.put(name, &jpeg(8 + index as u16, 9, index as u8));
        }
        bench
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn from(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    pub(crate) fn to(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Puts a file into the source.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.from().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn pack_with(&self, options: &PackOptions) -> Result<PackSummary, Error> {
        pack(&self.from(), &self.to(), options, &mut |_| ())
    }

    pub(crate) fn pack(&self) -> Result<PackSummary, Error> {
        self.pack_with(&PackOptions::default())
    }

    /// Packs, and expects words in the error and nothing beside the source.
    pub(crate) fn refuses(&self, words: &str) {
        let error = self.pack().unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} does not say {words:?}");
        assert_eq!(self.names(), ["in"]);
    }

    pub(crate) fn dataset(&self) -> Dataset {
        Dataset::open(&self.to()).unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let dataset = self.dataset();
        (0..dataset.len()).map(|sample| dataset.key(sample).unwrap()).collect()
    }

    /// What lies beside source and dataset.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.path())
    }
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A picture whose content depends on `seed`.
pub(crate) fn jpeg(width: u16, height: u16, seed: u8) -> Vec<u8> {
    let pixels: Vec<u8> = (0..usize::from(width) * usize::from(height) * 3)
        .map(|index| (index * 7) as u8 ^ seed.wrapping_mul(37))
        .collect();
    let mut bytes = Vec::new();
    jpeg_encoder::Encoder::new(&mut bytes, 80)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    bytes
}

/// A picture in another format.
pub(crate) fn picture(format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_fn(5, 4, |x, y| image::Rgb([x as u8 * 40, y as u8 * 50, 7]))
        .write_to(&mut bytes, format)
        .unwrap();
    bytes.into_inner()
}
