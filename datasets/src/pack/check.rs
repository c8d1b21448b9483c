//! Does a file read, does it decode, and what is stored of it.

use super::Check;
use crate::jpeg::{Converted, JpegOptions, convert};
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use meetpoint_kernels::{Picture, decode_into, jpeg, probe};
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What a look into a file gave.
#[derive(Debug)]
pub(super) enum Verdict {
    /// What is stored of it, and the bytes that it had.
    Sound(Converted, u64),
    /// Why it does not read or decode.
    Unreadable(String),
    /// It changed while it was read.
    Changed,
}

/// Memory that is reused from file to file.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    picture: Picture,
    rewritten: Picture,
}

/// Reads a file, looks into it and converts it.
pub(super) fn check(
    path: &Path,
    how: Check,
    options: &JpegOptions,
    scratch: &mut Scratch,
) -> Verdict {
    let image = match read(path) {
        Ok(Some(image)) => image,
        Ok(None) => return Verdict::Changed,
        Err(reason) => return Verdict::Unreadable(reason),
    };
    if jpeg::form_of(&image).is_some() {
        // Unpacked, it would be the JPEG that it was made from, not this file.
        return Verdict::Unreadable(
            "the coefficient form of a JPEG, not a picture file".to_owned(),
        );
    }
    let checked = match how {
        Check::Header => probe(&image).map(|_| None),
        Check::Decode => {
            decode_into(&image, None, &mut scratch.picture).map(|()| Some(&scratch.picture))
        }
    };
    match checked {
        Ok(picture) => {
            let bytes = image.len() as u64;
            Verdict::Sound(convert(image, options, picture, &mut scratch.rewritten), bytes)
        }
        Err(error) => Verdict::Unreadable(error.to_string()),
    }
}

/// The bytes of a file; `None` when it changed meanwhile.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let words = |error: std::io::Error| error.to_string();
    // A pipe that took the place of the file must not hold up the pack.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(words)?;
    let before = file.metadata().map_err(words)?;
    if !before.is_file() {
        return Err("not a regular file".to_owned());
    }
    if before.len() == 0 {
        return Err("the file is empty".to_owned());
    }
    if before.len() > IMAGE_BYTES_MAX {
        return Err(format!("{} bytes, the limit is {IMAGE_BYTES_MAX}", before.len()));
    }
    read_unchanged(&file, &before).map_err(words)
}

/// Reads what `before` promised; `None` when the file is another at the end.
fn read_unchanged(file: &File, before: &Metadata) -> std::io::Result<Option<Vec<u8>>> {
    let bytes = usize::try_from(before.len()).expect("at most IMAGE_BYTES_MAX");
    let mut image = Vec::with_capacity(bytes + 1);
    file.take(before.len() + 1).read_to_end(&mut image)?;
    let after = file.metadata()?;
    let stamp = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    let is_same = image.len() == bytes && stamp(before) == stamp(&after);
    Ok(is_same.then_some(image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_or_shrinks_while_it_is_read_is_told_apart() {
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
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe.jpg");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        let options = JpegOptions::default();
        let verdict = check(&path, Check::Header, &options, &mut Scratch::default());
        assert!(matches!(verdict, Verdict::Unreadable(reason) if reason.contains("regular")));
    }
}
