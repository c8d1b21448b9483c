//! The segments of a damaged file, one scan header after another, as libjpeg reads them
//! (jdmarker.c, jdinput.c).
//!
//! Where libjpeg only warns, the file is silently accepted; where it fails, this is an error.

use super::super::exif::orientation;
use super::super::markers::code::*;
use super::super::markers::{COMPONENTS_MAX, Coding, Component, Frame, HuffmanSpec, NATURAL};
use super::super::{QuantTable, check_pixels, damaged, standard, unsupported};
use super::input::Input;
use crate::Error;
use arrayvec::ArrayVec;

/// Longest side that libjpeg accepts (`JPEG_MAX_DIMENSION`).
const SIDE_MAX: u32 = 65_500;

/// A component's part in a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Index among the components of the frame.
    pub(super) component: usize,
    /// Numbers of its tables, which need not exist.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// A scan header.
#[derive(Debug, Clone)]
pub(super) struct ScanHead {
    pub(super) parts: ArrayVec<Part, COMPONENTS_MAX>,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) high: u32,
    pub(super) low: u32,
}

/// The state from the markers so far.
#[derive(Debug, Clone)]
pub(super) struct Markers<'a> {
    pub(super) input: Input<'a>,
    /// Without components before the frame header.
    pub(super) frame: Frame,
    /// Vertical sampling factors, as in the file.
    pub(super) factors_down: [u32; COMPONENTS_MAX],
    precision: u8,
    quant_numbers: [u8; COMPONENTS_MAX],
    quant_now: [Option<QuantTable>; 4],
    /// Quantisation table of each component at the beginning of its first scan.
    pub(super) quant: [Option<QuantTable>; COMPONENTS_MAX],
    /// By class and number.
    pub(super) huffman: [[Option<HuffmanSpec>; 4]; 2],
    pub(super) restart_interval: u32,
    pub(super) jfif: bool,
    pub(super) adobe: Option<u8>,
    pub(super) orientation: Option<u8>,
}

impl<'a> Markers<'a> {
    /// Reads a file up to its first scan.
    pub(super) fn open(file: &'a [u8]) -> Result<(Self, ScanHead), Error> {
        let mut markers = Self {
            input: Input::new(file),
            frame: Frame::default(),
            factors_down: [0; COMPONENTS_MAX],
            precision: 0,
            quant_numbers: [0; COMPONENTS_MAX],
            quant_now: [None; 4],
            quant: [None; COMPONENTS_MAX],
            huffman: [[None; 4]; 2],
            restart_interval: 0,
            jfif: false,
            adobe: None,
            orientation: None,
        };
        if [markers.input.byte(), markers.input.byte()] != [0xff, SOI] {
            return Err(damaged(0, "it does not begin with a start marker"));
        }
        let head = markers.next_scan()?.ok_or_else(|| markers.fault("it has no scan"))?;
        markers.check_frame()?;
        markers.fill_in_tables();
        Ok((markers, head))
    }

    /// Reads up to the next scan header; `None` at the end.
    pub(super) fn next_scan(&mut self) -> Result<Option<ScanHead>, Error> {
        loop {
            let marker = self.input.unread.unwrap_or_else(|| self.input.next_marker());
            self.input.unread = None;
            match marker {
                SOI => return Err(self.fault("it has a second start marker")),
                SOF0 => self.frame(Coding::Baseline)?,
                SOF1 => self.frame(Coding::Extended)?,
                SOF2 => self.frame(Coding::Progressive)?,
                DHT => self.huffman()?,
                DAC => self.conditioning()?,
                SOF3..=SOF15 => return Err(self.fault(unsupported::coding(marker))),
                SOS => return self.scan_head().map(Some),
                EOI => return Ok(None),
                DQT => self.quantisation()?,
                DRI => {
                    if self.input.pair() != 4 {
                        return Err(self.fault("its restart interval is not two bytes long"));
                    }
                    self.restart_interval = u32::from(self.input.pair());
                }
                RST0..=RST7 | TEM => (),
                APP0..=APP15 | COM | DNL => self.other(marker),
                _ => return Err(self.fault("it has a marker that is reserved")),
            }
        }
    }

    /// An error at the position of the input.
    pub(super) fn fault(&self, reason: &str) -> Error {
        damaged(self.input.offset(), reason)
    }

    /// Bytes after the length of a segment, which may extend past the end of the file.
    fn length(&mut self) -> usize {
        usize::from(self.input.pair()).saturating_sub(2)
    }

    /// Skips a segment, and reads those whose content matters.
    fn other(&mut self, marker: u8) {
        let length = self.length();
        match marker {
            APP0 | APP14 => {
                // libjpeg reads 14 bytes, even past the end of the file.
                let mut ahead = self.input;
                let bytes: ArrayVec<u8, 14> = (0..length.min(14)).map(|_| ahead.byte()).collect();
                self.jfif |= marker == APP0 && bytes.is_full() && bytes.starts_with(b"JFIF\0");
                if marker == APP14 && bytes.len() >= 12 && bytes.starts_with(b"Adobe") {
                    self.adobe = Some(bytes[11]);
                }
            }
            APP1 => {
                let exif = orientation(self.input.ahead(length));
                self.orientation = self.orientation.or(exif);
            }
            _ => (),
        }
        self.input.skip(length);
    }

    /// Arithmetic coding is not supported, but its conditioning segment may appear in any file.
    fn conditioning(&mut self) -> Result<(), Error> {
        let length = self.length();
        for _ in 0..length.div_ceil(2) {
            let [number, value] = [(); 2].map(|()| self.input.byte());
            if number >= 32 || number < 16 && value & 15 > value >> 4 {
                return Err(self.fault("a conditioning of arithmetic coding is invalid"));
            }
        }
        let reason = "a conditioning of arithmetic coding is cut short";
        if length.is_multiple_of(2) { Ok(()) } else { Err(self.fault(reason)) }
    }

    fn frame(&mut self, coding: Coding) -> Result<(), Error> {
        let length = usize::from(self.input.pair());
        self.precision = self.input.byte();
        let [height, width] = [self.input.pair(), self.input.pair()].map(u32::from);
        let count = usize::from(self.input.byte());
        if self.frame.count != 0 {
            return Err(self.fault("it has more than one frame header"));
        }
        if width == 0 || height == 0 {
            return Err(self.fault("it has no pixels"));
        }
        if !matches!(count, 1 | 3 | 4) || length != 8 + 3 * count {
            return Err(self.fault("its frame header does not name 1, 3 or 4 components"));
        }
        let mut all = [Component::default(); COMPONENTS_MAX];
        for (index, component) in all[..count].iter_mut().enumerate() {
            let [id, factors, table] = [(); 3].map(|()| self.input.byte());
            let (h, v) = (u32::from(factors >> 4), u32::from(factors & 15));
            self.factors_down[index] = v;
            self.quant_numbers[index] = table;
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
                return Err(self.fault("a sampling factor is not in 1..=4"));
            }
            let (h, v) = if count == 1 { (1, 1) } else { (h, v) };
            *component = Component { id, h, v, ..Component::default() };
        }
        self.frame = Frame::new(coding, (width, height), &all[..count]);
        Ok(())
    }

    /// libjpeg's checks at the first scan.
    fn check_frame(&self) -> Result<(), Error> {
        if self.precision != 8 {
            return Err(self.fault(unsupported::NOT_8_BITS));
        }
        if self.frame.width > SIDE_MAX || self.frame.height > SIDE_MAX {
            return Err(self.fault("a side is longer than 65,500 pixels"));
        }
        check_pixels(self.frame.size())
    }

    /// A sequential file may leave out the tables of Annex K.
    fn fill_in_tables(&mut self) {
        if self.frame.coding != Coding::Progressive {
            for (class, tables) in self.huffman.iter_mut().enumerate() {
                for (number, table) in tables.iter_mut().enumerate() {
                    *table = table.or_else(|| standard::table(class, number));
                }
            }
        }
    }

    fn quantisation(&mut self) -> Result<(), Error> {
        let mut left = self.length();
        while left > 0 {
            let kind = self.input.byte();
            let (is_wide, number) = (kind >> 4 != 0, usize::from(kind & 15));
            if number > 3 {
                return Err(self.fault("a quantisation table has an impossible number"));
            }
            let mut table = [0; 64];
            for natural in NATURAL {
                let input = &mut self.input;
                table[usize::from(natural)] =
                    if is_wide { input.pair() } else { u16::from(input.byte()) };
            }
            self.quant_now[number] = Some(QuantTable(table));
            let taken = if is_wide { 129 } else { 65 };
            let short = || self.fault("a quantisation table is cut short");
            left = left.checked_sub(taken).ok_or_else(short)?;
        }
        Ok(())
    }

    fn huffman(&mut self) -> Result<(), Error> {
        let mut left = self.length();
        while left > 16 {
            let kind = self.input.byte();
            let counts: [u8; 16] = [(); 16].map(|()| self.input.byte());
            left -= 17;
            let mut spec = HuffmanSpec { counts, symbols: [0; 256] };
            let count = spec.len();
            if count > 256 || count > left {
                return Err(self.fault("a Huffman table has too many codes"));
            }
            spec.symbols[..count].fill_with(|| self.input.byte());
            left -= count;
            let (class, number) = (usize::from(kind >> 4 & 1), usize::from(kind & !0x10));
            let place = self.huffman[class].get_mut(number);
            *place.ok_or_else(|| {
                damaged(self.input.offset(), "a Huffman table has an impossible number or class")
            })? = Some(spec);
        }
        if left == 0 { Ok(()) } else { Err(self.fault("a Huffman table is cut short")) }
    }

    fn scan_head(&mut self) -> Result<ScanHead, Error> {
        if self.frame.count == 0 {
            return Err(self.fault("a scan comes before the frame header"));
        }
        let length = usize::from(self.input.pair());
        let count = usize::from(self.input.byte());
        if !(1..=COMPONENTS_MAX).contains(&count) || length != 6 + 2 * count {
            return Err(self.fault("a scan header has an impossible length"));
        }
        let mut parts = ArrayVec::<Part, COMPONENTS_MAX>::new();
        for slot in 0..count {
            let [id, tables] = [(); 2].map(|()| self.input.byte());
            // libjpeg checks whether that position in the scan is free.
            let mut known = self.frame.components().iter().enumerate();
            let named = known.position(|(index, c)| c.id == id && index >= slot);
            let component = named.ok_or_else(|| self.fault("a scan names an unknown component"))?;
            if parts.iter().any(|part| part.component == component) {
                return Err(self.fault("a scan names a component twice"));
            }
            let (dc, ac) = (usize::from(tables >> 4), usize::from(tables & 15));
            parts.push(Part { component, dc, ac });
        }
        let [first, last] = [(); 2].map(|()| usize::from(self.input.byte()));
        let bits = self.input.byte();
        let (high, low) = (u32::from(bits >> 4), u32::from(bits & 15));
        Ok(ScanHead { parts, first, last, high, low })
    }

    /// libjpeg's checks when a scan begins, and the values that it saves.
    pub(super) fn begin_scan(&mut self, head: &ScanHead) -> Result<(), Error> {
        let blocks: u32 = (head.parts.iter())
            .map(|part| self.frame.components()[part.component])
            .map(|component| component.h * component.v)
            .sum();
        if head.parts.len() > 1 && blocks > 10 {
            return Err(self.fault("a scan has more than 10 blocks in an MCU"));
        }
        for part in &head.parts {
            if self.quant[part.component].is_none() {
                let number = usize::from(self.quant_numbers[part.component]);
                let table = self.quant_now.get(number).copied().flatten();
                let missing = || self.fault("a quantisation table is not there");
                self.quant[part.component] = Some(table.ok_or_else(missing)?);
            }
        }
        let is_possible = self.frame.coding != Coding::Progressive
            || ((head.first == 0) == (head.last == 0)
                && head.first <= head.last
                && head.last < 64
                && (head.first == 0 || head.parts.len() == 1)
                && (head.high == 0 || head.high == head.low + 1)
                && head.low <= 13);
        match is_possible {
            true => Ok(()),
            false => Err(self.fault("a scan header has impossible progression parameters")),
        }
    }
}
