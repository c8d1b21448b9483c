#![expect(unsafe_code, reason = "the driver is a C library")]
//! The kernels of a GPU: each module is compiled and loaded once, when one of its kernels is used.

use super::cache::CacheFile;
use super::context::{Context, Handle};
use super::driver::Version;
use super::nvrtc::{Compiler, CompilerInfo};
use super::options::Options;
use crate::{Error, KernelName, Module};
use cudarc::driver::sys;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Dynamic shared memory that every kernel may have without being asked for.
pub(super) const SHARED_BYTES_DEFAULT: u32 = 48 << 10;

/// A kernel that can be launched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    pub(super) function: Handle<sys::CUfunc_st>,
    /// It may have all the shared memory that the GPU has for a block.
    has_large_shared: bool,
}

/// Modules that are loaded, and what compiles them.
pub(super) struct Kernels {
    context: Arc<Context>,
    options: Options,
    driver: Version,
    /// 90 for compute capability 9.0.
    capability: u32,
    /// Shared memory that a block may have.
    shared_bytes_max: u32,
    state: Mutex<State>,
    compiled: AtomicU64,
}

#[derive(Default)]
struct State {
    compiler: Option<Compiler>,
    modules: HashMap<&'static str, Handle<sys::CUmod_st>>,
}

impl Kernels {
    pub(super) fn new(
        context: &Arc<Context>,
        options: &Options,
        driver: Version,
        capability: u32,
        shared_bytes_max: u32,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            options: options.clone(),
            driver,
            capability,
            shared_bytes_max,
            state: Mutex::default(),
            compiled: AtomicU64::new(0),
        }
    }

    /// A kernel; its module is compiled and loaded if it is the first one of it.
    pub(super) fn kernel(&self, name: KernelName) -> Result<Kernel, Error> {
        let module = self.module(Module::named(name.module))?;
        let _entered = self.context.enter()?;
        let c_name = CString::new(name.name).expect("names have no byte 0");
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name ends with 0; the pointer is to a local variable.
        let result =
            unsafe { sys::cuModuleGetFunction(&raw mut function, module.0, c_name.as_ptr()) };
        self.context.check("cuModuleGetFunction", result)?;
        Ok(Kernel { function: Handle(function), has_large_shared: false })
    }

    /// Lets a kernel have as much shared memory as the GPU has for a block.
    pub(super) fn allow_large_shared(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if kernel.has_large_shared {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        let function = kernel.function.0;
        let of_kernel = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        let mut declared = 0;
        // SAFETY: the kernel is loaded; the pointer is to a local variable.
        let result = unsafe { sys::cuFuncGetAttribute(&raw mut declared, of_kernel, function) };
        self.context.check("cuFuncGetAttribute", result)?;
        let bytes = self.shared_bytes_max.cast_signed().saturating_sub(declared);
        let of_launch =
            sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the kernel is loaded.
        let result = unsafe { sys::cuFuncSetAttribute(function, of_launch, bytes) };
        self.context.check("cuFuncSetAttribute", result)?;
        kernel.has_large_shared = true;
        Ok(())
    }

    /// Compiles and loads a module.
    pub(super) fn load(&self, module: &'static Module) -> Result<(), Error> {
        self.module(module).map(|_| ())
    }

    /// The compiler, which is searched for by the first call.
    pub(super) fn compiler(&self) -> Result<CompilerInfo, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.found_compiler(&mut state)?.info.clone())
    }

    /// Modules that were compiled and not found in the cache.
    pub(super) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    fn found_compiler<'a>(&self, state: &'a mut State) -> Result<&'a Compiler, Error> {
        match &mut state.compiler {
            Some(compiler) => Ok(compiler),
            none @ None => Ok(none.insert(Compiler::find(&self.options, self.driver)?)),
        }
    }

    fn module(&self, module: &'static Module) -> Result<Handle<sys::CUmod_st>, Error> {
        // Held while a module is compiled: who needs the same one waits for it.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = state.modules.get(module.name) {
            return Ok(*loaded);
        }
        self.context.check_usable()?;
        let image = self.image(module, self.found_compiler(&mut state)?)?;
        let _entered = self.context.enter()?;
        let mut loaded = std::ptr::null_mut();
        // SAFETY: it is a whole cubin, or PTX that ends with 0; the pointer is to a local variable.
        let result = unsafe { sys::cuModuleLoadData(&raw mut loaded, image.as_ptr().cast()) };
        self.context.check("cuModuleLoadData", result)?;
        state.modules.insert(module.name, Handle(loaded));
        Ok(Handle(loaded))
    }

    /// The compiled module: from the cache, or from the compiler.
    fn image(&self, module: &'static Module, compiler: &Compiler) -> Result<Vec<u8>, Error> {
        let target = compiler.target(self.capability).ok_or_else(|| Error::Compile {
            module: module.name,
            architecture: format!("sm_{}", self.capability),
            log: format!("the compiler of CUDA {} does not know it", compiler.info.version),
        })?;
        let folder = self.options.cache.as_deref();
        let file = folder
            .map(|folder| CacheFile::of(folder, &module.text(), target, compiler.info.version));
        if let Some(image) = file.as_ref().and_then(CacheFile::read) {
            return Ok(image);
        }
        let image = compiler.compile(module, target)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(file) = file {
            // Without it, the next process compiles again.
            drop(file.write(&image));
        }
        Ok(image)
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(_entered) = self.context.enter_to_free() {
            for module in state.modules.values() {
                // SAFETY: it is loaded, and unloaded once; what launched its kernels is gone.
                let _ = unsafe { sys::cuModuleUnload(module.0) };
            }
        }
    }
}
