//! Masks and saliency maps: their elements as planes of bytes, which move like those of a picture.
//!
//! Nearest-pixel interpolation moves bytes unchanged, so an element of several bytes moves as
//! several planes, three at a time.

use super::numbers::element_bytes;
use super::{TargetSpec, png};
use crate::Cpu;
use crate::contain_panic;
use crate::pixels::Style;
use crate::planes::Planes;
use crate::target_problem::TargetProblem;
use crate::tensor::{ElementTable, TensorWriter};
use meetpoint_format::column::{ColumnKind, files_of};
use meetpoint_format::recipe::{MaskType, TargetKind};
use std::borrow::Cow;

/// Number of planes of a picture.
const PLANES: usize = 3;

/// Memory for masks, reused for the next sample.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Writers of one plane and of three planes, with unchanged bytes.
    single: TensorWriter,
    triple: TensorWriter,
    /// Number of planes of the current layers' results.
    planes: usize,
    /// The result of a layer.
    pub(crate) result: Vec<u8>,
}

impl Memory {
    pub(crate) fn new(cpu: Cpu) -> Self {
        let writer = |channels| TensorWriter::new(&ElementTable::default(), channels, cpu);
        let (single, triple) = (writer(1), writer(PLANES as u32));
        Self { single, triple, planes: 1, result: Vec::new() }
    }

    /// Starts the layers of a mask.
    pub(crate) fn begin(&mut self, layers: &Layers<'_>) {
        self.planes = layers.planes();
    }

    /// The writer of the results of these layers.
    pub(crate) fn writer(&mut self) -> &mut TensorWriter {
        if self.planes == 1 { &mut self.single } else { &mut self.triple }
    }
}

/// The layers of a mask: one per object or, for elements of more than three bytes, one per three
/// bytes of each object.
#[derive(Debug)]
pub(crate) struct Layers<'a> {
    elements: Cow<'a, [u8]>,
    /// Columns and rows.
    size: (u32, u32),
    element_bytes: usize,
    fill: Vec<u8>,
    is_saliency: bool,
}

/// One layer: bytes of the elements of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    object: usize,
    /// First byte of each element, and number of bytes.
    first: usize,
    pub(crate) count: usize,
    pub(crate) style: Style,
}

impl<'a> Layers<'a> {
    /// The stored value of a sample's target in parts, which are processed one after another: the
    /// file of each object, or all of it.
    pub(crate) fn parts(
        is_file_per_object: bool,
        stored: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        let whole = (!is_file_per_object).then_some(stored);
        let files = is_file_per_object.then(|| files_of(stored));
        whole.into_iter().chain(files.into_iter().flatten())
    }

    /// The layers of a part of a sample's target; `None` for a target of points.
    pub(crate) fn of(
        spec: &TargetSpec,
        stored: &'a [u8],
        picture: (u32, u32),
    ) -> Result<Option<Self>, TargetProblem> {
        let (fill, dtype, is_saliency) = match &spec.kind {
            TargetKind::Mask(mask) => (mask.fill, mask.dtype, false),
            TargetKind::Saliency(it) => (f64::from(it.fill), MaskType::Uint8, true),
            TargetKind::Boxes(_) | TargetKind::Keypoints(_) => return Ok(None),
        };
        let (elements, size) = match (&spec.stored, spec.stored.axes()) {
            (ColumnKind::Tensor { .. } | ColumnKind::Ragged { .. }, &[height, width]) => {
                (Cow::Borrowed(stored), (width, height))
            }
            _ => {
                let decoded = contain_panic(|| png::decode(stored, dtype, picture));
                let png::Elements { size, bytes } = decoded.unwrap_or_else(|panic| {
                    Err(TargetProblem::MaskPng { reason: panic.message })
                })?;
                (Cow::Owned(bytes), size)
            }
        };
        if size != picture {
            return Err(TargetProblem::MaskSize { mask: size, picture });
        }
        let element = spec.prepared.element();
        let fill = element_bytes(element, fill);
        Ok(Some(Self { elements, size, element_bytes: fill.len(), fill, is_saliency }))
    }

    /// Number of planes of a layer's result: one or three.
    pub(crate) fn planes(&self) -> usize {
        if self.element_bytes == 1 { 1 } else { PLANES }
    }

    fn object_bytes(&self) -> usize {
        self.size.0 as usize * self.size.1 as usize * self.element_bytes
    }

    /// All layers, in the order in which their results are stored.
    pub(crate) fn each(&self) -> impl Iterator<Item = Layer> {
        let objects = self.elements.len() / self.object_bytes().max(1);
        (0..objects).flat_map(move |object| {
            (0..self.element_bytes).step_by(PLANES).map(move |first| {
                let count = PLANES.min(self.element_bytes - first);
                let fill = std::array::from_fn(|plane| {
                    self.fill.get(first + plane).copied().unwrap_or_default()
                });
                let style =
                    if self.is_saliency { Style::Saliency(fill) } else { Style::Mask(fill) };
                Layer { object, first, count, style }
            })
        })
    }

    /// Copies a layer into the planes of a picture; planes that it lacks are unspecified.
    pub(crate) fn put(&self, layer: Layer, into: &mut Planes) {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        into.set_size(width, height);
        let object = &self.elements[layer.object * self.object_bytes()..][..self.object_bytes()];
        let row_bytes = (width * self.element_bytes).max(1);
        for (y, row) in object.chunks_exact(row_bytes).enumerate() {
            for plane in 0..layer.count {
                let bytes = row[layer.first + plane..].iter().step_by(self.element_bytes);
                let out = into.row_mut(plane, y);
                out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
            }
        }
    }

    /// Stores the result of a layer, `pixels` pixels of one or three bytes, after the `before`
    /// bytes of other parts.
    pub(crate) fn take(
        &self,
        layer: Layer,
        (pixels, result): (usize, &[u8]),
        (before, into): (usize, &mut Vec<u8>),
    ) {
        let bytes = pixels * self.element_bytes;
        let start = before + layer.object * bytes;
        into.resize(start + bytes, 0);
        if self.element_bytes == 1 {
            into[start..].copy_from_slice(result);
            return;
        }
        let elements = into[start..].chunks_exact_mut(self.element_bytes);
        for (element, pixel) in elements.zip(result.chunks_exact(PLANES)) {
            element[layer.first..][..layer.count].copy_from_slice(&pixel[..layer.count]);
        }
    }
}
