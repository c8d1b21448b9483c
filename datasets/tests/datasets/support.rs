//! Folders of small pictures, and shorthand for packing and unpacking them.

use meetpoint_datasets::{
    Error, PackOptions, PackSummary, UnpackOptions, UnpackSummary, pack, unpack,
};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::key_index::KEY_INDEX_NAME;
use meetpoint_prepare::Dataset;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A folder with an empty source `in` and the path of a dataset `out`.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder }
    }

    /// Creates one with the same source as another: the same files with the same times.
    pub(crate) fn with_source_of(other: &Self) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for entry in walkdir::WalkDir::new(other.from()) {
            let entry = entry.unwrap();
            let to = bench.from().join(entry.path().strip_prefix(other.from()).unwrap());
            match entry.file_type().is_dir() {
                true => std::fs::create_dir(to).unwrap(),
                false => std::fs::hard_link(entry.path(), to).unwrap(),
            }
        }
        bench
    }

    /// Creates one with a JPEG under each name.
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

    /// Expects packing to fail with `words` in the error, and no file beside the source.
    pub(crate) fn refuses(&self, words: &str) {
        let error = self.pack().unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains(words), "{error:?} does not say {words:?}");
        assert_eq!(self.names(), ["in"]);
    }

    /// The folder that the dataset is unpacked to.
    pub(crate) fn back(&self) -> PathBuf {
        self.folder.path().join("back")
    }

    pub(crate) fn unpack_with(&self, options: &UnpackOptions) -> Result<UnpackSummary, Error> {
        unpack(&self.to(), &self.back(), options, &mut |_| ())
    }

    pub(crate) fn unpack(&self) -> Result<UnpackSummary, Error> {
        self.unpack_with(&UnpackOptions::default())
    }

    /// Changes the manifest of the dataset and updates its checksum.
    pub(crate) fn falsify(&self, change: impl FnOnce(&mut Manifest)) {
        let path = self.to().join(MANIFEST_NAME);
        let mut manifest = Manifest::from_json(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut manifest);
        std::fs::write(path, manifest.to_json()).unwrap();
        // The index of keys belongs to the original manifest.
        let _ = std::fs::remove_file(self.to().join(KEY_INDEX_NAME));
    }

    /// Writes a dataset of one part with these rows, whatever they are.
    pub(crate) fn write_dataset(&self, rows: &[Row], stored: Stored) {
        self.write_dataset_of(&Columns::images(), rows, stored);
    }

    /// Like [`Self::write_dataset`], with any columns.
    pub(crate) fn write_dataset_of(&self, columns: &Columns, rows: &[Row], stored: Stored) {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::new(columns.clone())).unwrap();
        rows.iter().for_each(|row| encoder.push(row.clone()).unwrap());
        let part = encoder.finish().unwrap();
        let lengths = rows.iter().map(|row| row.image.len() as u64);
        let sha256 = Sha256::digest(&part.sink).iter().map(|byte| format!("{byte:02x}")).collect();
        let manifest = Manifest {
            samples: part.samples,
            image_bytes: lengths.clone().sum(),
            image_bytes_max: lengths.max().unwrap(),
            labels: Vec::new(),
            parts: vec![PartEntry {
                file: part_name(0),
                samples: part.samples,
                bytes: part.bytes,
                tail_crc32c: part.tail_crc32c,
                sha256,
            }],
            stored: Some(stored),
            ..Manifest::new(
                columns,
                Provenance {
                    tool: "test".to_owned(),
                    source: "nowhere".to_owned(),
                    skipped: 0,
                    options: BTreeMap::new(),
                    ..Provenance::default()
                },
            )
        };
        std::fs::create_dir(self.to()).unwrap();
        std::fs::write(self.to().join(part_name(0)), part.sink).unwrap();
        std::fs::write(self.to().join(MANIFEST_NAME), manifest.to_json()).unwrap();
    }

    pub(crate) fn dataset(&self) -> Dataset {
        Dataset::open(&self.to()).unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let dataset = self.dataset();
        (0..dataset.len()).map(|sample| dataset.key(sample).unwrap()).collect()
    }

    /// The names beside source and dataset.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.path())
    }
}

/// The pictures that the fixtures were made from.
pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The files below a folder, by path.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    found
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

/// An uncompressed TIFF of 2x2 grey pixels.
pub(crate) fn tiff() -> Vec<u8> {
    let mut bytes = b"II*\0\x0c\0\0\0\x01\x50\xa0\xff".to_vec();
    // Width, height, bits of a sample, photometric interpretation, where the strip lies.
    let entries = [(256, 2), (257, 2), (258, 8), (262, 1), (273, 8)];
    bytes.extend((entries.len() as u16).to_le_bytes());
    for (tag, value) in entries {
        bytes.extend([tag, 3].iter().flat_map(|word: &u16| word.to_le_bytes()));
        bytes.extend([1, value].iter().flat_map(|word: &u32| word.to_le_bytes()));
    }
    bytes.extend([0; 4]);
    bytes
}
