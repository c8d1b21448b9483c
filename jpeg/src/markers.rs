//! Parses the markers of a JPEG: frame, tables, scans, and the offsets of all parts.
//!
//! Marker codes and syntax: ITU-T T.81, Annex B. Bytes between segments and fill bytes are skipped,
//! as in libjpeg; a file without its end marker is refused.

use super::exif::orientation;
pub(crate) use super::frame::{COMPONENTS_MAX, Coding, Component, Frame};
pub(crate) use super::huffman_spec::HuffmanSpec;
use super::{QuantTable, damaged, unsupported};
use crate::Error;
use std::ops::Range;

/// Marker codes, the byte after 0xff.
pub(crate) mod code {
    pub(crate) const TEM: u8 = 0x01;
    pub(crate) const SOF0: u8 = 0xc0;
    pub(crate) const SOF1: u8 = 0xc1;
    pub(crate) const SOF2: u8 = 0xc2;
    pub(crate) const SOF3: u8 = 0xc3;
    pub(crate) const DHT: u8 = 0xc4;
    pub(crate) const JPG: u8 = 0xc8;
    pub(crate) const DAC: u8 = 0xcc;
    pub(crate) const SOF15: u8 = 0xcf;
    pub(crate) const RST0: u8 = 0xd0;
    pub(crate) const RST7: u8 = 0xd7;
    pub(crate) const SOI: u8 = 0xd8;
    pub(crate) const EOI: u8 = 0xd9;
    pub(crate) const SOS: u8 = 0xda;
    pub(crate) const DQT: u8 = 0xdb;
    pub(crate) const DNL: u8 = 0xdc;
    pub(crate) const DRI: u8 = 0xdd;
    pub(crate) const DHP: u8 = 0xde;
    pub(crate) const EXP: u8 = 0xdf;
    pub(crate) const APP0: u8 = 0xe0;
    pub(crate) const APP1: u8 = 0xe1;
    pub(crate) const APP14: u8 = 0xee;
    pub(crate) const APP15: u8 = 0xef;
    pub(crate) const JPG0: u8 = 0xf0;
    pub(crate) const COM: u8 = 0xfe;
}
use code::*;

/// Maximum number of scans of a file; encoders write about ten. Each one covers the blocks of the
/// whole picture, and may consist of few bytes.
pub(crate) const SCANS_MAX: usize = 100;

/// Maximum number of segments of a file: enough for the tables of [`SCANS_MAX`] scans, and for 256
/// MiB of metadata (ICC, XMP, previews) in segments half as long as the format allows.
pub(crate) const SEGMENTS_MAX: usize = 8192 + 16 * SCANS_MAX;

/// Zigzag position to natural order (T.81 Figure A.6).
pub(crate) const NATURAL: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// A component's part in a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ScanComponent {
    /// Index among the components of the frame.
    pub(crate) component: usize,
    /// Index in [`Header::huffman`] of the DC table, if the scan has one.
    pub(crate) dc: Option<usize>,
    /// Index in [`Header::huffman`] of the AC table, if the scan has one.
    pub(crate) ac: Option<usize>,
}

/// A scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scan {
    all: [ScanComponent; COMPONENTS_MAX],
    count: usize,
    /// First zigzag position.
    pub(crate) first: u8,
    /// Last zigzag position.
    pub(crate) last: u8,
    /// Successive approximation: bit position of the scan before, 0 for none.
    pub(crate) high: u8,
    /// Successive approximation: bit position of this scan.
    pub(crate) low: u8,
    /// MCUs between restart markers, 0 for none.
    pub(crate) restart_interval: u32,
    /// The entropy-coded bytes, restart markers included.
    pub(crate) data: Range<usize>,
}

impl Scan {
    /// Its components in their order.
    pub(crate) fn components(&self) -> &[ScanComponent] {
        &self.all[..self.count]
    }
}

/// A segment: marker, then two bytes of length, then content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Marker.
    pub(crate) marker: u8,
    /// From the last 0xff before the marker to the end of its content.
    pub(crate) bytes: Range<usize>,
    /// The content after the length.
    pub(crate) content: Range<usize>,
}

/// The parsed markers. Reused from file to file.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) frame: Frame,
    /// Quantisation table of each component at the beginning of its first scan.
    pub(crate) quant: [Option<QuantTable>; COMPONENTS_MAX],
    /// The Huffman tables that scans use, in the order of their first use.
    pub(crate) huffman: Vec<HuffmanSpec>,
    pub(crate) scans: Vec<Scan>,
    /// All segments in order, scan headers included; not the entropy-coded data.
    pub(crate) segments: Vec<Segment>,
    /// Whether there is a JFIF segment.
    pub(crate) jfif: bool,
    /// Colour transform of the Adobe segment.
    pub(crate) adobe: Option<u8>,
    /// Exif orientation, 1..=8.
    pub(crate) orientation: Option<u8>,
    /// Offset after the end marker.
    pub(crate) end: usize,
    /// Huffman tables in effect while parsing, by class (DC, AC) and destination.
    huffman_now: [[Option<TableInEffect>; 4]; 2],
    quant_now: [Option<QuantTable>; 4],
    restart_now: u32,
    /// How much of the file is parsed.
    reach: ParseExtent,
}

/// A Huffman table that the next scan may use.
#[derive(Debug, Clone, Copy)]
struct TableInEffect {
    spec: HuffmanSpec,
    /// Index in [`Header::huffman`], once a scan has used it.
    index: Option<usize>,
}

/// How much of a file [`Header`] parses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ParseExtent {
    /// All of it.
    #[default]
    File,
    /// Up to the frame header.
    Frame,
    /// Up to the first scan header.
    Scan,
    /// Up to the data of the first scan, if that is sequential, of all components and without
    /// restart markers.
    Data,
}

impl Header {
    /// Whether the file can be decoded sequentially, without storing all coefficients.
    pub(crate) fn has_one_sequential_scan(&self) -> bool {
        self.frame.coding != Coding::Progressive
            && self.scans.len() == 1
            && self.scans[0].components().len() == self.frame.count
    }

    /// Parses a file up to its end marker.
    pub(crate) fn parse(&mut self, file: &[u8]) -> Result<(), Error> {
        self.clear();
        self.walk(file)
    }

    /// Parses a file that is known to be complete and, if its first scan has all components, to
    /// have no other scan. The data of such a scan are assumed to extend to the end of the file,
    /// without a search for their end.
    pub(crate) fn parse_known(&mut self, file: &[u8]) -> Result<(), Error> {
        self.clear();
        self.reach = ParseExtent::Data;
        self.walk(file)
    }

    /// Parses a file up to the frame header: only [`Header::frame`] is valid then.
    pub(crate) fn parse_frame_only(&mut self, file: &[u8]) -> Result<(), Error> {
        self.clear();
        self.reach = ParseExtent::Frame;
        self.walk(file)
    }

    /// Parses a file up to its first scan header, which [`Header::scans`] then holds without data.
    pub(crate) fn parse_to_scan(&mut self, file: &[u8]) -> Result<(), Error> {
        self.clear();
        self.reach = ParseExtent::Scan;
        self.walk(file)
    }

    fn clear(&mut self) {
        let take = std::mem::take::<Self>;
        let Self { mut huffman, mut scans, mut segments, .. } = take(self);
        huffman.clear();
        scans.clear();
        segments.clear();
        *self = Self { huffman, scans, segments, ..Self::default() };
    }

    fn walk(&mut self, file: &[u8]) -> Result<(), Error> {
        if !file.starts_with(&[0xff, SOI]) {
            return Err(damaged(0, "it does not begin with a start marker"));
        }
        let mut at = 2;
        loop {
            let (marker, behind) = next_marker(file, at)
                .ok_or_else(|| damaged(file.len(), "it is truncated: the end marker is missing"))?;
            at = behind;
            match marker {
                RST0..=RST7 | TEM => continue,
                SOI => return Err(damaged(at - 2, "it has a second start marker")),
                2..SOF0 | DHP | EXP | JPG0..COM => {
                    return Err(damaged(at - 2, "it has a marker that is reserved"));
                }
                EOI if self.frame.count == 0 => {
                    return Err(damaged(at - 2, "it ends before the frame header"));
                }
                EOI if self.scans.is_empty() => return Err(damaged(at - 2, "it has no scan")),
                EOI => {
                    self.end = at;
                    return self.check_complete();
                }
                _ => (),
            }
            let content = segment_content(file, at)?;
            if self.segments.len() == SEGMENTS_MAX {
                return Err(Error::TooMany { what: "segments", limit: SEGMENTS_MAX });
            }
            self.segments.push(Segment {
                marker,
                bytes: at - 2..content.end,
                content: content.clone(),
            });
            at = content.end;
            let bytes = &file[content.clone()];
            let start = content.start;
            match marker {
                DQT => self.quantisation(bytes, start)?,
                DHT => self.huffman(bytes, start)?,
                DRI => match bytes {
                    [high, low] => self.restart_now = u32::from(u16::from_be_bytes([*high, *low])),
                    _ => return Err(damaged(start, "its restart interval is not two bytes long")),
                },
                SOF0..=SOF15 if ![JPG, DAC].contains(&marker) => {
                    if self.frame.count != 0 {
                        return Err(damaged(start, "it has more than one frame header"));
                    }
                    self.frame = frame(marker, bytes, start)?;
                    if self.reach == ParseExtent::Frame {
                        return Ok(());
                    }
                }
                DAC => return Err(damaged(start, unsupported::ARITHMETIC)),
                SOS => {
                    at = self.scan(file, bytes, start, at)?;
                    if self.reach == ParseExtent::Scan {
                        return Ok(());
                    }
                    if at == file.len() {
                        // Its end was not searched for.
                        self.end = at;
                        return self.check_complete();
                    }
                }
                // The colours of a picture are determined when its first scan begins.
                _ if !self.scans.is_empty() => (),
                APP0 => self.jfif |= bytes.len() >= 14 && bytes.starts_with(b"JFIF\0"),
                APP1 => self.orientation = self.orientation.or_else(|| orientation(bytes)),
                APP14 if bytes.len() >= 12 && bytes.starts_with(b"Adobe") => {
                    self.adobe = Some(bytes[11]);
                }
                _ => (),
            }
        }
    }

    fn quantisation(&mut self, mut bytes: &[u8], at: usize) -> Result<(), Error> {
        let short = || damaged(at, "a quantisation table is cut short");
        while let [kind, rest @ ..] = bytes {
            let (wide, index) = (kind >> 4, usize::from(kind & 15));
            if wide > 1 || index > 3 {
                return Err(damaged(at, "a quantisation table has an impossible number or width"));
            }
            let length = 64 << wide;
            let values = rest.get(..length).ok_or_else(short)?;
            let mut table = [0; 64];
            for (zigzag, natural) in NATURAL.iter().enumerate() {
                table[usize::from(*natural)] = match wide {
                    0 => u16::from(values[zigzag]),
                    _ => u16::from_be_bytes([values[2 * zigzag], values[2 * zigzag + 1]]),
                };
            }
            self.quant_now[index] = Some(QuantTable(table));
            bytes = &rest[length..];
        }
        Ok(())
    }

    fn huffman(&mut self, mut bytes: &[u8], at: usize) -> Result<(), Error> {
        while let [kind, rest @ ..] = bytes {
            let (class, index) = (usize::from(kind >> 4), usize::from(kind & 15));
            if class > 1 || index > 3 {
                return Err(damaged(at, "a Huffman table has an impossible number or class"));
            }
            let short = || damaged(at, "a Huffman table is cut short");
            let counts: [u8; 16] = *rest.first_chunk().ok_or_else(short)?;
            let mut spec = HuffmanSpec { counts, symbols: [0; 256] };
            let length = spec.len();
            if length > 256 {
                return Err(damaged(at, "a Huffman table has more than 256 codes"));
            }
            spec.symbols[..length].copy_from_slice(rest.get(16..16 + length).ok_or_else(short)?);
            self.huffman_now[class][index] = Some(TableInEffect { spec, index: None });
            bytes = &rest[16 + length..];
        }
        Ok(())
    }

    /// Index in `huffman` of the table in effect at a destination. As in libjpeg, a sequential file
    /// may leave out those of Annex K.
    fn table(&mut self, class: usize, destination: usize) -> Option<usize> {
        let now = self.huffman_now[class].get_mut(destination)?;
        if now.is_none() && self.frame.coding != Coding::Progressive {
            let spec = super::standard::table(class, destination)?;
            *now = Some(TableInEffect { spec, index: None });
        }
        let now = now.as_mut()?;
        Some(*now.index.get_or_insert_with(|| {
            self.huffman.push(now.spec);
            self.huffman.len() - 1
        }))
    }

    /// Reads a scan header and finds the end of its data, which it returns.
    fn scan(&mut self, file: &[u8], bytes: &[u8], at: usize, data: usize) -> Result<usize, Error> {
        if self.frame.count == 0 {
            return Err(damaged(at, "a scan comes before the frame header"));
        }
        if self.scans.len() == SCANS_MAX {
            return Err(Error::TooMany { what: "scans", limit: SCANS_MAX });
        }
        let count = usize::from(bytes.first().copied().unwrap_or(0));
        if !(1..=self.frame.count).contains(&count) || bytes.len() != 4 + 2 * count {
            return Err(damaged(at, "a scan header has an impossible length"));
        }
        let [first, last, approximation] = [0, 1, 2].map(|i| bytes[1 + 2 * count + i]);
        let (high, low) = (approximation >> 4, approximation & 15);
        let progressive = self.frame.coding == Coding::Progressive;
        let possible = if progressive {
            (first == 0) == (last == 0)
                && first <= last
                && last < 64
                && low <= 13
                && (high == 0 || high == low + 1)
                && (first == 0 || count == 1)
        } else {
            true // As in libjpeg, a sequential scan is complete whatever these parameters are.
        };
        if !possible {
            return Err(damaged(at, "a scan header has impossible progression parameters"));
        }
        let mut all = [ScanComponent::default(); COMPONENTS_MAX];
        for (index, pair) in bytes[1..].chunks_exact(2).take(count).enumerate() {
            let named = self.frame.components().iter().position(|c| c.id == pair[0]);
            let component =
                named.ok_or_else(|| damaged(at, "a scan names an unknown component"))?;
            if all[..index].iter().any(|earlier| earlier.component == component) {
                return Err(damaged(at, "a scan names a component twice"));
            }
            let mut table = |class: usize, index: u8| {
                let missing = || damaged(at, "a scan names a missing Huffman table");
                let index = self.table(class, usize::from(index)).ok_or_else(missing)?;
                let fault = fault(&self.huffman[index], class);
                fault.map_or(Ok(index), |reason| Err(damaged(at, reason)))
            };
            let needs_dc = if progressive { first == 0 && high == 0 } else { true };
            let needs_ac = if progressive { first > 0 } else { true };
            all[index] = ScanComponent {
                component,
                dc: needs_dc.then(|| table(0, pair[1] >> 4)).transpose()?,
                ac: needs_ac.then(|| table(1, pair[1] & 15)).transpose()?,
            };
            if self.quant[component].is_none() {
                let table = self.quant_now[self.frame.components()[component].table];
                let table = table.ok_or_else(|| damaged(at, "a quantisation table is missing"))?;
                self.quant[component] = Some(table);
            }
        }
        let blocks: u32 = all[..count]
            .iter()
            .map(|part| self.frame.components()[part.component])
            .map(|component| component.h * component.v)
            .sum();
        if count > 1 && blocks > 10 {
            return Err(damaged(at, "a scan has more than 10 blocks in an MCU"));
        }
        let is_known = self.reach == ParseExtent::Data
            && self.scans.is_empty()
            && count == self.frame.count
            && !progressive
            && self.restart_now == 0;
        let end = match self.reach {
            ParseExtent::Scan => data,
            _ if is_known => file.len(),
            _ => end_of_scan(file, data)?,
        };
        let (first, last) = if progressive { (first, last) } else { (0, 63) };
        self.scans.push(Scan {
            all,
            count,
            first,
            last,
            high: if progressive { high } else { 0 },
            low: if progressive { low } else { 0 },
            restart_interval: self.restart_now,
            data: data..end,
        });
        Ok(end)
    }

    /// Refuses a file with a scan that is too short to hold even the shortest code of each of its
    /// blocks: in a sequential one a bit for DC and one for the AC coefficients.
    pub(crate) fn check_data(&self) -> Result<(), Error> {
        for scan in &self.scans {
            // Blocks without AC coefficients may cost no bits in a progressive file.
            let progressive = self.frame.coding == Coding::Progressive;
            let bits = if progressive { u64::from(scan.first == 0) } else { 2 };
            let component = |part: &ScanComponent| &self.frame.components()[part.component];
            let blocks: u64 = match scan.components() {
                [only] => {
                    let (wide, high) = component(only).blocks_alone();
                    u64::from(wide) * u64::from(high)
                }
                parts => parts
                    .iter()
                    .map(component)
                    .map(|c| u64::from(c.blocks_wide) * u64::from(c.blocks_high))
                    .sum(),
            };
            let needed = (bits * blocks).div_ceil(8);
            let bytes = scan.data.len();
            if (bytes as u64) < needed {
                let problem = format_args!(
                    "it is truncated: a scan has {bytes} bytes, at least {needed} are needed"
                );
                return Err(damaged(scan.data.start, problem));
            }
        }
        Ok(())
    }

    /// Refuses a progressive file that lacks some of its lowest frequencies. libjpeg decodes it
    /// with smoothing (jdcoefct.c, `smoothing_ok`).
    pub(crate) fn check_progress(&self) -> Result<(), Error> {
        /// Zigzag positions that smoothing uses, without DC.
        const LOW: std::ops::RangeInclusive<usize> = 1..=9;
        if self.frame.coding != Coding::Progressive {
            return Ok(());
        }
        // For each position the bits that are still missing, 16 before the first scan.
        let mut missing = [[16; 64]; COMPONENTS_MAX];
        for scan in &self.scans {
            for part in scan.components() {
                let positions = usize::from(scan.first)..=usize::from(scan.last);
                missing[part.component][positions].fill(scan.low);
            }
        }
        let is_complete = |missing: &[u8; 64]| missing[LOW].iter().all(|bits| *bits == 0);
        if missing[..self.frame.count].iter().all(is_complete) {
            return Ok(());
        }
        Err(damaged(self.end - 2, "it is truncated: a progressive file without all of its scans"))
    }

    /// Every component must have a scan.
    fn check_complete(&self) -> Result<(), Error> {
        let missing = self.quant[..self.frame.count].iter().any(Option::is_none);
        if missing { Err(damaged(self.end - 2, "a component has no scan")) } else { Ok(()) }
    }
}

/// What is wrong with a table of a class, 0 for DC. As in libjpeg, this does not matter while no
/// scan uses it.
fn fault(spec: &HuffmanSpec, class: usize) -> Option<&'static str> {
    if !fits(&spec.counts) {
        Some("a Huffman table has more codes than its lengths allow")
    } else if class == 0 && spec.symbols.iter().any(|size| *size > 15) {
        Some("a Huffman table for DC has a size above 15")
    } else {
        None
    }
}

/// Whether codes of these lengths are unambiguous and leave the code of all ones free (T.81 C.2).
fn fits(counts: &[u8; 16]) -> bool {
    let mut code = 0_u32;
    counts.iter().enumerate().all(|(length, count)| {
        code += u32::from(*count);
        let fits = *count == 0 || code < 1 << (length + 1);
        code <<= 1;
        fits
    })
}

/// The first marker at or after an offset and the offset after it.
fn next_marker(file: &[u8], from: usize) -> Option<(u8, usize)> {
    let mut at = from;
    loop {
        at += memchr::memchr(0xff, file.get(at..)?)?;
        at += file[at..].iter().position(|byte| *byte != 0xff)?;
        if file[at] != 0 {
            return Some((file[at], at + 1));
        }
    }
}

/// The content of the segment whose length field is at an offset.
fn segment_content(file: &[u8], at: usize) -> Result<Range<usize>, Error> {
    let length = file.get(at..at + 2).map(|b| usize::from(b[0]) << 8 | usize::from(b[1]));
    match length {
        Some(0 | 1) => Err(damaged(at, "a segment is shorter than its own length field")),
        Some(length) if at + length <= file.len() => Ok(at + 2..at + length),
        _ => Err(damaged(at, "it is truncated inside a segment")),
    }
}

/// Offset of the 0xff of the marker that ends the entropy-coded data which begin at `from`.
///
/// Fill bytes are allowed only before markers. libjpeg also accepts them before a stuffed byte, but
/// what it decodes then depends on its internal state.
fn end_of_scan(file: &[u8], from: usize) -> Result<usize, Error> {
    for at in memchr::memchr_iter(0xff, &file[from..]) {
        match file.get(from + at + 1) {
            Some(0 | RST0..=RST7) => (),
            // A fill byte; continue at the second one.
            Some(0xff) if file.get(from + at + 2) != Some(&0) => (),
            Some(0xff) => return Err(damaged(from + at, "a fill byte stands in a scan's data")),
            Some(_) => return Ok(from + at),
            None => break,
        }
    }
    Err(damaged(file.len(), "it is truncated: the end marker is missing"))
}

fn frame(marker: u8, bytes: &[u8], at: usize) -> Result<Frame, Error> {
    let coding = match marker {
        SOF0 => Coding::Baseline,
        SOF1 => Coding::Extended,
        SOF2 => Coding::Progressive,
        _ => return Err(damaged(at, unsupported::coding(marker))),
    };
    let [precision, h1, h0, w1, w0, count, rest @ ..] = bytes else {
        return Err(damaged(at, "its frame header is too short"));
    };
    if *precision != 8 {
        return Err(damaged(at, unsupported::NOT_8_BITS));
    }
    let count = usize::from(*count);
    if !matches!(count, 1 | 3 | 4) || rest.len() != count * 3 {
        return Err(damaged(at, "its frame header does not name 1, 3 or 4 components"));
    }
    let width = u32::from(u16::from_be_bytes([*w1, *w0]));
    let height = u32::from(u16::from_be_bytes([*h1, *h0]));
    if width == 0 || height == 0 {
        return Err(damaged(at, "it has no pixels"));
    }
    let mut all = [Component::default(); COMPONENTS_MAX];
    for (index, bytes) in rest.chunks_exact(3).enumerate() {
        let (mut h, mut v) = (u32::from(bytes[1] >> 4), u32::from(bytes[1] & 15));
        if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
            return Err(damaged(at, "a sampling factor is not in 1..=4"));
        }
        if bytes[2] > 3 {
            return Err(damaged(at, "a component names an impossible quantisation table"));
        }
        if all[..index].iter().any(|earlier| earlier.id == bytes[0]) {
            return Err(damaged(at, "two components have the same identifier"));
        }
        if count == 1 {
            (h, v) = (1, 1);
        }
        let table = usize::from(bytes[2]);
        all[index] = Component { id: bytes[0], h, v, table, ..Component::default() };
    }
    Ok(Frame::new(coding, (width, height), &all[..count]))
}
