//! A JPEG file to its coefficient form and back, byte for byte.

use super::colour::Ink;
use super::colours::Colours;
use super::form::{self, Colour, FormComponent};
use super::markers::{Coding, Header};
use super::skeleton::{assemble_until, dismantle_until};
use super::{Form, Skeleton, check_pixels, damaged};
use crate::{Cpu, Error, Interrupt};
use arrayvec::ArrayVec;

/// The coefficient form of a file.
///
/// [`Error::NotReproducible`] for a file that cannot be restored from its coefficients byte for
/// byte.
pub fn to_form(file: &[u8], form: Form) -> Result<Vec<u8>, Error> {
    to_form_until(file, form, &Interrupt::default())
}

/// [`to_form`] with an interrupt.
pub fn to_form_until(file: &[u8], form: Form, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let mut header = Header::default();
    header.parse(file)?;
    check_pixels(header.frame.size())?;
    header.check_progress()?;
    let (skeleton, coefficients) = dismantle_until(file, interrupt)?;
    let mut frame = form::Frame {
        width: header.frame.width,
        height: header.frame.height,
        colour: match Colours::of(&header) {
            Colours::Grey => Colour::None,
            Colours::YCbCr => Colour::YCbCr,
            Colours::Rgb => Colour::Rgb,
            Colours::Inks(Ink::Cmyk) => Colour::Cmyk,
            Colours::Inks(Ink::Ycck) => Colour::Ycck,
        },
        components: ArrayVec::new(),
        quant_tables: ArrayVec::new(),
    };
    for (component, table) in header.frame.components().iter().zip(&header.quant) {
        let table = table.ok_or_else(|| damaged(header.end, "a component has no scan"))?;
        let known = frame.quant_tables.iter().position(|known| *known == table);
        let index = known.unwrap_or(frame.quant_tables.len());
        if known.is_none() {
            frame.quant_tables.push(table);
        }
        frame.components.push(FormComponent {
            horizontal: component.h as u8,
            vertical: component.v as u8,
            quant_table: index as u8,
        });
    }
    Ok(form::pack_until(form, &frame, &coefficients, &skeleton.to_bytes(), interrupt)?)
}

/// The file that a coefficient form was made from.
pub fn from_form(stored: &[u8]) -> Result<Vec<u8>, Error> {
    from_form_until(stored, &Interrupt::default())
}

/// [`from_form`] with an interrupt.
pub fn from_form_until(stored: &[u8], interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let (coefficients, skeleton) = form::unpack_all_until(stored, Cpu::detect(), interrupt)?;
    assemble_until(&Skeleton::from_bytes(&skeleton)?, &coefficients, interrupt)
}

/// The form that bytes have, by their signature. Bytes with the signature count as a form even if
/// their version is unknown or they are truncated: reading them reports that.
pub fn form_of(stored: &[u8]) -> Option<Form> {
    match stored.strip_prefix(&form::MAGIC)? {
        [_, 0, ..] => Some(Form::Fast),
        _ => Some(Form::Compact),
    }
}

/// Columns and rows of a file or of a coefficient form; only headers are read.
pub fn size(encoded: &[u8]) -> Result<(u32, u32), Error> {
    if form_of(encoded).is_some() {
        return Ok(form::size(encoded)?);
    }
    let mut header = Header::default();
    header.parse_frame_only(encoded)?;
    Ok(header.frame.size())
}

/// Exif orientation of a file, or of the file that a coefficient form was made from: 1..=8, 1
/// (upright) if it has none. Decoding does not apply it.
pub fn orientation(encoded: &[u8]) -> Result<u8, Error> {
    if form_of(encoded).is_some() {
        let reader = form::FormReader::open(encoded, Cpu::Portable)?;
        return Skeleton::from_bytes(reader.skeleton())?.orientation();
    }
    let mut header = Header::default();
    header.parse(encoded)?;
    Ok(header.orientation.unwrap_or(1))
}

/// Whether a file is a JPEG with restart markers in the data of a scan.
pub fn has_restart_markers(file: &[u8]) -> bool {
    let mut header = Header::default();
    let is_marker = |data: &[u8]| {
        memchr::memchr_iter(0xff, data)
            .any(|at| data.get(at + 1).is_some_and(|next| (0xd0..=0xd7).contains(next)))
    };
    header.parse(file).is_ok()
        && header.scans.iter().any(|scan| is_marker(&file[scan.data.clone()]))
}

/// Whether a file is a progressive JPEG.
pub fn is_progressive(file: &[u8]) -> bool {
    let mut header = Header::default();
    header.parse_frame_only(file).is_ok() && header.frame.coding == Coding::Progressive
}
