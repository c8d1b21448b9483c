//! A dataset by its extents: the same samples, and what is refused.

use crate::support::{SAMPLES, write};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    DatasetExtents, EXTENTS_FORMAT, EXTENTS_VERSION, ExtentDevice, FileExtent, FileExtents,
    MANIFEST_NAME, part_name,
};
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{
    Dataset, Error, ExtentFolder, ExtentFolderError, MappedDataset, OnDamage, SampleReader,
};
use meetpoint_storage::EngineKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Block of the device, and bytes of every extent but the last of a file.
const BLOCK_BYTES: usize = 512;
const EXTENT_BYTES: usize = 3 * BLOCK_BYTES;

/// Scatters the dataset of a folder over an image, backwards and with gaps, which hold other bytes.
pub(crate) fn scatter(folder: &Path) -> DatasetExtents {
    let names = [MANIFEST_NAME.to_owned(), part_name(0), part_name(1)];
    let contents = names.map(|name| (std::fs::read(folder.join(&name)).unwrap(), name));
    let pieces: usize = contents.iter().map(|(bytes, _)| bytes.len().div_ceil(EXTENT_BYTES)).sum();
    let stride = EXTENT_BYTES + BLOCK_BYTES;
    let mut image = vec![0xa5; (pieces + 1) * stride];
    let mut next = pieces;
    let files = contents.iter().map(|(bytes, name)| {
        let extents = bytes.chunks(EXTENT_BYTES).map(|piece| {
            next -= 1;
            let offset = next * stride + BLOCK_BYTES;
            image[offset..offset + piece.len()].copy_from_slice(piece);
            let (offset, bytes) = (offset as u64, piece.len() as u64);
            FileExtent { offset, bytes, crc32c: crc32c(piece) }
        });
        let extents = extents.collect();
        FileExtents { file: name.clone(), bytes: bytes.len() as u64, extents }
    });
    let files = files.collect();
    std::fs::write(folder.join("image"), &image).unwrap();
    let bytes = image.len() as u64;
    let dataset = Dataset::open(folder).unwrap();
    let extents = DatasetExtents {
        format: EXTENTS_FORMAT.to_owned(),
        version: EXTENTS_VERSION,
        manifest_sha256: dataset.manifest_sha256().iter().map(|it| format!("{it:02x}")).collect(),
        device: ExtentDevice {
            name: "image".to_owned(),
            bytes,
            block_bytes: BLOCK_BYTES as u32,
            drive: "drive".to_owned(),
            drive_bytes: bytes + 8192,
            partition_offset: 4096,
        },
        files,
    };
    std::fs::write(folder.join("extents.json"), extents.to_json()).unwrap();
    extents
}

pub(crate) fn open(folder: &Path) -> Result<Arc<ExtentFolder>, Error> {
    let [extents, image] = ["extents.json", "image"].map(|name| folder.join(name));
    Ok(Arc::new(ExtentFolder::open(&extents, &image, EngineKind::Auto)?))
}

fn refusal(folder: &Path) -> ExtentFolderError {
    match open(folder).and_then(|opened| Dataset::open_extents(&[opened])).unwrap_err() {
        Error::Extents { source, .. } => *source,
        other => panic!("{other}"),
    }
}

#[test]
fn every_sample_is_the_same_as_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let expected = write(folder.path(), |_, _| ());
    scatter(folder.path());
    let opened = open(folder.path()).unwrap();
    opened.verify(&Interrupt::default(), &|_| ()).unwrap();
    let dataset = Arc::new(Dataset::open_extents(&[opened]).unwrap());
    assert_eq!(dataset.manifest_sha256(), expected.manifest_sha256());
    assert!(dataset.is_unchanged());
    for sample in 0..SAMPLES {
        assert_eq!(dataset.read_sample(sample).unwrap(), expected.read_sample(sample).unwrap());
        assert_eq!(dataset.key(sample).unwrap(), expected.key(sample).unwrap());
    }
    assert_eq!(dataset.find("17.jpg").unwrap(), Some(17));
    let refused = MappedDataset::new(dataset, false).unwrap_err();
    assert!(matches!(refused, Error::Extents { .. }), "{refused}");
}

#[test]
fn the_drive_of_a_partition_is_recognised_by_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let expected = write(folder.path(), |_, _| ());
    scatter(folder.path());
    let image = std::fs::read(folder.path().join("image")).unwrap();
    let drive = [vec![0; 4096], image, vec![0; 4096]].concat();
    std::fs::write(folder.path().join("image"), drive).unwrap();
    let opened = open(folder.path()).unwrap();
    assert_eq!(opened.begin(), 4096);
    let dataset = Dataset::open_extents(&[opened]).unwrap();
    assert_eq!(dataset.read_sample(3).unwrap(), expected.read_sample(3).unwrap());
    std::fs::write(folder.path().join("image"), vec![0; 4096]).unwrap();
    assert!(matches!(refusal(folder.path()), ExtentFolderError::Length { bytes: 4096, .. }));
}

#[test]
fn several_datasets_are_read_as_one() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let expected = folders.each_ref().map(|folder| write(folder.path(), |_, _| ()));
    let opened = folders.each_ref().map(|folder| {
        scatter(folder.path());
        open(folder.path()).unwrap()
    });
    let dataset = Arc::new(Dataset::open_extents(&opened).unwrap());
    assert_eq!(dataset.len(), 2 * SAMPLES);
    let engine = dataset.open_engine(meetpoint_storage::EngineKind::Threads, 4).unwrap().engine;
    let mut reader = SampleReader::new(dataset, engine, OnDamage::Fail).unwrap();
    let mut next = 2 * SAMPLES;
    let read = reader.read(&mut (0..2 * SAMPLES).rev(), &mut |sample, _, bytes| {
        next -= 1;
        let folder = &expected[(sample / SAMPLES) as usize];
        assert_eq!((sample, bytes), (next, &*folder.read_sample(sample % SAMPLES).unwrap()));
        Ok(())
    });
    read.unwrap();
    assert_eq!(next, 0);
}

#[test]
fn what_was_written_over_is_detected_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let expected = write(folder.path(), |_, _| ());
    let extents = scatter(folder.path());
    let image = std::fs::File::options().write(true).open(folder.path().join("image")).unwrap();
    let location = expected.locate(12).unwrap();
    let index = usize::try_from(location.offset).unwrap() / EXTENT_BYTES;
    let written = extents.files[location.part + 1].extents[index];
    let opened = open(folder.path()).unwrap();
    image.write_all_at(&[0xa5; 3], written.offset + location.offset % EXTENT_BYTES as u64).unwrap();
    image.sync_all().unwrap();
    match opened.verify(&Interrupt::default(), &|_| ()).unwrap_err() {
        Error::Extents { source, .. } => match *source {
            ExtentFolderError::Checksum { file, index: it, .. } => {
                assert_eq!((file, it), (part_name(location.part), index));
            }
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
    let dataset = Dataset::open_extents(&[opened]).unwrap();
    let damaged = dataset.read_sample(12).unwrap_err();
    assert!(matches!(damaged, Error::ChecksumMismatch { .. }), "{damaged}");
    assert_eq!(dataset.read_sample(3).unwrap(), expected.read_sample(3).unwrap());
    // The manifest: nothing is served any more.
    image.write_all_at(b"x", extents.files[0].extents[0].offset + 9).unwrap();
    image.sync_all().unwrap();
    assert!(!dataset.is_unchanged());
    assert!(matches!(refusal(folder.path()), ExtentFolderError::OtherManifest { .. }));
}

#[test]
fn extents_of_other_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), |_, _| ());
    let extents = scatter(folder.path());
    let with = |change: &dyn Fn(&mut DatasetExtents)| {
        let mut changed = extents.clone();
        change(&mut changed);
        std::fs::write(folder.path().join("extents.json"), changed.to_json()).unwrap();
        refusal(folder.path())
    };
    assert!(matches!(with(&|it| it.files.truncate(2)), ExtentFolderError::OtherParts));
    assert!(matches!(with(&|it| it.files.swap(1, 2)), ExtentFolderError::OtherParts));
    let other = |it: &mut DatasetExtents| it.files[1].file = "other".to_owned();
    assert!(matches!(with(&other), ExtentFolderError::OtherParts));
    let beyond = |it: &mut DatasetExtents| it.files[1].extents[0].offset = 1 << 40;
    assert!(matches!(with(&beyond), ExtentFolderError::Extents(_)));
}
