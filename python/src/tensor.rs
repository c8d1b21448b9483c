//! A batch and its tensors, whose memory lives until its last user is dropped.

use crate::dlpack::{self, TypeCode, View};
use crate::{damage, gpu, guarded};
use meetpoint_format::column::{Column, ColumnBytes, ColumnKind, ColumnSource, ElementType};
use meetpoint_host::delivery::{ConsumerStream, CudaBatch, CudaMemory, Export, GpuElement};
use meetpoint_host::{Batch as HostBatch, Replacement};
use meetpoint_scheduler::Source;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The name of an element type in NumPy's array interface, if it has one.
fn array_code(element: GpuElement) -> Option<&'static str> {
    let GpuElement::Host(element) = element else { return None };
    Some(match element {
        ElementType::Bool => "|b1",
        ElementType::Uint8 => "|u1",
        ElementType::Int8 => "|i1",
        ElementType::Uint16 => "<u2",
        ElementType::Int16 => "<i2",
        ElementType::Uint32 => "<u4",
        ElementType::Int32 => "<i4",
        ElementType::Uint64 => "<u8",
        ElementType::Int64 => "<i8",
        ElementType::Float16 => "<f2",
        ElementType::Float32 => "<f4",
        ElementType::Float64 => "<f8",
    })
}

/// An element type in DLPack: the type's code, and the bits of an element.
fn dlpack_type(element: GpuElement) -> (TypeCode, u8) {
    let GpuElement::Host(element) = element else { return (TypeCode::Bfloat, 16) };
    match element {
        ElementType::Bool => (TypeCode::Bool, 8),
        ElementType::Uint8 => (TypeCode::Uint, 8),
        ElementType::Int8 => (TypeCode::Int, 8),
        ElementType::Uint16 => (TypeCode::Uint, 16),
        ElementType::Int16 => (TypeCode::Int, 16),
        ElementType::Uint32 => (TypeCode::Uint, 32),
        ElementType::Int32 => (TypeCode::Int, 32),
        ElementType::Uint64 => (TypeCode::Uint, 64),
        ElementType::Int64 => (TypeCode::Int, 64),
        ElementType::Float16 => (TypeCode::Float, 16),
        ElementType::Float32 => (TypeCode::Float, 32),
        ElementType::Float64 => (TypeCode::Float, 64),
    }
}

/// The location of elements.
#[derive(Debug)]
enum Elements {
    Batch(Box<HostBatch>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Gpu(Box<CudaMemory>),
}

/// Memory of a tensor, shared by all its views.
#[derive(Debug)]
pub(crate) struct Memory {
    elements: ManuallyDrop<Elements>,
    /// Address of the first byte, taken from a `*mut` whose provenance was exposed: libraries write
    /// there.
    address: usize,
    device: dlpack::Device,
    process: u32,
}

impl Memory {
    fn new(mut elements: Elements) -> Arc<Self> {
        let (address, device) = match &mut elements {
            Elements::Batch(batch) => {
                let start = batch.payload_mut().as_mut_ptr();
                (start.expose_provenance(), dlpack::device_of(batch.memory_kind()))
            }
            Elements::Int32(elements) => (elements.as_mut_ptr().expose_provenance(), dlpack::CPU),
            Elements::Int64(elements) => (elements.as_mut_ptr().expose_provenance(), dlpack::CPU),
            Elements::Gpu(memory) => {
                let address = usize::try_from(memory.address());
                (address.expect("a pointer has 64 bits"), dlpack::cuda(memory.device()))
            }
        };
        let elements = ManuallyDrop::new(elements);
        Arc::new(Self { elements, address, device, process: std::process::id() })
    }

    /// The batch on a GPU, if it is there.
    fn gpu(&self) -> Option<&CudaMemory> {
        match &*self.elements {
            Elements::Gpu(memory) => Some(memory),
            Elements::Batch(_) | Elements::Int32(_) | Elements::Int64(_) => None,
        }
    }

    /// The first byte. The consumer of the tensor may write to it while this lives; nothing else
    /// reads or writes the memory.
    pub(crate) fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // In a forked child, a lock of the ring may be held by a thread that does not exist.
        if self.process == std::process::id() {
            dlpack::drop_elements(&mut self.elements);
        }
    }
}

/// A tensor in native memory. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
#[derive(Debug)]
pub(crate) struct Tensor {
    memory: Arc<Memory>,
    /// First byte, relative to the memory's.
    offset: usize,
    axes: Vec<i64>,
    element: GpuElement,
}

impl Tensor {
    /// The first byte; see [`Memory::address`].
    fn address(&self) -> *mut u8 {
        self.memory.address().wrapping_add(self.offset)
    }

    fn device(&self) -> dlpack::Device {
        self.memory.device
    }

    /// Makes the content visible to a consumer on a GPU.
    fn export(&self, py: Python<'_>, memory: &CudaMemory, export: Export) -> PyResult<()> {
        memory.export(export).map_err(|error| {
            let (_, index) = self.device();
            gpu::of_gpu(py, format!("a tensor on cuda:{index} cannot be exported: {error}"), &error)
        })
    }

    /// The meaning of `stream` in an export to a GPU, by the array API standard.
    fn stream(stream: Option<Bound<'_, PyAny>>) -> PyResult<Export> {
        let Some(stream) = stream else {
            return Ok(Export::Stream(ConsumerStream::LegacyDefault));
        };
        let number: i64 = stream.extract().map_err(|_| {
            PyTypeError::new_err("stream is not a number; give the handle of a CUDA stream")
        })?;
        match u64::try_from(number) {
            Ok(0) => Err(PyValueError::new_err(
                "stream 0 is ambiguous; give 1 for the legacy default stream, or 2 for that of \
                 the thread",
            )),
            Ok(1) => Ok(Export::Stream(ConsumerStream::LegacyDefault)),
            Ok(2) => Ok(Export::Stream(ConsumerStream::PerThreadDefault)),
            Ok(handle) => Ok(Export::Stream(ConsumerStream::Handle(handle))),
            Err(_) if number == -1 => Ok(Export::Unordered),
            Err(_) => Err(PyValueError::new_err(format!("stream is {number}; give -1 or more"))),
        }
    }

    fn advice(&self) -> String {
        let (_, index) = self.device();
        format!(
            "the tensor is on cuda:{index}; copy it to the host first, as with \
             torch.from_dlpack(tensor).cpu()"
        )
    }
}

#[guarded]
#[pymethods]
impl Tensor {
    #[getter]
    fn shape(&self) -> Vec<i64> {
        self.axes.clone()
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.element.name()
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.memory.gpu() {
            Some(_) => Err(PyAttributeError::new_err(self.advice())),
            None => self.interface(py),
        }
    }

    /// The interface of arrays on CUDA, version 3. It cannot tell when consumers are done, so the
    /// memory is reused only after all work of the GPU.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(memory) = self.memory.gpu() else {
            return Err(PyAttributeError::new_err("the tensor is on the CPU"));
        };
        if array_code(self.element).is_none() {
            let name = self.element.name();
            let message = format!("{name} has no array interface; use from_dlpack");
            return Err(PyAttributeError::new_err(message));
        }
        self.export(py, memory, Export::Unordered)?;
        self.export(py, memory, Export::Stream(ConsumerStream::LegacyDefault))?;
        let interface = self.interface(py)?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", 1)?;
        Ok(interface)
    }

    /// NumPy requests it if there is no `__array_interface__`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().memory.gpu().is_some() {
            return Err(PyTypeError::new_err(slf.get().advice()));
        }
        let options = PyDict::new(py);
        options.set_item("dtype", dtype)?;
        if copy == Some(true) {
            options.set_item("copy", true)?;
        }
        let function = if copy == Some(true) { "array" } else { "asarray" };
        py.import("numpy")?.getattr(function)?.call((slf,), Some(&options))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let refuse = |what: &str| Err(PyBufferError::new_err(what.to_owned()));
        let gpu = self.memory.gpu();
        if stream.is_some() && gpu.is_none() {
            return refuse("the tensor is in memory of the CPU, which has no streams");
        }
        if dl_device.is_some_and(|device| device != self.device()) {
            let place = if gpu.is_some() { "on a GPU" } else { "in memory of the CPU" };
            return refuse(&format!("the tensor is {place}; move it after the export"));
        }
        if copy == Some(true) {
            return refuse("a tensor is exported without a copy; copy it after the export");
        }
        if let Some(memory) = gpu {
            self.export(py, memory, Self::stream(stream)?)?;
        }
        let (code, bits) = dlpack_type(self.element);
        let (owner, address) = (Arc::clone(&self.memory), self.address());
        let (device, shape) = (self.device(), self.axes.clone());
        let view = View { owner, address, device, shape, code, bits };
        dlpack::capsule(py, view, max_version.is_some_and(|(major, _)| major >= 1))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        self.device()
    }

    fn __repr__(&self) -> String {
        let device = match self.memory.gpu() {
            Some(memory) => format!(", device=cuda:{}", memory.device()),
            None => String::new(),
        };
        format!("Tensor(shape={:?}, dtype={}{device})", self.axes, self.element.name())
    }
}

impl Tensor {
    /// The common part of the array interfaces of NumPy and CUDA.
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        let shape = pyo3::types::PyTuple::new(py, &self.axes)?;
        interface.set_item("shape", shape)?;
        interface.set_item("typestr", array_code(self.element))?;
        interface.set_item("data", (self.address().addr(), false))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

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
                // It was checked to be UTF-8, but a malicious device may have written to it since.
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

/// Arrays of a batch on a GPU that are not columns: as int64, and as int32.
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
            let bytes = batch.column(&column.name).expect("it is a column of the batch");
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
    /// A batch of the host, whose columns are described by their index, in other memory.
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
