//! Decodes signals from NumPy files.

use crate::series::{Kernel, Pause, Series, SeriesDecoder, SeriesShape, SeriesSource, execute};
use crate::{Cpu, Error};
use meetpoint_format::npy;
use meetpoint_format::recipe::{DecodeSignal, LENGTH_MAX, PIXELS_MAX};

/// Values processed between two calls of `pause`.
const PIECE: usize = 1 << 14;

/// The operation `decode_signal`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalDecoder(pub(crate) DecodeSignal);

fn damaged(reason: String) -> Error {
    Error::DecodeSeries { format: "NumPy file", reason }
}

impl SignalDecoder {
    fn read<'a>(&self, encoded: &'a [u8]) -> Result<(SeriesShape, npy::Element, &'a [u8]), Error> {
        let array = npy::read(encoded).map_err(damaged)?;
        let channels = self.0.num_channels;
        let length = match array.shape[..] {
            [length] if channels == 1 => length,
            [found, length] if found == channels => length,
            _ => {
                let axes = if channels == 1 { "[time] or [1, time]" } else { "[channels, time]" };
                let found = &array.shape;
                let reason = format!("its shape is {found:?}, not {axes} with {channels} channels");
                return Err(damaged(reason));
            }
        };
        if length == 0 {
            return Err(Error::EmptySeries);
        }
        let values = u64::from(length) * u64::from(channels);
        if length > LENGTH_MAX || values > PIXELS_MAX {
            return Err(Error::LongSeries { limit: PIXELS_MAX });
        }
        let (channels, length) = (channels as usize, length as usize);
        let shape = SeriesShape { channels, rows: 1, length };
        Ok((shape, array.element, &encoded[array.data]))
    }
}

impl SeriesDecoder for SignalDecoder {
    fn sample_rate(&self) -> Option<u32> {
        None
    }

    fn measure(&self, encoded: &[u8]) -> Result<(SeriesShape, u64), Error> {
        Ok((self.read(encoded)?.0, 0))
    }

    fn start(&self, cpu: Cpu) -> Box<dyn SeriesSource> {
        Box::new(SignalSource { decoder: *self, cpu })
    }
}

/// The operation with code for an instruction set.
#[derive(Debug)]
struct SignalSource {
    decoder: SignalDecoder,
    cpu: Cpu,
}

impl SeriesSource for SignalSource {
    fn decode(&mut self, encoded: &[u8], to: &mut Series, pause: Pause<'_>) -> Result<(), Error> {
        let (shape, element, data) = self.decoder.read(encoded)?;
        to.shape = shape;
        to.values.clear();
        to.values.reserve(shape.values());
        for bytes in data.chunks(PIECE * element.bytes()) {
            execute(self.cpu, &mut Piece { element, bytes, values: &mut to.values });
            pause()?;
        }
        Ok(())
    }
}

/// Elements of a file to be appended as float32.
struct Piece<'a> {
    element: npy::Element,
    bytes: &'a [u8],
    values: &'a mut Vec<f32>,
}

impl Piece<'_> {
    #[inline(always)]
    fn convert<const BYTES: usize>(&mut self, value: impl Fn([u8; BYTES]) -> f32) {
        self.values.extend(self.bytes.as_chunks::<BYTES>().0.iter().map(|it| value(*it)));
    }
}

impl Kernel for Piece<'_> {
    #[inline(always)]
    fn run(&mut self) {
        use npy::Element;
        match self.element {
            Element::Uint8 => self.convert(|[byte]| f32::from(byte)),
            Element::Int16 => self.convert(|it| f32::from(i16::from_le_bytes(it))),
            Element::Uint16 => self.convert(|it| f32::from(u16::from_le_bytes(it))),
            Element::Int32 => self.convert(|it| i32::from_le_bytes(it) as f32),
            Element::Float32 => self.convert(f32::from_le_bytes),
            Element::Float64 => self.convert(|it| f64::from_le_bytes(it) as f32),
        }
    }
}
