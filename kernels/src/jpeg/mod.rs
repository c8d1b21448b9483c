//! Stand-ins for the stored forms of JPEG: magic number and the file itself.

use crate::Error;

/// Which coefficient form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub enum Form {
    Compact,
    Fast,
}

const COMPACT: &[u8] = b"MPCFcomp";
const FAST: &[u8] = b"MPCFfast";

/// Err(Error::NotReproducible{..}) when the original could not come back byte for byte.
pub fn to_form(file: &[u8], form: Form) -> Result<Vec<u8>, Error> {
    if file.windows(5).any(|bytes| bytes == b"never") {
        return Err(Error::NotReproducible { reason: "stand-in".to_owned() });
    }
    let magic = if form == Form::Compact { COMPACT } else { FAST };
    Ok([magic, file].concat())
}

/// By magic.
pub fn form_of(stored: &[u8]) -> Option<Form> {
    if stored.starts_with(COMPACT) {
        Some(Form::Compact)
    } else if stored.starts_with(FAST) {
        Some(Form::Fast)
    } else {
        None
    }
}

/// The original file.
pub fn from_form(stored: &[u8]) -> Result<Vec<u8>, Error> {
    form_of(stored).ok_or(Error::UnknownFormat)?;
    Ok(stored[COMPACT.len()..].to_vec())
}

/// How far entry points lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub enum Spacing {
    McuRow,
    Mcus(u16),
}

/// None where the file is not baseline/sequential single scan (nothing to enter at).
pub fn entry_points(file: &[u8], spacing: Spacing) -> Result<Option<Vec<u8>>, Error> {
    // What `rewrite` made counts as baseline.
    if is_progressive(file) && !file.ends_with(b"\0") {
        return Ok(None);
    }
    let step = match spacing {
        Spacing::McuRow => 100,
        Spacing::Mcus(count) => usize::from(count),
    };
    let head = (file.len() as u32).to_le_bytes();
    Ok(Some(head.into_iter().chain(file.iter().step_by(step).copied()).collect()))
}

/// What to do with restart markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub enum Restarts {
    Keep,
    Remove,
    EveryMcus(u16),
    EveryMcuRows(u16),
}

/// What to do with Huffman tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub enum HuffmanTables {
    Keep,
    Optimise,
}

/// What to do with the coding process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub enum Process {
    Keep,
    Baseline,
    Progressive,
}

/// How to re-write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "stand-in")]
pub struct Rewrite {
    pub restarts: Restarts,
    pub tables: HuffmanTables,
    pub process: Process,
}

/// Re-writes without changing a coefficient. (Appends a byte after the end of the image.)
pub fn rewrite(file: &[u8], how: &Rewrite) -> Result<Vec<u8>, Error> {
    let _ = how;
    Ok([file, b"\0"].concat())
}

/// Whether the frame is progressive.
pub fn is_progressive(file: &[u8]) -> bool {
    file.windows(2).take_while(|pair| *pair != [0xff, 0xda]).any(|pair| pair == [0xff, 0xc2])
}
