//! From a JPEG to the pixels of a region, a stripe at a time.
//!
//! Every pixel equals that of libjpeg-turbo's default decoder for the whole picture: neighbours
//! that a region needs beyond its edges are decoded too. Memory is a few rows of MCUs, except for
//! files with several scans, whose coefficients are all stored.

use super::colour::{Ink, interleave};
use super::colours::Colours;
use super::entry_points::{Entry, EntryPoints};
use super::form::{self, FormError, FormReader, RowScratch};
use super::form_codec::{form_of, orientation};
use super::geometry::Need;
use super::lenient::Lenient;
use super::limits::check_pixels;
use super::markers::{COMPONENTS_MAX, Coding, Component, Frame, Header};
use super::options::{DecodeOptions, OnDamage, OutputColour};
use super::pixels::{Conversion, Pixels};
use super::sequential::{Sequential, TableCache, restart_offsets};
use super::source::Source;
use crate::{Cpu, Encoded, Error, Interrupt, Picture, Region, Stripe};
use arrayvec::ArrayVec;

/// Decodes JPEGs and coefficient forms one after another, reusing its memory.
///
/// [`Decoder::decode_into`] does it in one call. A caller that first needs the size calls
/// [`Decoder::open`] and then [`Decoder::decode_opened`], which does not read the headers again.
#[derive(Debug)]
pub struct Decoder {
    cpu: Cpu,
    interrupt: Interrupt,
    header: Header,
    tables: TableCache,
    entries: Vec<Entry>,
    restarts: Vec<u32>,
    form: RowScratch,
    pixels: Pixels,
    /// Whether the headers of the opened file are damaged.
    is_damaged: bool,
    /// Its Exif orientation.
    orientation: u8,
    /// Whether the last picture was filled in.
    is_filled_in: bool,
}

/// Decodes a whole file, or a coefficient form, to RGB.
///
/// Grey becomes RGB; CMYK and YCCK are converted as Pillow does. The Exif [`orientation`] is not
/// applied. A [`Decoder`] reuses its memory.
///
/// [`orientation`]: crate::orientation
pub fn decode(encoded: &[u8]) -> Result<Picture, Error> {
    let mut picture = Picture::default();
    Decoder::new().decode_into(encoded.into(), None, &DecodeOptions::default(), &mut picture)?;
    Ok(picture)
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for the best instruction set of this machine.
    pub fn new() -> Self {
        Self::with_cpu(Cpu::detect())
    }

    /// A decoder for an instruction set. Panics when this machine lacks it.
    pub fn with_cpu(cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
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

    /// Stops decoding with [`Error::Interrupted`] when it is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Whether the last picture was damaged and filled in.
    pub fn is_filled_in(&self) -> bool {
        self.is_filled_in
    }

    /// Exif orientation of the picture that was opened last, 1..=8. The bytes must be those that
    /// were opened; of a file they are not read again.
    pub fn opened_orientation(&self, encoded: &[u8]) -> Result<u8, Error> {
        match form_of(encoded) {
            Some(_) => orientation(encoded),
            None => Ok(self.orientation),
        }
    }

    /// Decodes a region (the whole picture for `None`) to RGB into `out`, whose memory is reused.
    /// The region is one of the picture at the options' scale.
    ///
    /// Pixels are as those of [`decode`]. After an error the content of `out` is unspecified.
    pub fn decode_into(
        &mut self,
        encoded: Encoded<'_>,
        region: Option<Region>,
        options: &DecodeOptions,
        out: &mut Picture,
    ) -> Result<(), Error> {
        let (width, height) = self.open(encoded, options.on_damage)?;
        let [width, height] = [width, height].map(|side| options.scale.scaled(side));
        let region = region.unwrap_or(Region { x: 0, y: 0, width, height });
        let cpu = self.cpu;
        let mut done = 0;
        self.decode_opened(encoded, region, options, &mut |stripe| {
            if done == 0 {
                // Allocated with the first rows: a header alone allocates nothing.
                out.set_size(region.width, region.height);
            }
            let row_bytes = region.width as usize * 3;
            let pixels = &mut out.pixels[done * row_bytes..][..stripe.rows * row_bytes];
            for (y, pixels) in pixels.chunks_exact_mut(row_bytes).enumerate() {
                let row = [0, 1, 2].map(|plane| &stripe.row(plane, y)[..stripe.width]);
                interleave(cpu, row, pixels);
            }
            done += stripe.rows;
        })
    }

    /// Reads the headers of a file or a coefficient form, which [`Decoder::decode_opened`] then
    /// decodes; returns its columns and rows of pixels.
    ///
    /// A file with entry points was sound when they were made; before decoding, the checksum shows
    /// that it is the same file.
    pub fn open(&mut self, encoded: Encoded<'_>, on_damage: OnDamage) -> Result<(u32, u32), Error> {
        let size = match form_of(encoded.bytes) {
            Some(_) => {
                self.is_filled_in = false;
                form::size(encoded.bytes)?
            }
            None => self.open_file(encoded, on_damage)?,
        };
        check_pixels(size)?;
        Ok(size)
    }

    fn open_file(
        &mut self,
        encoded: Encoded<'_>,
        on_damage: OnDamage,
    ) -> Result<(u32, u32), Error> {
        let file = encoded.bytes;
        let header = &mut self.header;
        let parsed = match (encoded.entry_points, on_damage) {
            ([_, ..], OnDamage::Fail) => header.parse_known(file),
            _ => header.parse(file),
        };
        self.is_damaged = matches!(parsed, Err(Error::Damaged { .. }));
        if header.frame.count > 0 {
            check_pixels(header.frame.size())?;
        }
        let (frame, orientation) = match (parsed, on_damage) {
            (Ok(()), _) => (header.frame, header.orientation),
            (Err(Error::Damaged { .. }), OnDamage::FillIn) => {
                let lenient = Lenient::open(file)?;
                (*lenient.frame(), lenient.orientation())
            }
            (Err(error), _) => return Err(error),
        };
        self.orientation = orientation.unwrap_or(1);
        Ok((frame.width, frame.height))
    }

    /// Decodes a region of the picture that was opened last, which must lie inside the picture at
    /// the options' scale, and passes it to `sink` in stripes from top to bottom that are as wide
    /// as the region. After an error, discard the stripes that were passed.
    pub fn decode_opened(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        if form_of(encoded.bytes).is_some() {
            return self.decode_form(encoded.bytes, region, options, sink);
        }
        self.is_filled_in = self.is_damaged;
        if self.is_damaged {
            return self.fill_in(encoded.bytes, region, options, sink);
        }
        let mut done = 0;
        let outcome = self.decode_sound(encoded, region, options, &mut |stripe| {
            done += stripe.rows;
            sink(stripe);
        });
        match (outcome, options.on_damage) {
            (Err(Error::Damaged { .. }), OnDamage::FillIn) => {
                self.is_filled_in = true;
                // Rows before the damage are as in an undamaged file.
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
        let colours = lenient.colours();
        let need = Need::of(&frame, region, options, colours)?;
        let output = options.colour;
        if lenient.has_one_scan() {
            let (rows, quant) = lenient.rows(&self.interrupt)?;
            let picture = Conversion { frame, quant, colours, output };
            let source = Source::Lenient(rows);
            let how = (self.cpu, &self.interrupt);
            return self.pixels.run(how, &picture, region, &need, source, sink);
        }
        let (coefficients, quant) = lenient.whole(&self.interrupt)?;
        let picture = Conversion { frame, quant, colours, output };
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
        let colours = Colours::of(header);
        let need = Need::of(&header.frame, region, options, colours)?;
        let output = options.colour;
        let picture = Conversion { frame: header.frame, quant: header.quant, colours, output };
        let how = (self.cpu, &self.interrupt);
        if !header.has_one_sequential_scan() {
            let (coefficients, _) = super::coefficient_reader::read(file, header, &self.interrupt)?;
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

    /// Decodes the coefficient form of a JPEG.
    fn decode_form(
        &mut self,
        stored: &[u8],
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let mut reader = FormReader::open_with(stored, self.cpu, std::mem::take(&mut self.form))?;
        let picture = form_picture(reader.frame(), options.colour)?;
        check_region(&picture.frame, region, options)?;
        let need = Need::of(&picture.frame, region, options, picture.colours)?;
        let source = Source::Form(&mut reader);
        let how = (self.cpu, &self.interrupt);
        let outcome = self.pixels.run(how, &picture, region, &need, source, sink);
        self.form = reader.into_scratch();
        outcome
    }
}

/// The frame, the tables of its components and their meaning, as a coefficient form has them.
pub(super) fn form_picture(form: &form::Frame, output: OutputColour) -> Result<Conversion, Error> {
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
    if !colours.fits(frame.count) {
        let reason = "its colour model does not match its number of components";
        return Err(FormError::Unfit { reason }.into());
    }
    Ok(Conversion { frame, quant, colours, output })
}

/// Refuses a region that is not inside the picture at the options' scale.
pub(super) fn check_region(
    frame: &Frame,
    region: Region,
    options: &DecodeOptions,
) -> Result<(), Error> {
    let [width, height] = [frame.width, frame.height].map(|side| options.scale.scaled(side));
    match region.is_inside(width, height) {
        true => Ok(()),
        false => Err(Error::Region { region, width, height }),
    }
}
