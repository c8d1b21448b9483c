//! A recipe of operations on values over time, applied to samples.

use crate::finished::FinishedTensor;
use crate::operations::Step;
use crate::series::{Pause, Series, SeriesChange, SeriesDecoder, SeriesShape, SeriesSource};
use crate::tensor::{ElementTable, convert_elements};
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Dtype, Layout, PIXELS_MAX, SampleType, TensorSpec};

/// The executable operations of a recipe, in order. Their numbers equal their positions, since none
/// contains others.
#[derive(Debug)]
pub(super) struct SeriesPreparer {
    /// The changes, each with the number of its operation.
    changes: Vec<(usize, Box<dyn SeriesChange>)>,
    source: Box<dyn SeriesSource>,
    cpu: Cpu,
    values: Series,
    next: Series,
    /// The result before operations on elements, if there are any.
    bytes: Vec<u8>,
}

/// The random stream of an operation, by its number.
pub(super) type DrawsOf<'a> = &'a dyn Fn(usize) -> Draws;

impl SeriesPreparer {
    /// Creates the preparer for a recipe that starts with a decoder of series; `None` for other
    /// recipes.
    ///
    /// Panics if this machine lacks `cpu`.
    pub(super) fn new(steps: &[Step], cpu: Cpu) -> Option<Self> {
        assert!(cpu.is_available(), "this machine lacks {cpu:?}");
        let decoder = decoder(steps)?;
        let rate = decoder.sample_rate();
        let change = |(number, step): (usize, &Step)| match step {
            Step::Series(operation) => Some((number, operation.start(rate, cpu))),
            _ => None,
        };
        let changes = steps.iter().enumerate().filter_map(change).collect();
        let source = decoder.start(cpu);
        let (values, next, bytes) = Default::default();
        Some(Self { changes, source, cpu, values, next, bytes })
    }

    /// Frees the memory for whole samples, which is otherwise reused.
    pub(super) fn free(&mut self) {
        (self.values, self.next, self.bytes) = Default::default();
    }

    /// Upper bound of the memory in bytes for a file, from its headers.
    pub(super) fn memory_bytes(&self, steps: &[Step], encoded: &[u8]) -> Result<u64, Error> {
        let decoder = decoder(steps).expect("the recipe begins with a decoder");
        let (shape, besides) = decoder.measure(encoded)?;
        Ok(self.changed_bytes(0, shape)?.max(shape.bytes() + besides))
    }

    /// Upper bound of the memory in bytes for the operations from a number on, for values of a
    /// shape.
    pub(super) fn changed_bytes(&self, first: usize, shape: SeriesShape) -> Result<u64, Error> {
        let (mut shape, mut most) = (shape, shape.bytes());
        for (_, change) in self.changes.iter().filter(|(number, _)| *number >= first) {
            let result = change.shape(shape)?;
            most = most.max(shape.bytes() + result.bytes());
            shape = result;
        }
        Ok(most + shape.bytes())
    }

    /// Decodes a file, executes the operations on series, and returns the shape of the result.
    pub(super) fn run(
        &mut self,
        result: SampleType,
        encoded: &[u8],
        draws: DrawsOf<'_>,
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        self.values.values.clear();
        self.source.decode(encoded, &mut self.values, pause)?;
        self.change(0, result, draws, pause)
    }

    /// Like [`Self::run`], for a tensor that is the result of the operations before `first`.
    pub(super) fn resume(
        &mut self,
        first: usize,
        result: SampleType,
        (spec, data): (&TensorSpec, &[u8]),
        draws: DrawsOf<'_>,
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        assert_eq!(spec.dtype, Dtype::Float32, "operations on series take float32");
        self.values.shape = shape_of(spec);
        self.values.values.clear();
        let elements = data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        self.values.values.extend(elements);
        self.change(first, result, draws, pause)
    }

    fn change(
        &mut self,
        first: usize,
        result: SampleType,
        draws: DrawsOf<'_>,
        pause: Pause<'_>,
    ) -> Result<TensorSpec, Error> {
        let Self { changes, values, next, .. } = self;
        for (number, change) in changes.iter_mut().filter(|(number, _)| *number >= first) {
            pause()?;
            let shape = change.shape(values.shape)?;
            if shape.values() as u64 > PIXELS_MAX {
                return Err(Error::LongSeries { limit: PIXELS_MAX });
            }
            change.apply(&mut draws(*number), values, next, pause)?;
            debug_assert_eq!((values.shape, values.values.len()), (shape, shape.values()));
        }
        let SeriesShape { rows, length, .. } = values.shape;
        let axis = |length: usize| u32::try_from(length).expect("at most PIXELS_MAX values");
        Ok(result.tensor((axis(rows), axis(length))))
    }

    /// Writes the result of the last run, with the operations on elements and on the tensor from
    /// number `first` on.
    pub(super) fn finish(
        &mut self,
        (steps, first): (&[Step], usize),
        (spec, out): (&TensorSpec, &mut [u8]),
        draws: DrawsOf<'_>,
        (interrupt, after_stage): (&Interrupt, &mut dyn FnMut()),
    ) -> Result<(), Error> {
        let has_elements = steps.iter().any(|step| matches!(step, Step::Elements(_)));
        match has_elements {
            false => write(&self.values.values, out),
            true => {
                let from = TensorSpec { dtype: Dtype::Float32, ..*spec };
                let mut bytes = std::mem::take(&mut self.bytes);
                bytes.resize(from.bytes(), 0);
                write(&self.values.values, &mut bytes);
                convert((steps, first), (&from, &bytes), (spec, out));
                self.bytes = bytes;
            }
        }
        finish_tensor(steps, (*spec, out), draws, self.cpu, (interrupt, after_stage))
    }
}

/// Executes the operations on elements from a number on.
pub(super) fn convert(
    (steps, first): (&[Step], usize),
    from: (&TensorSpec, &[u8]),
    to: (&TensorSpec, &mut [u8]),
) {
    convert_elements(from, to, &|table: &mut ElementTable| {
        for step in &steps[first..] {
            if let Step::Elements(operation) = step {
                operation.fold(table);
            }
        }
    });
}

/// Executes the operations on the whole tensor.
pub(super) fn finish_tensor(
    steps: &[Step],
    (spec, out): (TensorSpec, &mut [u8]),
    draws: DrawsOf<'_>,
    cpu: Cpu,
    (interrupt, after_stage): (&Interrupt, &mut dyn FnMut()),
) -> Result<(), Error> {
    let mut tensor = FinishedTensor::new(spec, out, cpu, interrupt, after_stage);
    for (number, step) in steps.iter().enumerate() {
        if let Step::Tensor(operation) = step {
            operation.apply(&mut draws(number), &mut tensor)?;
        }
    }
    Ok(())
}

fn decoder(steps: &[Step]) -> Option<&dyn SeriesDecoder> {
    match steps.first()? {
        Step::DecodeSeries(decoder) => Some(&**decoder),
        Step::Decode(_)
        | Step::DecodeText(_)
        | Step::Geometry(_)
        | Step::Pixels(_)
        | Step::Picture(_)
        | Step::Series(_)
        | Step::Text(_)
        | Step::Elements(_)
        | Step::Tensor(_)
        | Step::Batch(_)
        | Step::Choice { .. } => None,
    }
}

/// The axes of a tensor of such values.
pub(super) fn shape_of(spec: &TensorSpec) -> SeriesShape {
    assert!(matches!(spec.layout, Layout::Nct | Layout::Nchw), "channels come first");
    let [channels, rows, length] = [spec.channels, spec.height, spec.width].map(|it| it as usize);
    SeriesShape { channels, rows, length }
}

/// Writes values in little-endian order, and every NaN with the same bits: the sign and payload of
/// a NaN depend on the order of operands, which compilers choose for each instruction set.
fn write(values: &[f32], out: &mut [u8]) {
    for (bytes, value) in out.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        let value = if value.is_nan() { f32::NAN } else { *value };
        *bytes = value.to_le_bytes();
    }
}
