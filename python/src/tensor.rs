//! A batch and its tensors, whose memory lives until the last user of it is gone.

use crate::dlpack::{self, TypeCode, View};
use crate::{damage, guarded};
use meetpoint_format::recipe::Dtype;
use meetpoint_host::{Batch as HostBatch, Mended};
use meetpoint_scheduler::Source;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// DLPack's number of the CPU, and that of the only one.
const CPU: (i32, i32) = (1, 0);

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Uint8,
    Float16,
    Float32,
    Int32,
    Int64,
}

impl From<Dtype> for Element {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Uint8 => Self::Uint8,
            Dtype::Float16 => Self::Float16,
            Dtype::Float32 => Self::Float32,
        }
    }
}

impl Element {
    fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "uint8",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// As NumPy's array interface writes it.
    fn code(self) -> &'static str {
        match self {
            Self::Uint8 => "|u1",
            Self::Float16 => "<f2",
            Self::Float32 => "<f4",
            Self::Int32 => "<i4",
            Self::Int64 => "<i8",
        }
    }

    /// As DLPack has it: the type's code, and the bits of an element.
    fn dlpack_type(self) -> (TypeCode, u8) {
        match self {
            Self::Uint8 => (TypeCode::Uint, 8),
            Self::Float16 => (TypeCode::Float, 16),
            Self::Float32 => (TypeCode::Float, 32),
            Self::Int32 => (TypeCode::Int, 32),
            Self::Int64 => (TypeCode::Int, 64),
        }
    }
}

/// Where elements lie.
#[derive(Debug)]
enum Elements {
    Batch(Box<HostBatch>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
}

/// Memory of a tensor, shared by all that show it.
#[derive(Debug)]
pub(crate) struct Memory {
    elements: ManuallyDrop<Elements>,
    /// Of the first byte, taken from a `*mut` whose provenance was exposed: libraries write there.
    address: usize,
    process: u32,
}

impl Memory {
    fn new(mut elements: Elements) -> Arc<Self> {
        let start: *mut u8 = match &mut elements {
            Elements::Batch(batch) => batch.bytes_mut().as_mut_ptr(),
            Elements::Int32(elements) => elements.as_mut_ptr().cast(),
            Elements::Int64(elements) => elements.as_mut_ptr().cast(),
        };
        let (elements, address) = (ManuallyDrop::new(elements), start.expose_provenance());
        Arc::new(Self { elements, address, process: std::process::id() })
    }

    /// The first byte. Whoever shows the tensor may write to it while this lives; nothing else
    /// reads or writes the memory.
    pub(crate) fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // In a forked child a lock of the ring may be held by a thread that is not there.
        if self.process == std::process::id() {
            dlpack::drop_elements(&mut self.elements);
        }
    }
}

/// A tensor in memory of ours. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) memory: Arc<Memory>,
    pub(crate) axes: Vec<i64>,
    pub(crate) element: Element,
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
        let interface = PyDict::new(py);
        let shape = pyo3::types::PyTuple::new(py, &self.axes)?;
        interface.set_item("shape", shape)?;
        interface.set_item("typestr", self.element.code())?;
        interface.set_item("data", (self.memory.address().addr(), false))?;
        interface.set_item("version", 3)?;
        Ok(interface)
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
        if stream.is_some() {
            return refuse("the tensor is in memory of the CPU, which has no streams");
        }
        if dl_device.is_some_and(|device| device != CPU) {
            return refuse("the tensor is in memory of the CPU; move it after it was taken");
        }
        if copy == Some(true) {
            return refuse("a tensor is handed over without a copy; copy it after it was taken");
        }
        let Self { memory, axes, element } = self;
        let (code, bits) = element.dlpack_type();
        let (owner, address) = (Arc::clone(memory), memory.address());
        let view = View { owner, address, shape: axes.clone(), code, bits };
        dlpack::capsule(py, view, max_version.is_some_and(|(major, _)| major >= 1))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        CPU
    }

    fn __repr__(&self) -> String {
        format!("Tensor(shape={:?}, dtype={})", self.axes, self.element.name())
    }
}

/// A prepared batch. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
#[derive(Debug)]
pub(crate) struct Batch {
    memory: Arc<Memory>,
    axes: Vec<i64>,
    element: Element,
    index: u32,
    epoch: u32,
    device: Option<u16>,
    samples: Vec<u64>,
    /// `None` where the dataset has none.
    labels: Option<Vec<i32>>,
    mended: Vec<Mended>,
}

impl From<HostBatch> for Batch {
    fn from(batch: HostBatch) -> Self {
        Self {
            axes: batch.shape().map(i64::from).to_vec(),
            element: batch.dtype().into(),
            index: batch.index(),
            epoch: batch.epoch(),
            device: match batch.source() {
                Source::Host => None,
                Source::Device(device) => Some(device.0),
            },
            samples: batch.samples().to_vec(),
            labels: batch.labels().iter().copied().collect(),
            mended: batch.mended().to_vec(),
            memory: Memory::new(Elements::Batch(Box::new(batch))),
        }
    }
}

#[guarded]
#[pymethods]
impl Batch {
    #[getter]
    fn images(&self) -> Tensor {
        let Self { memory, axes, element, .. } = self;
        Tensor { memory: Arc::clone(memory), axes: axes.clone(), element: *element }
    }

    #[getter]
    fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    #[pyo3(signature = (*, narrow=false))]
    fn labels(&self, narrow: bool) -> Option<Tensor> {
        let labels = self.labels.as_ref()?;
        let axes = vec![i64::try_from(labels.len()).expect("a batch fits memory")];
        let (elements, element) = match narrow {
            true => (Elements::Int32(labels.clone()), Element::Int32),
            false => {
                let wide = labels.iter().copied().map(i64::from).collect();
                (Elements::Int64(wide), Element::Int64)
            }
        };
        Some(Tensor { memory: Memory::new(elements), axes, element })
    }

    #[getter]
    fn samples(&self) -> Vec<u64> {
        self.samples.clone()
    }

    #[getter]
    fn damaged<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.mended.iter().map(|mended| damage::record(py, self.index, mended)).collect()
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
        let Self { epoch, index, axes, .. } = self;
        format!("Batch(epoch={epoch}, index={index}, shape={axes:?}, source={source:?})")
    }
}
