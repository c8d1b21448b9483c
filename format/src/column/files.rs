//! Several byte strings as one: the files of the objects of a sample.

/// The byte strings, which are stored one after another, each preceded by its length (u64,
/// little-endian).
pub fn files_of(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (file, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(file)
    })
}
