//! Memory in capsules as DLPack 0.8 and 1.0 define them, for libraries that take it without a copy.
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

/// DLDevice: the number of its type, and its own.
pub(crate) type Device = (c_int, i32);

/// Memory of the host, as DLPack counts it.
pub(crate) const CPU: Device = (1, 0);

/// A GPU.
pub(crate) fn cuda(index: u32) -> Device {
    const KDLCUDA: c_int = 2;
    (KDLCUDA, i32::try_from(index).expect("a machine has few GPUs"))
}

/// The device of a kind of memory: DLPack counts all of the host's as that of the CPU.
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

/// Row-major elements, and what keeps the memory alive.
pub(crate) struct View {
    /// No part of it is Python's, so that any thread may drop it.
    pub(crate) owner: Arc<dyn Any + Send + Sync>,
    /// The first byte. The taker of the capsule may write to the memory while the owner lives.
    pub(crate) address: *mut u8,
    /// That the memory belongs to.
    pub(crate) device: Device,
    pub(crate) shape: Vec<i64>,
    pub(crate) code: TypeCode,
    /// Of an element.
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

/// What the pointers of a managed tensor point to.
struct Context {
    _owner: Arc<dyn Any + Send + Sync>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The context of a managed tensor, and the tensor whose pointers lead into it.
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

/// Drops what a tensor's memory was, in the process that made it.
pub(crate) fn drop_elements<T>(elements: &mut ManuallyDrop<T>) {
    // SAFETY: only `Memory::drop` calls this, once, and does not touch the elements afterwards.
    unsafe { ManuallyDrop::drop(elements) }
}

/// A capsule whose tensor keeps the memory alive until its taker deletes it.
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

/// Ends a capsule. One whose tensor was taken has another name by then.
unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that it frees, attached to the interpreter; a
    // name tells which of the two structures the pointer is of, as `capsule` made it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// Ends a managed tensor; called once by its consumer, in any thread.
unsafe extern "C" fn delete(managed: *mut Managed) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `capsule` made both boxes, and by the protocol this is called once.
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

/// Ends what a managed tensor pointed to.
unsafe fn end_context(context: *mut c_void) {
    // SAFETY: it is what `capsule` made of a box, and its managed tensor is gone. Null is never
    // there, but costs nothing to look at.
    unsafe {
        if !ptr::eq(context, ptr::null()) {
            drop(Box::from_raw(context.cast::<Context>()));
        }
    }
}
