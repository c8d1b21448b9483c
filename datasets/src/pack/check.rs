//! Checks whether a sample can be read and is valid, and converts it to its stored form.

use super::Check;
use crate::error::RemoteError;
use crate::jpeg::{ConversionOutcome, Converted, Converter, Interrupted, JpegOptions};
use crate::message::Message;
use crate::source::{Content, ContentKind, Item};
use crate::store::StorePath;
use meetpoint_format::dataset::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX};
use meetpoint_kernels::{Error as PictureError, Interrupt, Picture, jpeg, probe};
use meetpoint_prepare::{DecodeMemory, NoMemory, Reserved, TooLargeToDecode, picture_bytes};
use meetpoint_storage::is_of_the_file;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;

/// The result of checking a sample.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its stored form, and its original length.
    Sound(Converted, u64),
    /// Why it cannot be read or is invalid.
    Unreadable(Message),
    /// The file that contains it changed while it was read.
    Changed(PathBuf),
    /// The process reached a limit; the sample itself may be valid.
    Failed(PathBuf, std::io::Error),
    /// The caller requested a stop.
    Interrupted,
}

/// How a sample is checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleCheck<'a> {
    /// The expected kind of content.
    pub(super) kind: ContentKind,
    /// How thoroughly an image is checked.
    pub(super) check: Check,
    /// The form in which a JPEG is stored.
    pub(super) jpeg: &'a JpegOptions,
}

/// Buffers that are reused for all samples.
#[derive(Debug)]
pub(super) struct Scratch {
    picture: Picture,
    converter: Converter,
    interrupt: Interrupt,
    /// Memory for large pictures, shared by all threads.
    memory: Arc<DecodeMemory>,
}

impl Scratch {
    /// Buffers for checks that stop when `interrupt` is raised.
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self::sharing(interrupt, DecodeMemory::of_this_process())
    }

    fn sharing(interrupt: Interrupt, memory: Arc<DecodeMemory>) -> Self {
        let converter = Converter::new(interrupt.clone());
        Self { picture: Picture::default(), converter, interrupt, memory }
    }
}

/// Reads the content of a sample, checks and converts it.
pub(super) fn check(
    item: &Item,
    content: Content,
    how: &SampleCheck<'_>,
    to: &mut Scratch,
) -> Verdict {
    if let Some(reason) = cannot_be_stored(item) {
        return Verdict::Unreadable(reason.into());
    }
    if let Err(refusal) = to.memory.check_stored(content.bytes()) {
        return too_large(&refusal);
    }
    let bytes = match read(content) {
        Ok(bytes) => bytes,
        Err(verdict) => return verdict,
    };
    if let Some(reason) = wrong_length(bytes.len() as u64, how.kind) {
        return Verdict::Unreadable(reason.into());
    }
    match how.kind {
        ContentKind::Image => check_image(bytes, how, to),
        ContentKind::Text => match std::str::from_utf8(&bytes) {
            Ok(_) => as_it_is(bytes),
            Err(error) => {
                let reason = format!("not text: invalid UTF-8 from byte {}", error.valid_up_to());
                Verdict::Unreadable(reason.into())
            }
        },
        ContentKind::Audio | ContentKind::Bytes | ContentKind::None => as_it_is(bytes),
    }
}

/// The bytes of a sample.
fn read(content: Content) -> Result<Vec<u8>, Verdict> {
    match content {
        Content::Bytes(bytes) => Ok(bytes),
        Content::File { path, bytes } => {
            let read = read_file(&path, bytes).map_err(|error| failed(&path, error))?;
            read.ok_or_else(|| Verdict::Changed(path.to_path_buf()))
        }
        Content::Range { file, offset, bytes } => {
            let read = read_range(&file.file, offset, bytes);
            let read = read.map_err(|error| failed(&file.path, error))?;
            read.ok_or_else(|| Verdict::Changed(file.path.to_path_buf()))
        }
    }
}

/// The verdict for a failed read.
fn failed(path: &StorePath, error: std::io::Error) -> Verdict {
    // A failed fetch does not make a sample unreadable.
    let is_fetched = RemoteError::of_file(&error).is_none();
    match is_fetched && is_of_the_file(&error) {
        true => Verdict::Unreadable(error.to_string().into()),
        false => Verdict::Failed(path.to_path_buf(), error),
    }
}

/// Stores content byte for byte.
fn as_it_is(stored: Vec<u8>) -> Verdict {
    let bytes = stored.len() as u64;
    Verdict::Sound(
        Converted { stored, entry_points: None, outcome: ConversionOutcome::default() },
        bytes,
    )
}

fn check_image(image: Vec<u8>, how: &SampleCheck<'_>, scratch: &mut Scratch) -> Verdict {
    if jpeg::form_of(&image).is_some() {
        // Unpacking would restore the original JPEG, not this file.
        return Verdict::Unreadable("the coefficient form of a JPEG, not a picture file".into());
    }
    let reserved = match reserve(&image, how, scratch) {
        Ok(reserved) => reserved,
        Err(verdict) => return verdict,
    };
    let verdict = convert_image(image, how, scratch);
    if reserved.is_some() {
        scratch.picture = Picture::default();
        scratch.converter.free_pictures();
    }
    verdict
}

/// Waits for the memory that checking and converting an image takes, where that is much.
fn reserve(
    image: &[u8],
    how: &SampleCheck<'_>,
    scratch: &Scratch,
) -> Result<Option<Reserved>, Verdict> {
    let decoded = match how.check {
        Check::Header => None,
        // What cannot be estimated from its header is refused by the decoder.
        Check::Decode => match (probe(image), picture_bytes(image)) {
            (Ok(info), Ok(bytes)) => {
                Some((3 * u64::from(info.width) * u64::from(info.height), bytes))
            }
            _ => return Ok(None),
        },
    };
    let picture = decoded.map(|(picture, _)| picture);
    let converting = Converter::conversion_bytes(image, how.jpeg, picture);
    let (picture, decoding) = decoded.unwrap_or_default();
    let needed = decoding.max(picture.saturating_add(converting));
    let needed = needed.saturating_add(image.len() as u64);
    let reserved = scratch.memory.reserve(needed, &mut || !scratch.interrupt.is_raised());
    reserved.map_err(|why| match why {
        NoMemory::GivenUp => Verdict::Interrupted,
        NoMemory::Never { .. } => too_large(&scratch.memory.refusal(needed)),
    })
}

/// The verdict for a sample that needs too much memory.
fn too_large(refusal: &TooLargeToDecode) -> Verdict {
    Verdict::Unreadable(Message::from(refusal.to_string()).remedy(refusal.remedy()))
}

fn convert_image(image: Vec<u8>, how: &SampleCheck<'_>, scratch: &mut Scratch) -> Verdict {
    let Scratch { picture, converter, .. } = scratch;
    let checked = match how.check {
        Check::Header => probe(&image).map(|_| None),
        Check::Decode => converter.decode(&image, picture).map(|()| Some(&*picture)),
    };
    match checked {
        Ok(picture) => {
            let bytes = image.len() as u64;
            match converter.convert(image, how.jpeg, picture) {
                Ok(converted) => Verdict::Sound(converted, bytes),
                Err(Interrupted) => Verdict::Interrupted,
            }
        }
        Err(PictureError::Interrupted) => Verdict::Interrupted,
        Err(error) => Verdict::Unreadable(error.to_string().into()),
    }
}

/// Why a dataset cannot store a sample with this key or label.
fn cannot_be_stored(item: &Item) -> Option<String> {
    if item.key.is_empty() {
        return Some("its key is empty".to_owned());
    }
    if item.key.len() > KEY_BYTES_MAX {
        return Some(format!("its key has {} bytes, the limit is {KEY_BYTES_MAX}", item.key.len()));
    }
    let label = item.label.filter(|label| label.is_negative())?;
    Some(format!("its label is {label}; labels are 0 or more"))
}

fn wrong_length(bytes: u64, kind: ContentKind) -> Option<String> {
    match (bytes, kind) {
        (0, ContentKind::None) => None,
        (0, _) => Some("the file is empty".to_owned()),
        (_, ContentKind::None) => Some("it has content, although its kind is none".to_owned()),
        (bytes, _) if bytes > IMAGE_BYTES_MAX => Some(too_long(bytes)),
        _ => None,
    }
}

fn too_long(bytes: u64) -> String {
    format!("{bytes} bytes, the limit is {IMAGE_BYTES_MAX}")
}

/// Reads a file that was listed with `listed` bytes; `None` if it changed meanwhile.
fn read_file(path: &StorePath, listed: u64) -> std::io::Result<Option<Vec<u8>>> {
    let file = path.open()?;
    let before = file.metadata()?;
    if before.len() != listed {
        return Ok(None);
    }
    if before.len() > IMAGE_BYTES_MAX {
        return Err(std::io::Error::other(too_long(before.len())));
    }
    read_unchanged(&file, &before)
}

/// Reads a file with the metadata `before`; `None` if its metadata changed meanwhile.
fn read_unchanged(file: &File, before: &Metadata) -> std::io::Result<Option<Vec<u8>>> {
    let bytes = usize::try_from(before.len()).expect("at most IMAGE_BYTES_MAX");
    let mut image = Vec::with_capacity(bytes);
    while image.len() < bytes {
        // Reads all bytes with one call; the readers of the standard library start with 8 KiB.
        match rustix::io::read(file, spare_capacity(&mut image)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let after = file.metadata()?;
    let stamp = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    let is_same = image.len() == bytes && stamp(before) == stamp(&after);
    Ok(is_same.then_some(image))
}

/// Reads a range of a file; `None` if the file is now too short.
fn read_range(file: &File, offset: u64, bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    if bytes > IMAGE_BYTES_MAX {
        return Err(std::io::Error::other(too_long(bytes)));
    }
    let mut content = vec![0; usize::try_from(bytes).expect("at most IMAGE_BYTES_MAX")];
    match file.read_exact_at(&mut content, offset) {
        Ok(()) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RestartMarkers;
    use crate::source::SampleOrigin;
    use meetpoint_format::dataset::Form;
    use meetpoint_storage::MemoryLimit;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn item(key: &str, label: Option<i32>) -> Item {
        Item {
            key: key.to_owned(),
            origin: SampleOrigin::default(),
            content: Content::Bytes(Vec::new()),
            label,
            extra: None,
        }
    }

    fn look(item: &Item, content: Content, kind: ContentKind) -> Verdict {
        let jpeg = JpegOptions::default();
        let how = SampleCheck { kind, check: Check::Header, jpeg: &jpeg };
        check(item, content, &how, &mut Scratch::new(Interrupt::default()))
    }

    fn jpeg(is_progressive: bool) -> Vec<u8> {
        let pixels: Vec<u8> = (0..64 * 64 * 3_u32).map(|at| (at * at / 97) as u8).collect();
        let mut file = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut file, 85);
        encoder.set_progressive(is_progressive);
        encoder.encode(&pixels, 64, 64, jpeg_encoder::ColorType::Rgb).unwrap();
        file
    }

    #[test]
    fn a_sample_that_is_interrupted_at_any_poll_is_neither_sound_nor_unreadable() {
        let options = |form, restarts| JpegOptions { form, restarts, ..JpegOptions::default() };
        let ways = [
            options(Form::Jpeg, RestartMarkers::Keep),
            options(Form::Compact, RestartMarkers::Keep),
            options(Form::Fast, RestartMarkers::EveryMcuRow),
        ];
        for (is_progressive, jpeg) in [false, true].into_iter().zip([jpeg(false), jpeg(true)]) {
            for (options, level) in
                ways.iter().flat_map(|options| [(options, Check::Decode), (options, Check::Header)])
            {
                let how = SampleCheck { kind: ContentKind::Image, check: level, jpeg: options };
                let look = |raised_at: usize| {
                    let polled = Arc::new(AtomicUsize::new(0));
                    let counter = Arc::clone(&polled);
                    let poll = move || counter.fetch_add(1, Ordering::Relaxed) >= raised_at;
                    let mut scratch = Scratch::new(Interrupt::when(poll));
                    let content = Content::Bytes(jpeg.clone());
                    let verdict = check(&item("a.jpg", None), content, &how, &mut scratch);
                    (verdict, polled.load(Ordering::Relaxed))
                };
                let (verdict, polls) = look(usize::MAX);
                assert!(matches!(verdict, Verdict::Sound(..)), "{is_progressive} {how:?}");
                assert!(polls > 0);
                for raised_at in 0..polls {
                    let (verdict, _) = look(raised_at);
                    let is_interrupted = matches!(verdict, Verdict::Interrupted);
                    assert!(is_interrupted, "{is_progressive} {how:?} {raised_at}: {verdict:?}");
                }
            }
        }
    }

    /// A small file whose header declares many pixels.
    fn declaring_many_pixels(is_progressive: bool) -> Vec<u8> {
        let mut file = jpeg(is_progressive);
        let marker = if is_progressive { 0xc2 } else { 0xc0 };
        let frame = file.windows(2).position(|two| two == [0xff, marker]).unwrap();
        file[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
        file
    }

    #[test]
    fn a_picture_that_exceeds_the_memory_for_decoding_alone_is_unreadable_with_a_remedy() {
        let process = MemoryLimit { bytes: 300 << 20, available_bytes: 0, file: None };
        let memory = DecodeMemory::of_limit(&process, 2);
        for (is_progressive, check, is_refused) in [
            // The whole picture, or all coefficients, or neither.
            (false, Check::Decode, true),
            (true, Check::Decode, true),
            (true, Check::Header, true),
            (false, Check::Header, false),
        ] {
            let jpeg = JpegOptions::default();
            let how = SampleCheck { kind: ContentKind::Image, check, jpeg: &jpeg };
            let mut scratch = Scratch::sharing(Interrupt::default(), Arc::clone(&memory));
            let content = Content::Bytes(declaring_many_pixels(is_progressive));
            let verdict = super::check(&item("a.jpg", None), content, &how, &mut scratch);
            let is_of_memory = refused(&verdict, "decoding may use");
            assert_eq!(is_of_memory, is_refused, "{is_progressive} {check:?}: {verdict:?}");
            if let (true, Verdict::Unreadable(reason)) = (is_refused, &verdict) {
                assert!(reason.advice().is_some());
            }
            assert_eq!(memory.reserved(), 0);
        }
    }

    #[test]
    fn a_picture_waits_for_the_memory_of_others_until_it_is_interrupted() {
        let process = MemoryLimit { bytes: 2 << 30, available_bytes: 0, file: None };
        let memory = DecodeMemory::of_limit(&process, 2);
        let of_another = memory.reserve(memory.limit(), &mut || true).unwrap();
        let polls = AtomicUsize::new(0);
        let interrupt = Interrupt::when(move || polls.fetch_add(1, Ordering::Relaxed) > 2);
        let mut scratch = Scratch::sharing(interrupt, Arc::clone(&memory));
        let jpeg = JpegOptions::default();
        let how = SampleCheck { kind: ContentKind::Image, check: Check::Decode, jpeg: &jpeg };
        let content = Content::Bytes(declaring_many_pixels(false));
        let verdict = super::check(&item("a.jpg", None), content, &how, &mut scratch);
        assert!(matches!(verdict, Verdict::Interrupted), "{verdict:?}");
        drop(of_another);
        assert_eq!(memory.reserved(), 0);
    }

    fn refused(verdict: &Verdict, words: &str) -> bool {
        matches!(verdict, Verdict::Unreadable(reason) if reason.to_string().contains(words))
    }

    #[test]
    fn files_that_grow_or_shrink_while_they_are_read_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        std::fs::write(&path, b"twelve bytes").unwrap();
        let before = path.metadata().unwrap();
        let read = || read_unchanged(&File::open(&path).unwrap(), &before).unwrap();
        assert_eq!(read().as_deref(), Some(&b"twelve bytes"[..]));
        std::fs::write(&path, b"twelve bytes!").unwrap();
        assert_eq!(read(), None);
        std::fs::write(&path, b"four").unwrap();
        assert_eq!(read(), None);
        assert_eq!(read_file(&StorePath::local(&path), 12).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_not_regular_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe.jpg");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        let content = Content::File { path: StorePath::local(path), bytes: 0 };
        let verdict = look(&item("pipe.jpg", None), content, ContentKind::Image);
        assert!(refused(&verdict, "regular"));
    }

    #[test]
    fn a_range_is_read_in_place_and_a_truncated_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(read_range(&file, 3, 4).unwrap(), Some(b"3456".to_vec()));
        assert_eq!(read_range(&file, 8, 4).unwrap(), None);
        assert!(read_range(&file, 0, u64::MAX).is_err());
    }

    #[test]
    fn texts_are_utf_8_and_samples_without_content_have_none() {
        let bytes = |bytes: &[u8]| Content::Bytes(bytes.to_vec());
        let text = look(&item("a", None), bytes("é".as_bytes()), ContentKind::Text);
        assert!(matches!(text, Verdict::Sound(converted, 2) if converted.stored == "é".as_bytes()));
        let latin = look(&item("a", None), bytes(b"caf\xe9"), ContentKind::Text);
        assert!(refused(&latin, "invalid UTF-8 from byte 3"));
        let none = look(&item("a", None), bytes(b""), ContentKind::None);
        assert!(matches!(none, Verdict::Sound(_, 0)));
        assert!(refused(&look(&item("a", None), bytes(b"x"), ContentKind::None), "content"));
        assert!(refused(&look(&item("a", None), bytes(b""), ContentKind::Audio), "empty"));
    }

    #[test]
    fn keys_and_labels_that_a_dataset_cannot_hold_are_refused() {
        let look = |item: &Item| look(item, Content::Bytes(vec![1]), ContentKind::Bytes);
        assert!(refused(&look(&item("", None)), "key is empty"));
        assert!(refused(&look(&item(&"k".repeat(4097), None)), "4097 bytes"));
        assert!(refused(&look(&item("a", Some(-1))), "label is -1"));
        assert!(matches!(look(&item("a", Some(0))), Verdict::Sound(_, 1)));
    }
}
