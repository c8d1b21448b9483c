//! Prepared batches: their columns, labels and sample indices as tensors.

use crate::tensor::{Elements, Memory, Tensor};
use crate::{damage, guarded};
use meetpoint_format::column::{Column, ColumnBytes, ColumnKind, ColumnSource, ElementType};
use meetpoint_host::delivery::{CudaBatch, CudaMemory, GpuElement};
use meetpoint_host::{Batch as HostBatch, Replacement};
use meetpoint_scheduler::Source;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::sync::Arc;

/// The values of a column.
#[derive(Debug)]
enum Values {
    Tensor(TensorLayout),
    /// Values of all samples, and the offsets between samples.
    Ragged(TensorLayout, TensorLayout),
    /// Elements of all samples, the offsets between samples, and the shape of each.
    Shaped(TensorLayout, TensorLayout, TensorLayout),
    /// Read before libraries may write to the memory.
    Bytes(Vec<Vec<u8>>),
    Text(Vec<String>),
}

/// The location of a tensor in the memory of a batch.
#[derive(Debug, Clone)]
struct TensorLayout {
    offset: usize,
    axes: Vec<i64>,
    element: GpuElement,
}

impl Values {
    /// The values of a column that begins at an offset of the payload, with these axis lengths in
    /// this batch.
    fn of(column: &ColumnBytes<'_>, lengths: &[u32], offset: usize) -> Self {
        let axis = |length: usize| i64::try_from(length).expect("a batch fits memory");
        let kind = &column.column().kind;
        let (samples, element) = (column.samples(), kind.element().into());
        let place = |offset: usize, rows: usize| {
            let axes = lengths.iter().map(|length| i64::from(*length));
            TensorLayout {
                offset,
                axes: std::iter::once(axis(rows)).chain(axes).collect(),
                element,
            }
        };
        let values = || (0..samples).map(|sample| column.value(sample).unwrap_or_default());
        match kind {
            ColumnKind::Tensor { .. } | ColumnKind::Padded { .. } => {
                Self::Tensor(place(offset, samples))
            }
            ColumnKind::Ragged { .. } | ColumnKind::PaddedRagged { .. } => {
                let offsets =
                    TensorLayout { offset, axes: vec![axis(samples + 1)], element: OFFSETS.into() };
                Self::Ragged(place(offset + 8 * (samples + 1), column.rows()), offsets)
            }
            ColumnKind::Shaped { .. } => {
                let rank = kind.rank_of_shapes();
                let offsets =
                    TensorLayout { offset, axes: vec![axis(samples + 1)], element: OFFSETS.into() };
                let offset = offset + 8 * (samples + 1);
                let axes = vec![axis(samples), axis(rank)];
                let shapes = TensorLayout { offset, axes, element: OFFSETS.into() };
                let offset = offset + 8 * samples * rank;
                let values = TensorLayout { offset, axes: vec![axis(column.rows())], element };
                Self::Shaped(values, offsets, shapes)
            }
            ColumnKind::Bytes => Self::Bytes(values().map(<[u8]>::to_vec).collect()),
            ColumnKind::Text => {
                // It was checked to be UTF-8, but a malicious device may have changed it since.
                let text = |value| String::from_utf8_lossy(value).into_owned();
                Self::Text(values().map(text).collect())
            }
        }
    }
}

/// Element type of offsets.
const OFFSETS: ElementType = ElementType::Int64;

/// A prepared batch. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
#[derive(Debug)]
pub(crate) struct Batch {
    memory: Arc<Memory>,
    /// In the order in which they were named.
    columns: Vec<(String, Values)>,
    index: u32,
    epoch: u32,
    device: Option<u16>,
    samples: Vec<u64>,
    /// The location of sample indices and labels on a GPU.
    on_gpu: Option<GpuArrays>,
    /// `None` if the dataset has none, or if batches have no column with labels.
    labels: Option<Vec<i32>>,
    /// The location of labels that are rows of float32.
    soft_labels: Option<TensorLayout>,
    replacements: Vec<Replacement>,
}

/// Offsets of the labels and sample indices of a batch on a GPU, as int64 and as int32.
#[derive(Debug)]
struct GpuArrays {
    labels: Option<[usize; 2]>,
    samples: (usize, Option<usize>),
}

impl Batch {
    /// A batch that is being copied to a GPU; only texts stay on the host.
    pub(crate) fn on_gpu(batch: &HostBatch, gpu: CudaBatch) -> Self {
        let CudaBatch { memory, columns, labels, samples } = gpu;
        let values = |index: usize| {
            let column = &batch.columns()[index];
            let bytes = batch.column_on_host(&column.name).expect("it is a column of the batch");
            let axes = batch.axes(&column.name).expect("it is a column of the batch");
            let place = columns[index];
            let mut values = Values::of(&bytes, axes, place.map_or(0, |place| place.offset));
            if let (Some(place), Values::Tensor(tensor)) = (place, &mut values) {
                tensor.element = place.element;
            }
            (column.name.clone(), values)
        };
        Self::of(
            batch,
            values,
            Elements::Gpu(Box::new(memory)),
            Some(GpuArrays { labels, samples }),
        )
    }

    /// Its memory on a GPU.
    pub(crate) fn gpu(&self) -> Option<&CudaMemory> {
        self.memory.gpu()
    }

    /// The indices and labels on the GPU.
    fn numbers(&self, offset: usize, element: ElementType) -> Tensor {
        let axes = vec![i64::try_from(self.samples.len()).expect("a batch fits memory")];
        Tensor { memory: Arc::clone(&self.memory), offset, axes, element: element.into() }
    }

    fn tensor(&self, place: &TensorLayout) -> Tensor {
        let TensorLayout { offset, axes, element } = place.clone();
        Tensor { memory: Arc::clone(&self.memory), offset, axes, element }
    }
}

impl Batch {
    /// Describes a batch; `values` gives the name and the values of the column at an index.
    fn of(
        batch: &HostBatch,
        values: impl Fn(usize) -> (String, Values),
        elements: Elements,
        on_gpu: Option<GpuArrays>,
    ) -> Self {
        let has_labels = batch.labels().len() == batch.samples().len();
        let is_soft = |column: &Column| {
            column.source == ColumnSource::Label && column.kind.element() == ElementType::Float32
        };
        let soft = batch.columns().iter().position(is_soft);
        let soft_labels = soft.and_then(|column| match values(column).1 {
            Values::Tensor(place) => Some(place),
            Values::Ragged(..) | Values::Shaped(..) | Values::Bytes(_) | Values::Text(_) => None,
        });
        Self {
            soft_labels,
            columns: (0..batch.columns().len()).map(values).collect(),
            index: batch.index(),
            epoch: batch.epoch(),
            device: match batch.source() {
                Source::Host => None,
                Source::Device(device) => Some(device.0),
            },
            samples: batch.samples().to_vec(),
            on_gpu,
            labels: has_labels.then(|| batch.labels().iter().copied().collect()).flatten(),
            replacements: batch.replacements().to_vec(),
            memory: Memory::new(elements),
        }
    }
}

impl From<HostBatch> for Batch {
    fn from(batch: HostBatch) -> Self {
        let described = Self::of(&batch, |index| described(&batch, index), NOTHING, None);
        Self { memory: Memory::new(Elements::Batch(Box::new(batch))), ..described }
    }
}

/// A column of a batch in its own memory.
fn described(batch: &HostBatch, index: usize) -> (String, Values) {
    let column = &batch.columns()[index];
    let extent = batch.layout().extent(index);
    let offset = usize::try_from(extent.offset).expect("it lies in memory");
    let bytes = batch.column(&column.name).expect("it is a column of the batch");
    let axes = batch.axes(&column.name).expect("it is a column of the batch");
    (column.name.clone(), Values::of(&bytes, axes, offset))
}

/// Replaced once a batch is described, because it is then moved into its memory.
const NOTHING: Elements = Elements::Int64(Vec::new());

#[guarded]
#[pymethods]
impl Batch {
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.columns.iter().find(|(own, _)| own == name);
        let (_, values) = found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        match values {
            Values::Tensor(place) => self.tensor(place).into_bound_py_any(py),
            Values::Ragged(values, offsets) => {
                (self.tensor(values), self.tensor(offsets)).into_bound_py_any(py)
            }
            Values::Shaped(values, offsets, shapes) => {
                (self.tensor(values), self.tensor(offsets), self.tensor(shapes))
                    .into_bound_py_any(py)
            }
            Values::Bytes(values) => {
                let values = values.iter().map(|value| PyBytes::new(py, value));
                Ok(PyList::new(py, values)?.into_any())
            }
            Values::Text(values) => Ok(PyList::new(py, values)?.into_any()),
        }
    }

    #[getter]
    fn has_labels(&self) -> bool {
        self.labels.is_some() || self.soft_labels.is_some()
    }

    #[pyo3(signature = (*, narrow=false))]
    fn labels(&self, narrow: bool) -> Option<Tensor> {
        if let Some(place) = &self.soft_labels {
            return Some(self.tensor(place));
        }
        if let Some(GpuArrays { labels, .. }) = &self.on_gpu {
            let [wide, short] = (*labels)?;
            return Some(match narrow {
                true => self.numbers(short, ElementType::Int32),
                false => self.numbers(wide, ElementType::Int64),
            });
        }
        let labels = self.labels.as_ref()?;
        let axes = vec![i64::try_from(labels.len()).expect("a batch fits memory")];
        let (elements, element) = match narrow {
            true => (Elements::Int32(labels.clone()), ElementType::Int32),
            false => {
                let wide = labels.iter().copied().map(i64::from).collect();
                (Elements::Int64(wide), ElementType::Int64)
            }
        };
        Some(Tensor { memory: Memory::new(elements), offset: 0, axes, element: element.into() })
    }

    #[pyo3(signature = (*, narrow=false))]
    fn sample_numbers(&self, narrow: bool) -> Tensor {
        if let Some(GpuArrays { samples: (wide, short), .. }) = &self.on_gpu {
            return match short.filter(|_| narrow) {
                Some(short) => self.numbers(short, ElementType::Int32),
                None => self.numbers(*wide, ElementType::Int64),
            };
        }
        let axes = vec![i64::try_from(self.samples.len()).expect("a batch fits memory")];
        let short = self.samples.iter().map(|sample| i32::try_from(*sample).ok());
        let short: Option<Vec<i32>> = if narrow { short.collect() } else { None };
        let (elements, element) = match short {
            Some(short) => (Elements::Int32(short), ElementType::Int32),
            None => {
                let wide = self.samples.iter().map(|sample| sample.cast_signed()).collect();
                (Elements::Int64(wide), ElementType::Int64)
            }
        };
        Tensor { memory: Memory::new(elements), offset: 0, axes, element: element.into() }
    }

    #[getter]
    fn samples(&self) -> Vec<u64> {
        self.samples.clone()
    }

    #[getter]
    fn damaged<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.replacements
            .iter()
            .map(|replacement| damage::record(py, self.index, replacement))
            .collect()
    }

    #[getter]
    fn index(&self) -> u32 {
        self.index
    }

    #[getter]
    fn epoch(&self) -> u32 {
        self.epoch
    }

    #[getter]
    fn device(&self) -> Option<u16> {
        self.device
    }

    fn __len__(&self) -> usize {
        self.samples.len()
    }

    fn __repr__(&self) -> String {
        let source =
            self.device.map_or_else(|| "host".to_owned(), |number| format!("device {number}"));
        let (Self { epoch, index, samples, .. }, columns) = (self, self.columns());
        let samples = samples.len();
        format!(
            "Batch(epoch={epoch}, index={index}, samples={samples}, columns={columns:?}, \
             source={source:?})"
        )
    }
}
