//! Tensors, whose memory lives until its last user is dropped.

use crate::dlpack::{self, TypeCode, View};
use crate::{gpu, guarded};
use meetpoint_format::column::ElementType;
use meetpoint_host::Batch as HostBatch;
use meetpoint_host::delivery::{ConsumerStream, CudaMemory, Export, GpuElement};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
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
pub(crate) enum Elements {
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
    pub(crate) fn new(mut elements: Elements) -> Arc<Self> {
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
    pub(crate) fn gpu(&self) -> Option<&CudaMemory> {
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
    pub(crate) memory: Arc<Memory>,
    /// First byte, relative to the memory's.
    pub(crate) offset: usize,
    pub(crate) axes: Vec<i64>,
    pub(crate) element: GpuElement,
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
