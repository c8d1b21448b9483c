//! From a JPEG to the pixels of a region, a stripe at a time.
//!
//! Every pixel is that of libjpeg-turbo's default decoder for the whole picture: what a region
//! needs beyond its edges is decoded with it. Memory is a few rows of MCUs, except for files with
//! several scans, whose coefficients are all kept.

use super::colour::Ink;
use super::colours::Colours;
use super::entry_points::{EntryPoints, has_one_sequential_scan};
use super::form::{self, FormError, FormReader, RowScratch};
use super::geometry::{ComponentNeed, Need};
use super::idct::Dequantiser;
use super::lenient::Lenient;
use super::markers::{COMPONENTS_MAX, Coding, Component, Frame, Header};
use super::options::DecodeOptions;
use super::rows::BlockRows;
use super::sequential::{Sequential, TableCache, restart_offsets};
use super::source::Source;
use super::upsample::{self, Place, Side, Upsampling};
use super::window::Window;
use super::{QuantTable, check_pixels};
use crate::decode::Encoded;
use crate::stripe::{ROW_SLACK, Stripe};
use crate::{Cpu, Error, Region};
use arrayvec::ArrayVec;
use meetpoint_format::entry_points::Entry;
use meetpoint_format::recipe::OnError;

/// Decodes JPEGs one after another, reusing its memory.
#[derive(Debug)]
pub(crate) struct JpegDecoder {
    cpu: Cpu,
    header: Header,
    tables: TableCache,
    entries: Vec<Entry>,
    restarts: Vec<u32>,
    form: RowScratch,
    pixels: Pixels,
    /// Whether the headers of the file in hand are damaged.
    is_damaged: bool,
    /// Its Exif orientation.
    orientation: u8,
    /// Whether the last picture was filled in.
    is_filled_in: bool,
}

impl JpegDecoder {
    /// A decoder for an instruction set that this machine has.
    pub(crate) fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            header: Header::default(),
            tables: TableCache::default(),
            entries: Vec::new(),
            restarts: Vec::new(),
            form: RowScratch::default(),
            pixels: Pixels::default(),
            is_damaged: false,
            orientation: 1,
            is_filled_in: false,
        }
    }

    /// Whether the last picture was damaged and filled in.
    pub(crate) fn is_filled_in(&self) -> bool {
        self.is_filled_in
    }

    /// Exif orientation of the file that was opened last, 1..=8.
    pub(crate) fn opened_orientation(&self) -> u8 {
        self.orientation
    }

    /// What is decoded next is no file.
    pub(crate) fn close(&mut self) {
        self.is_filled_in = false;
    }

    /// Reads the headers of a file, which [`JpegDecoder::decode_opened`] then decodes; gives its
    /// columns and rows.
    ///
    /// A file with entry points was sound when they were made, and that it is the same file is
    /// checked before it is decoded.
    pub(crate) fn open(
        &mut self,
        encoded: Encoded<'_>,
        on_error: OnError,
    ) -> Result<(u32, u32), Error> {
        let file = encoded.bytes;
        let header = &mut self.header;
        let parsed = match (encoded.entry_points, on_error) {
            ([_, ..], OnError::Fail) => header.parse_known(file),
            _ => header.parse(file),
        };
        self.is_damaged = parsed.is_err();
        if header.frame.count > 0 {
            check_pixels(&header.frame)?;
        }
        let (frame, orientation) = match (parsed, on_error) {
            (Ok(()), _) => (header.frame, header.orientation),
            (Err(error), OnError::Fail) => return Err(error),
            (Err(_), OnError::Lenient) => {
                let lenient = Lenient::open(file)?;
                (*lenient.frame(), lenient.orientation())
            }
        };
        self.orientation = orientation.unwrap_or(1);
        Ok((frame.width, frame.height))
    }

    /// Decodes a region of the file that was opened last, which must lie inside the picture at the
    /// options' scale, and hands it over from top to bottom.
    pub(crate) fn decode_opened(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        self.is_filled_in = self.is_damaged;
        if self.is_damaged {
            return self.fill_in(encoded.bytes, region, options, sink);
        }
        let mut done = 0;
        let outcome = self.decode_sound(encoded, region, options, &mut |stripe| {
            done += stripe.rows;
            sink(stripe);
        });
        match (outcome, options.on_error) {
            (Err(Error::Decode { .. }), OnError::Lenient) => {
                self.is_filled_in = true;
                // What came before the damage is what it would be without.
                self.fill_in(encoded.bytes, region, options, &mut |stripe| {
                    let above = done.min(stripe.rows);
                    done -= above;
                    if above < stripe.rows {
                        sink(stripe.below(above));
                    }
                })
            }
            (outcome, _) => outcome,
        }
    }

    /// Decodes a damaged file.
    fn fill_in(
        &mut self,
        file: &[u8],
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let lenient = Lenient::open(file)?;
        let frame = *lenient.frame();
        check_region(&frame, region, options)?;
        let need = Need::of(&frame, region, options)?;
        let colours = lenient.colours();
        let fast_transform = options.fast_transform;
        if lenient.has_one_scan() {
            let (rows, quant) = lenient.rows()?;
            let picture = Picture { frame, quant, colours, fast_transform };
            let source = Source::Lenient(rows);
            return self.pixels.run(self.cpu, &picture, region, &need, source, sink);
        }
        let (coefficients, quant) = lenient.whole()?;
        let picture = Picture { frame, quant, colours, fast_transform };
        let source = Source::Whole(&coefficients);
        self.pixels.run(self.cpu, &picture, region, &need, source, sink)
    }

    /// Decodes a file whose headers are sound.
    fn decode_sound(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let file = encoded.bytes;
        let header = &mut self.header;
        header.check_data()?;
        header.check_progress()?;
        check_region(&header.frame, region, options)?;
        let need = Need::of(&header.frame, region, options)?;
        let picture = Picture {
            frame: header.frame,
            quant: header.quant,
            colours: Colours::of(header),
            fast_transform: options.fast_transform,
        };
        if !has_one_sequential_scan(header) {
            let (coefficients, _) = super::whole::read(file, header)?;
            let source = Source::Whole(&coefficients);
            return self.pixels.run(self.cpu, &picture, region, &need, source, sink);
        }
        let entry_points = match encoded.entry_points {
            [] => None,
            bytes => {
                Some(EntryPoints::open(bytes, &mut self.entries, file, encoded.crc32c, header)?)
            }
        };
        restart_offsets(file, header, &mut self.restarts)?;
        let scan =
            Sequential::new(self.cpu, file, header, &mut self.tables, &self.restarts, entry_points);
        self.pixels.run(self.cpu, &picture, region, &need, Source::Sequential(scan), sink)
    }

    /// The same for the coefficient form of a JPEG.
    pub(crate) fn decode_form(
        &mut self,
        stored: &[u8],
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let mut reader = FormReader::open_with(stored, self.cpu, std::mem::take(&mut self.form))?;
        let picture = picture_of(reader.frame(), options);
        if !picture.colours.fits(picture.frame.count) {
            let reason = "its colours are not those of so many components";
            return Err(FormError::Unfit { reason }.into());
        }
        check_region(&picture.frame, region, options)?;
        let need = Need::of(&picture.frame, region, options)?;
        let source = Source::Form(&mut reader);
        let outcome = self.pixels.run(self.cpu, &picture, region, &need, source, sink);
        self.form = reader.into_scratch();
        outcome
    }
}

/// The frame, the tables of its components and their meaning, as a coefficient form has them.
fn picture_of(form: &form::Frame, options: &DecodeOptions) -> Picture {
    let mut quant = [None; COMPONENTS_MAX];
    let mut components = ArrayVec::<Component, COMPONENTS_MAX>::new();
    for (component, quant) in form.components.iter().zip(&mut quant) {
        *quant = form.quant_tables.get(usize::from(component.quant_table)).copied();
        let (h, v) = (u32::from(component.horizontal), u32::from(component.vertical));
        components.push(Component { h, v, ..Component::default() });
    }
    let colours = match form.colour {
        form::Colour::None => Colours::Grey,
        form::Colour::YCbCr => Colours::YCbCr,
        form::Colour::Rgb => Colours::Rgb,
        form::Colour::Cmyk => Colours::Inks(Ink::Cmyk),
        form::Colour::Ycck => Colours::Inks(Ink::Ycck),
    };
    let frame = Frame::new(Coding::Baseline, (form.width, form.height), &components);
    Picture { frame, quant, colours, fast_transform: options.fast_transform }
}

fn check_region(frame: &Frame, region: Region, options: &DecodeOptions) -> Result<(), Error> {
    region.check(options.scale.scaled(frame.width), options.scale.scaled(frame.height))
}

/// What of a file says how coefficients become pixels.
pub(super) struct Picture {
    pub(super) frame: Frame,
    pub(super) quant: [Option<QuantTable>; COMPONENTS_MAX],
    pub(super) colours: Colours,
    pub(super) fast_transform: bool,
}

/// From coefficients to pixels.
#[derive(Debug, Default)]
struct Pixels {
    rows: BlockRows,
    windows: [Window; COMPONENTS_MAX],
    /// Where a row of each component is brought to full resolution.
    full: [Vec<u8>; COMPONENTS_MAX],
    /// Rows that wait to be handed over, red, green and blue.
    planes: [Vec<u8>; 3],
    stride: usize,
}

impl Pixels {
    fn run(
        &mut self,
        cpu: Cpu,
        picture: &Picture,
        region: Region,
        need: &Need,
        mut source: Source<'_, '_>,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let mcus = need.mcu_columns.end - need.mcu_columns.start;
        self.rows.set_size(&picture.frame, mcus);
        for (window, component) in self.windows.iter_mut().zip(need.components()) {
            window.start(component, &need.mcu_columns, need.mcu_rows.start);
        }
        let dequantisers = [0, 1, 2, 3].map(|index| {
            let table = picture.quant[index].unwrap_or(QuantTable([1; 64]));
            match picture.fast_transform {
                true => Dequantiser::new(&table),
                false => Dequantiser::without_fast(&table),
            }
        });
        let how = (cpu, picture.fast_transform);
        self.start_planes(region.width as usize, picture.frame.v_max as usize * 8 + 1);
        let mut y = region.y as usize;
        let end = (region.y + region.height) as usize;
        for mcu_row in need.mcu_rows.clone() {
            source.row(mcu_row, need.mcu_columns.clone(), &mut self.rows)?;
            for (index, need) in need.components().enumerate() {
                let above = usize::from(need.upsampling.needs_context_rows());
                let keep = (y / need.upsampling.factors().1 as usize).saturating_sub(above);
                let blocks = self.rows.component(index);
                self.windows[index].add(how, &dequantisers[index], blocks, need, keep);
            }
            let is_last = mcu_row + 1 == need.mcu_rows.end;
            let ready = if is_last { end } else { self.ready(need).min(end) };
            if ready > y {
                self.hand_over(cpu, picture, need, &region, y..ready, sink);
                y = ready;
            }
        }
        Ok(())
    }

    /// The first row of pixels that needs rows of samples which are not there yet.
    fn ready(&self, need: &Need) -> usize {
        let ready = |(window, need): (&Window, &ComponentNeed)| {
            let below = usize::from(need.upsampling.needs_context_rows());
            window.end() * need.upsampling.factors().1 as usize - below
        };
        self.windows.iter().zip(need.components()).map(ready).min().unwrap_or(0)
    }

    fn start_planes(&mut self, width: usize, rows: usize) {
        self.stride = (width + ROW_SLACK).next_multiple_of(ROW_SLACK);
        for plane in &mut self.planes {
            if plane.len() < rows * self.stride {
                plane.resize(rows * self.stride, 0);
            }
        }
        for row in &mut self.full {
            if row.len() < self.stride {
                row.resize(self.stride, 0);
            }
        }
    }

    /// Makes rows of pixels and hands them over.
    fn hand_over(
        &mut self,
        cpu: Cpu,
        picture: &Picture,
        need: &Need,
        region: &Region,
        rows: std::ops::Range<usize>,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) {
        let width = region.width as usize;
        let count = rows.len();
        for (index, y) in rows.enumerate() {
            let mut full = self.full.each_mut().map(Vec::as_mut_slice).into_iter();
            let samples: [&[u8]; COMPONENTS_MAX] = std::array::from_fn(|component| {
                let into = full.next().expect("there is a row for each component");
                match need.component(component) {
                    Some(need) => full_row(cpu, &self.windows[component], need, region, y, into),
                    None => &[],
                }
            });
            let at = index * self.stride;
            let planes = self.planes.each_mut().map(|plane| &mut plane[at..at + width]);
            picture.colours.convert(cpu, samples, planes);
        }
        sink(Stripe {
            planes: self.planes.each_ref().map(|plane| &plane[..count * self.stride]),
            stride: self.stride,
            width,
            rows: count,
        });
    }
}

/// A component's samples of a row of pixels, at full resolution.
fn full_row<'a>(
    cpu: Cpu,
    window: &'a Window,
    need: &ComponentNeed,
    region: &Region,
    y: usize,
    into: &'a mut [u8],
) -> &'a [u8] {
    let columns = region.x as usize..(region.x + region.width) as usize;
    let first = window.first_column();
    let into = &mut into[..columns.len()];
    let place = Place { first, width: need.width as usize };
    // The row that lies nearest among those above and below.
    let near = y / need.upsampling.factors().1 as usize;
    let is_upper = y.is_multiple_of(2);
    let far = if is_upper { near.saturating_sub(1) } else { near + 1 };
    match need.upsampling {
        Upsampling::None => return &window.row(y)[columns.start - first..columns.end - first],
        Upsampling::FancyH2V1 => upsample::h2v1(cpu, window.row(near), place, columns, into),
        Upsampling::FancyH2V2 => {
            upsample::h2v2(cpu, window.row(near), window.row(far), place, columns, into);
        }
        Upsampling::FancyH1V2 => {
            let side = if is_upper { Side::Upper } else { Side::Lower };
            let part = columns.start - first..columns.end - first;
            let (near, far) = (&window.row(near)[part.clone()], &window.row(far)[part]);
            upsample::h1v2(cpu, near, far, side, into);
        }
        Upsampling::Replicate { columns: factor, .. } => {
            upsample::replicate(cpu, window.row(near), first, factor as usize, columns, into);
        }
    }
    into
}
