//! The markers of a JPEG: its size, and whether its data are all there.
//!
//! The decoder behind the seam fills up with grey what is missing in some cases; this refuses such
//! a file before it is decoded. Marker codes and syntax: ITU-T T.81, Annex B.

use super::ImageFormat;
use crate::Error;

const SOF0: u8 = 0xc0;
const SOF2: u8 = 0xc2;
const DHT: u8 = 0xc4;
const JPG: u8 = 0xc8;
const DAC: u8 = 0xcc;
const SOF15: u8 = 0xcf;
const RST0: u8 = 0xd0;
const RST7: u8 = 0xd7;
const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const TEM: u8 = 0x01;

/// Most components of a frame that are understood: CMYK has four.
const COMPONENTS_MAX: usize = 4;

/// What the frame header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) height: u32,
    progressive: bool,
    components: usize,
    /// Identifier, horizontal and vertical sampling factor of each component.
    sampling: [(u8, u32, u32); COMPONENTS_MAX],
}

impl Frame {
    /// Blocks of 8x8 samples in a scan of these components.
    fn blocks(&self, scanned: &[u8]) -> u64 {
        let sampling = &self.sampling[..self.components];
        let widest = sampling.iter().map(|c| c.1).max().unwrap_or(1);
        let highest = sampling.iter().map(|c| c.2).max().unwrap_or(1);
        let of = |id: u8| sampling.iter().find(|c| c.0 == id).map_or((1, 1), |c| (c.1, c.2));
        if let [only] = scanned {
            let (h, v) = of(*only);
            let columns = (self.width * h).div_ceil(8 * widest);
            let rows = (self.height * v).div_ceil(8 * highest);
            return u64::from(columns) * u64::from(rows);
        }
        let columns = self.width.div_ceil(8 * widest);
        let rows = self.height.div_ceil(8 * highest);
        let units: u32 = scanned.iter().map(|id| of(*id)).map(|(h, v)| h * v).sum();
        u64::from(columns) * u64::from(rows) * u64::from(units)
    }
}

/// Reads up to the frame header.
pub(super) fn frame(encoded: &[u8]) -> Result<Frame, Error> {
    let mut at = 2;
    loop {
        let (marker, segment, next) = segment(encoded, at)?;
        if is_frame(marker) {
            return parse_frame(marker, segment);
        }
        if marker == SOS {
            return Err(damaged("a scan comes before the frame header"));
        }
        at = next;
    }
}

/// Walks over all segments and scans to the end marker.
///
/// A file without its end marker is refused (libjpeg also takes one that lacks only that), and so
/// is one with a scan that is too short to hold even the shortest code of each of its blocks: at
/// least a bit for the DC and one for the AC coefficients.
pub(super) fn check(encoded: &[u8]) -> Result<(), Error> {
    let mut frame = None::<Frame>;
    let mut scans = 0;
    let mut at = 2;
    loop {
        if let Some((EOI, _)) = next_marker(encoded, at) {
            return if scans == 0 { Err(damaged("it has no scan")) } else { Ok(()) };
        }
        let (marker, segment, next) = segment(encoded, at)?;
        at = next;
        if is_frame(marker) {
            if frame.is_some() {
                return Err(damaged("it has more than one frame header"));
            }
            frame = Some(parse_frame(marker, segment)?);
        } else if marker == SOS {
            let frame = frame.ok_or_else(|| damaged("a scan comes before the frame header"))?;
            let end = end_of_scan(encoded, at)
                .ok_or_else(|| damaged("it breaks off: the end marker is missing"))?;
            check_scan(frame, segment, end - at)?;
            scans += 1;
            at = end;
        }
    }
}

fn damaged(reason: &'static str) -> Error {
    ImageFormat::Jpeg.damaged(&reason)
}

fn is_frame(marker: u8) -> bool {
    (SOF0..=SOF15).contains(&marker) && ![DHT, JPG, DAC].contains(&marker)
}

/// The first marker at or after an offset and the offset behind it. Bytes between segments that
/// belong to none, and fill bytes, are passed over as libjpeg does.
fn next_marker(encoded: &[u8], from: usize) -> Option<(u8, usize)> {
    let mut at = from;
    loop {
        at += encoded.get(at..)?.iter().position(|byte| *byte == 0xff)?;
        at += encoded[at..].iter().position(|byte| *byte != 0xff)?;
        if encoded[at] != 0 {
            return Some((encoded[at], at + 1));
        }
    }
}

/// The next segment: marker, content, and the offset behind it.
fn segment(encoded: &[u8], from: usize) -> Result<(u8, &[u8], usize), Error> {
    let (marker, at) = next_marker(encoded, from)
        .ok_or_else(|| damaged("it breaks off: the end marker is missing"))?;
    if (RST0..=SOI).contains(&marker) || marker == TEM {
        return Ok((marker, &[], at));
    }
    if marker == EOI {
        return Err(damaged("it ends before the frame header"));
    }
    let length = encoded.get(at..at + 2).map(|b| usize::from(b[0]) << 8 | usize::from(b[1]));
    let content = length.and_then(|length| encoded.get(at + 2..at + length.max(2)));
    match (length, content) {
        (Some(0 | 1), _) => Err(damaged("a segment is shorter than its own length field")),
        (Some(length), Some(content)) => Ok((marker, content, at + length)),
        _ => Err(damaged("it breaks off inside a segment")),
    }
}

fn parse_frame(marker: u8, segment: &[u8]) -> Result<Frame, Error> {
    if marker > SOF2 {
        return Err(damaged("lossless, hierarchical and arithmetic coding are not supported"));
    }
    let [precision, h1, h0, w1, w0, components, rest @ ..] = segment else {
        return Err(damaged("its frame header is too short"));
    };
    if *precision != 8 {
        return Err(damaged("only 8 bits a sample are supported"));
    }
    let components = usize::from(*components);
    if !matches!(components, 1 | 3 | 4) || rest.len() < components * 3 {
        return Err(damaged("its frame header does not name 1, 3 or 4 components"));
    }
    let mut sampling = [(0, 1, 1); COMPONENTS_MAX];
    for (component, bytes) in sampling.iter_mut().zip(rest.chunks_exact(3)).take(components) {
        let (h, v) = (u32::from(bytes[1] >> 4), u32::from(bytes[1] & 15));
        if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
            return Err(damaged("a sampling factor is not in 1..=4"));
        }
        *component = (bytes[0], h, v);
    }
    Ok(Frame {
        width: u32::from(*w1) << 8 | u32::from(*w0),
        height: u32::from(*h1) << 8 | u32::from(*h0),
        progressive: marker == SOF2,
        components,
        sampling,
    })
}

/// Offset of the marker that ends the entropy-coded data which begin at `from`.
fn end_of_scan(encoded: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += find_ff(encoded.get(at..)?)?;
        match *encoded.get(at + 1)? {
            0 | RST0..=RST7 => at += 2,
            0xff => at += 1,
            _ => return Some(at),
        }
    }
}

/// Position of the first 0xff, looking at 32 bytes at once since they are rare.
fn find_ff(bytes: &[u8]) -> Option<usize> {
    const STEP: usize = 32;
    let free = bytes
        .chunks_exact(STEP)
        .take_while(|chunk| !chunk.iter().fold(false, |found, byte| found | (*byte == 0xff)))
        .count();
    let from = free * STEP;
    bytes[from..].iter().position(|byte| *byte == 0xff).map(|at| from + at)
}

/// Refuses a scan whose data are too short to hold its blocks.
fn check_scan(frame: Frame, header: &[u8], bytes: usize) -> Result<(), Error> {
    let short = || damaged("its scan header is too short");
    let count = usize::from(*header.first().ok_or_else(short)?);
    let selectors = header.get(1..1 + count * 2).ok_or_else(short)?;
    let first = *header.get(1 + count * 2).ok_or_else(short)?;
    let high = *header.get(3 + count * 2).ok_or_else(short)? >> 4;
    let mut scanned = [0; COMPONENTS_MAX];
    if count > frame.components || count == 0 {
        return Err(damaged("a scan names more components than there are"));
    }
    for (id, selector) in scanned.iter_mut().zip(selectors.chunks_exact(2)) {
        *id = selector[0];
    }
    // Runs of blocks without AC coefficients cost no bit each in a progressive file.
    let bits_per_block = match (frame.progressive, first, high) {
        (false, ..) => 2,
        (true, 0, _) => 1,
        (true, ..) => 0,
    };
    let needed = (frame.blocks(&scanned[..count]) * bits_per_block).div_ceil(8);
    if (bytes as u64) < needed {
        return Err(ImageFormat::Jpeg.damaged(&format_args!(
            "a scan of {bytes} bytes cannot hold its picture of {}x{}, at least {needed} are \
             needed: it breaks off",
            frame.width, frame.height
        )));
    }
    Ok(())
}
