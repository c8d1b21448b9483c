//! Memory for decoding large samples while they are profiled, which all threads share.

use crate::Error;
use meetpoint_kernels::{SampleId, SamplePreparer, jpeg, probe};
use meetpoint_prepare::{DecodeMemory, Reserved, picture_bytes};

/// Waits for the memory in which a sample is prepared from its file, where that is much. What
/// cannot be estimated from its header is refused by the decoder.
pub(super) fn for_preparing(
    preparer: &SamplePreparer,
    file: &[u8],
    id: SampleId,
    key: impl FnOnce() -> String,
) -> Result<Option<Reserved>, Error> {
    let result = probe(file).map_or(0, |it| 3 * u64::from(it.width) * u64::from(it.height));
    let Ok(needed) = preparer.memory_bytes(file, id) else { return Ok(None) };
    reserve(needed.saturating_add(result), file, key)
}

/// As [`for_preparing`], for decoding a whole picture.
pub(super) fn for_decoding(
    file: &[u8],
    key: impl FnOnce() -> String,
) -> Result<Option<Reserved>, Error> {
    picture_bytes(file).map_or(Ok(None), |needed| reserve(needed, file, key))
}

/// As [`for_preparing`], for converting a JPEG to a coefficient form.
pub(super) fn for_conversion(
    file: &[u8],
    key: impl FnOnce() -> String,
) -> Result<Option<Reserved>, Error> {
    jpeg::conversion_bytes(file).map_or(Ok(None), |needed| reserve(needed, file, key))
}

fn reserve(
    needed: u64,
    file: &[u8],
    key: impl FnOnce() -> String,
) -> Result<Option<Reserved>, Error> {
    let memory = DecodeMemory::of_this_process();
    let needed = needed.saturating_add(file.len() as u64);
    let reserved = memory.reserve(needed, &mut || true);
    reserved.map_err(|_| Error::DecodeMemory { key: key(), source: memory.refusal(needed) })
}
