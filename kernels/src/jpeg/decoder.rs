//! From a JPEG to the pixels of a region, a stripe at a time.
//!
//! Every pixel is that of libjpeg-turbo's default decoder for the whole picture: what a region
//! needs beyond its edges is decoded with it. Memory is a few rows of MCUs, except for files with
//! several scans, whose coefficients are all kept.

use super::check_pixels;
use super::colour::Ink;
use super::colours::Colours;
use super::entry_points::{EntryPoints, has_one_sequential_scan};
use super::form::{self, FormError, FormReader, RowScratch};
use super::geometry::Need;
use super::lenient::Lenient;
use super::markers::{COMPONENTS_MAX, Coding, Component, Frame, Header};
use super::options::DecodeOptions;
use super::pixels::{Picture, Pixels};
use super::sequential::{Sequential, TableCache, restart_offsets};
use super::source::Source;
use crate::decode::Encoded;
use crate::stripe::Stripe;
use crate::{Cpu, Error, Interrupt, Region};
use arrayvec::ArrayVec;
use meetpoint_format::entry_points::Entry;
use meetpoint_format::recipe::OnError;

/// Decodes JPEGs one after another, reusing its memory.
#[derive(Debug)]
pub(crate) struct JpegDecoder {
    cpu: Cpu,
    interrupt: Interrupt,
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
            interrupt: Interrupt::default(),
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

    /// Stops decoding when it is raised.
    pub(crate) fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
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
        self.is_damaged = matches!(parsed, Err(Error::Decode { .. }));
        if header.frame.count > 0 {
            check_pixels(&header.frame)?;
        }
        let (frame, orientation) = match (parsed, on_error) {
            (Ok(()), _) => (header.frame, header.orientation),
            (Err(Error::Decode { .. }), OnError::Lenient) => {
                let lenient = Lenient::open(file)?;
                (*lenient.frame(), lenient.orientation())
            }
            (Err(error), _) => return Err(error),
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
            let (rows, quant) = lenient.rows(&self.interrupt)?;
            let picture = Picture { frame, quant, colours, fast_transform };
            let source = Source::Lenient(rows);
            let how = (self.cpu, &self.interrupt);
            return self.pixels.run(how, &picture, region, &need, source, sink);
        }
        let (coefficients, quant) = lenient.whole(&self.interrupt)?;
        let picture = Picture { frame, quant, colours, fast_transform };
        let source = Source::Whole(&coefficients);
        self.pixels.run((self.cpu, &self.interrupt), &picture, region, &need, source, sink)
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
        let how = (self.cpu, &self.interrupt);
        if !has_one_sequential_scan(header) {
            let (coefficients, _) = super::whole::read(file, header, &self.interrupt)?;
            let source = Source::Whole(&coefficients);
            return self.pixels.run(how, &picture, region, &need, source, sink);
        }
        let entry_points = match encoded.entry_points {
            [] => None,
            bytes => {
                Some(EntryPoints::open(bytes, &mut self.entries, file, encoded.crc32c, header)?)
            }
        };
        restart_offsets(file, header, &mut self.restarts)?;
        let scan =
            Sequential::new(how, file, header, &mut self.tables, &self.restarts, entry_points);
        self.pixels.run(how, &picture, region, &need, Source::Sequential(scan), sink)
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
        let how = (self.cpu, &self.interrupt);
        let outcome = self.pixels.run(how, &picture, region, &need, source, sink);
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
