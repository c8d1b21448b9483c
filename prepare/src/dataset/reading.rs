//! Reading samples synchronously, and their errors.

use super::Dataset;
use crate::{Error, TooLargeToDecode, original};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::SampleLocation;
use std::borrow::Cow;

impl Dataset {
    /// A sample's stored bytes, read synchronously and compared with their checksum.
    pub fn read_sample(&self, sample: u64) -> Result<Vec<u8>, Error> {
        let location = self.locate(sample)?;
        self.read_located(sample, &location)
    }

    /// The file of a sample: its stored bytes, or the original file if they are its coefficient
    /// form.
    pub fn read_file(&self, sample: u64) -> Result<Vec<u8>, Error> {
        let location = self.locate(sample)?;
        let stored = self.read_located(sample, &location)?;
        match self.file_of(sample, &location, &stored)? {
            Cow::Borrowed(_) => Ok(stored),
            Cow::Owned(file) => Ok(file),
        }
    }

    /// The original file of a sample's stored bytes, which may be the bytes themselves.
    pub fn file_of<'a>(
        &self,
        sample: u64,
        location: &SampleLocation,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, Error> {
        original(stored).map_err(|source| {
            let (part, row, key) = self.location_in_words(sample, location);
            Error::Sample { part, row, key, source }
        })
    }

    /// As [`Self::read_sample`], for a sample whose location is known.
    pub fn read_located(&self, sample: u64, location: &SampleLocation) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; usize::try_from(location.bytes).expect("at most 256 MiB")];
        self.read_located_into(sample, location, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`Self::read_located`], into memory of `location.bytes` bytes.
    pub fn read_located_into(
        &self,
        sample: u64,
        location: &SampleLocation,
        into: &mut [u8],
    ) -> Result<(), Error> {
        self.read_image(sample, location, into)?;
        self.check_image(sample, location, into).or_else(|error| {
            into.copy_from_slice(&self.read_again(sample, location, error)?);
            Ok(())
        })
    }

    /// Reads an image synchronously.
    pub(crate) fn read_image(
        &self,
        sample: u64,
        location: &SampleLocation,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let &SampleLocation { part, offset, .. } = location;
        if let (Some(file), Some((_, contents))) = (&location.file, self.contents(part)) {
            let read = contents.read_exact_at(file, offset, into);
            return read.map_err(|error| self.in_place(sample, location, error));
        }
        let (member, own) = self.of_part(part);
        self.members[member].read_part(own, offset, into).map_err(|source| {
            let (_, row, key) = self.location_in_words(sample, location);
            Error::Read { row, key, source }
        })
    }

    /// An error of a file outside of the parts, with the sample that was read from it.
    pub(crate) fn in_place(&self, sample: u64, location: &SampleLocation, error: Error) -> Error {
        use Error::{Content, ContentChanged, ContentChecksum};
        if !matches!(error, Content { .. } | ContentChanged { .. } | ContentChecksum { .. }) {
            return error;
        }
        let (_, row, key) = self.location_in_words(sample, location);
        Error::InPlace { row, key, source: Box::new(error) }
    }

    /// Compares the bytes of an image with their checksum.
    pub(crate) fn check_image(
        &self,
        sample: u64,
        location: &SampleLocation,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let got = crc32c(bytes);
        if got == location.crc32c {
            return Ok(());
        }
        let expected = location.crc32c;
        if location.file.is_some() {
            let (path, offset) = (self.content_path(location), location.offset);
            let bytes = location.bytes;
            let error = Error::ContentChecksum { path, offset, bytes, got, expected };
            return Err(self.in_place(sample, location, error));
        }
        let (part, row, key) = self.location_in_words(sample, location);
        Err(Error::ChecksumMismatch { part, row, key, got, expected })
    }

    /// The error of a sample that needs too much memory to decode.
    pub(crate) fn too_large(
        &self,
        (sample, location): (u64, &SampleLocation),
        source: TooLargeToDecode,
    ) -> Error {
        let (part, row, key) = self.location_in_words(sample, location);
        Error::DecodeMemory { part, row, key, source }
    }

    /// Part file, row and key of a sample, for an error message.
    pub(crate) fn location_in_words(
        &self,
        sample: u64,
        location: &SampleLocation,
    ) -> (String, u64, String) {
        let key = self.key(sample).unwrap_or_else(|error| format!("(unreadable: {error})"));
        (self.content_path(location).display().to_string(), location.row, key)
    }
}
