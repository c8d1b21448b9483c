//! Memory in capsules as defined by DLPack 0.8 and 1.0, for libraries that use it without a copy.
//!
//! <https://dmlc.github.io/dlpack/latest/c_api.html>,
//! <https://dmlc.github.io/dlpack/latest/python_spec.html>.
#![expect(unsafe_code, reason = "hands pointers to other libraries, as the protocol wants it")]

use meetpoint_host::MemoryKind;
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

const UNVERSIONED: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// DLDevice: the device's type, and its index.
pub(crate) type Device = (c_int, i32);

/// The type of host memory in DLPack.
pub(crate) const CPU: Device = (1, 0);

/// A GPU.
pub(crate) fn cuda(index: u32) -> Device {
    const KDLCUDA: c_int = 2;
    (KDLCUDA, i32::try_from(index).expect("a machine has few GPUs"))
}

/// The device of a kind of memory: DLPack treats all host memory as memory of the CPU.
pub(crate) fn device_of(kind: MemoryKind) -> Device {
    match kind {
        MemoryKind::Host | MemoryKind::Shared => CPU,
    }
}

/// DLDataTypeCode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TypeCode {
    Int = 0,
    Uint = 1,
    Float = 2,
    Bfloat = 4,
    Bool = 6,
}

/// Row-major elements, and the owner that keeps the memory alive.
pub(crate) struct View {
    /// It contains no Python objects, so any thread may drop it.
    pub(crate) owner: Arc<dyn Any + Send + Sync>,
    /// The first byte. The consumer of the capsule may write to the memory while the owner lives.
    pub(crate) address: *mut u8,
    /// The owner of the memory.
    pub(crate) device: Device,
    pub(crate) shape: Vec<i64>,
    pub(crate) code: TypeCode,
    /// The type of an element.
    pub(crate) bits: u8,
}

/// DLTensor.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: c_int,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// DLManagedTensor.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// DLManagedTensorVersioned.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// The memory that the pointers of a managed tensor refer to.
struct Context {
    _owner: Arc<dyn Any + Send + Sync>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The context of a managed tensor, and the tensor whose pointers refer to it.
fn managed_parts(view: View) -> (Box<Context>, DlTensor) {
    let View { owner, address, device: (device_type, device_id), shape, code, bits } = view;
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut context = Box::new(Context { _owner: owner, shape, strides });
    let tensor = DlTensor {
        data: address.cast(),
        device_type,
        device_id,
        ndim: i32::try_from(context.shape.len()).expect("a tensor has few axes"),
        code: code as u8,
        bits,
        lanes: 1,
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    (context, tensor)
}

/// Drops the owner of a tensor's memory, in the process that created it.
pub(crate) fn drop_elements<T>(elements: &mut ManuallyDrop<T>) {
    // SAFETY: only `Memory::drop` calls this, once, and does not touch the elements afterwards.
    unsafe { ManuallyDrop::drop(elements) }
}

/// A capsule whose tensor keeps the memory alive until its consumer deletes it.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    view: View,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (context, shown) = managed_parts(view);
    let context = Box::into_raw(context).cast();
    let (name, managed): (&CStr, *mut c_void) = if is_versioned {
        let deleter: unsafe extern "C" fn(*mut ManagedVersioned) = delete_versioned;
        let (version, flags) = ([1, 0], 0);
        let managed =
            ManagedVersioned { version, context, deleter: Some(deleter), flags, tensor: shown };
        (VERSIONED, Box::into_raw(Box::new(managed)).cast())
    } else {
        let deleter: unsafe extern "C" fn(*mut Managed) = delete;
        let managed = Managed { tensor: shown, context, deleter: Some(deleter) };
        (UNVERSIONED, Box::into_raw(Box::new(managed)).cast())
    };
    // SAFETY: the pointer is not null, the name lives forever, and the destructor fits both.
    let capsule = unsafe { ffi::PyCapsule_New(managed, name.as_ptr(), Some(end)) };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Destroys a capsule. If its tensor was consumed, the capsule has been renamed.
unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that it frees, attached to the interpreter; the
    // name says which of the two structures the pointer refers to, as `capsule` created it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// Deletes a managed tensor; called once by its consumer, on any thread.
unsafe extern "C" fn delete(managed: *mut Managed) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `capsule` created both boxes, and the protocol requires that this is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        end_context(managed.context);
    }
}

/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: as in `delete`.
    unsafe {
        let managed = Box::from_raw(managed);
        end_context(managed.context);
    }
}

/// Drops the target of a managed tensor's pointer.
unsafe fn end_context(context: *mut c_void) {
    // SAFETY: `capsule` created it from a box, and its managed tensor has been deleted. It is never
    // null, but checking is cheap.
    unsafe {
        if !ptr::eq(context, ptr::null()) {
            drop(Box::from_raw(context.cast::<Context>()));
        }
    }
}
