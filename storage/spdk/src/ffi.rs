//! Every call of SPDK. All of it runs on one thread, the one that started the environment.
#![expect(unsafe_code, reason = "SPDK is a C library with callbacks")]

use crate::bindings::*;
use crate::ending::Requests;
use crate::source::defaults;
use crate::transfer::{Done, Failure, Operation, Transfer};
use crate::{Error, Options, log};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Small and large buffers of SPDK's own pools. Its defaults take 200 MiB; these 10.
const POOL_BUFFERS: (u64, u64) = (256, 64);

/// Transfers that SPDK can have in flight, of all engines together.
const TRANSFERS_MAX: u32 = 4095;

/// Longest time that a step of the start or of the end takes.
const STEP_MAX: Duration = Duration::from_secs(30);

/// Pause between polls while a step is awaited.
const STEP_PAUSE: Duration = Duration::from_micros(100);

/// The environment of SPDK, started; at most one in a process. Belongs to its thread.
pub(crate) struct Environment {
    thread: *mut spdk_thread,
    /// Transfers that SPDK has accepted and not yet completed.
    in_flight: Rc<Cell<usize>>,
    /// Waits end when the thread is abandoned.
    requests: Requests,
}

/// `spdk_log_cb`. Its last argument is a `va_list`, which x86_64 and aarch64 pass as an address.
type OnMessage =
    unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, *const c_char, *mut c_void);

unsafe extern "C" {
    // Not generated, because bindgen passes a `va_list` of aarch64 by value.
    fn spdk_log_open(callback: Option<OnMessage>);
    fn vsnprintf(to: *mut c_char, bytes: usize, format: *const c_char, list: *mut c_void) -> c_int;
}

/// Receives one of SPDK's messages.
unsafe extern "C" fn on_message(
    _level: c_int,
    _file: *const c_char,
    _line: c_int,
    _function: *const c_char,
    format: *const c_char,
    arguments: *mut c_void,
) {
    let mut line = [0_u8; log::LINE_BYTES_MAX];
    // SAFETY: SPDK passes a format with the list of its arguments; the last byte of the line stays
    // zero.
    let text = unsafe {
        vsnprintf(line.as_mut_ptr().cast(), line.len(), format, arguments);
        CStr::from_ptr(line.as_ptr().cast())
    };
    log::add(&text.to_string_lossy());
}

/// Receives the result of a step; `context` is from [`Answer::context`].
unsafe extern "C" fn on_step(result: c_int, context: *mut c_void) {
    // SAFETY: the context owns a reference to the cell, and SPDK calls back once.
    let answer = unsafe { Rc::from_raw(context.cast::<Cell<Option<c_int>>>()) };
    answer.set(Some(result));
}

/// As [`on_step`], for a step that cannot fail.
unsafe extern "C" fn on_end(context: *mut c_void) {
    // SAFETY: as in `on_step`.
    unsafe { on_step(0, context) }
}

/// The place for the result of a callback. It stays valid after its waiter has timed out.
#[derive(Default)]
struct Answer(Rc<Cell<Option<c_int>>>);

impl Answer {
    fn context(&self) -> *mut c_void {
        Rc::into_raw(Rc::clone(&self.0)).cast_mut().cast()
    }
}

impl Environment {
    /// Starts SPDK on the calling thread, without any device.
    pub(crate) fn start(options: &Options, requests: &Requests) -> Result<Self, Error> {
        log::clear();
        let failed = |step, number| Error::Start { step, reason: log::reason(number) };
        // SAFETY: the callback is a function, and may be called from any thread.
        unsafe {
            spdk_log_open(Some(on_message));
            spdk_log_set_level(spdk_log_level_SPDK_LOG_WARN);
        }
        environment(options).map_err(|number| failed("its environment (DPDK)", number))?;
        // SAFETY: the environment has started; `thread` is checked.
        let thread = unsafe {
            let number = spdk_thread_lib_init(None, 0);
            if number != 0 {
                return Err(failed("its threads", number));
            }
            let thread = spdk_thread_create(c"meetpoint".as_ptr(), ptr::null());
            if thread.is_null() {
                return Err(failed("its thread", libc::ENOMEM));
            }
            spdk_set_thread(thread);
            thread
        };
        let requests = requests.clone();
        let environment = Self { thread, in_flight: Rc::default(), requests };
        pools().map_err(|number| failed("its pools", number))?;
        // SAFETY: startup calls come before the subsystems.
        unsafe { spdk_rpc_set_state(SPDK_RPC_STARTUP) };
        environment
            .load(&defaults())
            .map_err(|reason| Error::Start { step: "the options of its NVMe driver", reason })?;
        let config = match &options.config {
            None => None,
            Some(path) => Some(std::fs::read_to_string(path).map_err(|error| Error::Start {
                step: "its configuration",
                reason: format!("failed to read {}: {error}", path.display()),
            })?),
        };
        if let Some(config) = &config {
            environment
                .load(config)
                .map_err(|reason| Error::Start { step: "its configuration", reason })?;
        }
        let answer = Answer::default();
        // SAFETY: on the application's thread; the callback takes the context.
        unsafe { spdk_subsystem_init(Some(on_step), answer.context()) };
        match environment.await_answer(&answer) {
            Some(0) => {}
            Some(number) => return Err(failed("its subsystems", number)),
            None => return Err(failed("its subsystems", libc::ETIMEDOUT)),
        }
        // SAFETY: the subsystems have started.
        unsafe { spdk_rpc_set_state(SPDK_RPC_RUNTIME) };
        if let Some(config) = &config {
            environment
                .load(config)
                .map_err(|reason| Error::Start { step: "its configuration", reason })?;
        }
        Ok(environment)
    }

    /// Lets SPDK work. Whether there was anything to do.
    pub(crate) fn poll(&self) -> bool {
        // SAFETY: the thread exists until the environment is dropped.
        unsafe { spdk_thread_poll(self.thread, 0, 0) > 0 }
    }

    /// Transfers that SPDK has not completed.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Executes the calls of a JSON configuration; `Err` has SPDK's messages.
    pub(crate) fn load(&self, json: &str) -> Result<(), String> {
        log::clear();
        let answer = Answer::default();
        let bytes = json.len() as isize;
        // SAFETY: on the application's thread; SPDK copies the text before it returns.
        unsafe {
            let text = json.as_ptr().cast_mut().cast();
            spdk_subsystem_load_config(text, bytes, Some(on_step), answer.context(), true);
        }
        match self.await_answer(&answer) {
            Some(0) => Ok(()),
            Some(number) => Err(log::reason(number)),
            None => Err(format!("no answer for {STEP_MAX:?}")),
        }
    }

    /// Whether this SPDK has a method, such as `bdev_uring_create`.
    pub(crate) fn has_method(&self, name: &CStr) -> bool {
        let mut states = 0;
        // SAFETY: both arguments outlive the call.
        unsafe { spdk_rpc_get_method_state_mask(name.as_ptr(), &raw mut states) == 0 }
    }

    fn await_answer(&self, answer: &Answer) -> Option<c_int> {
        let deadline = Instant::now() + STEP_MAX;
        loop {
            self.poll();
            if let Some(result) = answer.0.get() {
                return Some(result);
            }
            if self.requests.is_abandoned() || Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(STEP_PAUSE);
        }
    }
}

impl Drop for Environment {
    /// Ends SPDK. The steps have time limits, so that a device that hangs does not stop the end of
    /// the process.
    fn drop(&mut self) {
        let answer = Answer::default();
        // SAFETY: no device is open: each holds a reference to the environment.
        unsafe { spdk_subsystem_fini(Some(on_end), answer.context()) };
        if self.await_answer(&answer).is_none() {
            return;
        }
        let deadline = Instant::now() + STEP_MAX;
        // SAFETY: nothing but this thread uses SPDK, and it does not after this.
        unsafe {
            spdk_set_thread(self.thread);
            spdk_thread_exit(self.thread);
            while !spdk_thread_is_exited(self.thread) {
                spdk_thread_poll(self.thread, 0, 0);
                if self.requests.is_abandoned() || Instant::now() > deadline {
                    return;
                }
            }
            spdk_thread_destroy(self.thread);
            spdk_thread_lib_fini();
            spdk_env_fini();
        }
    }
}

/// Starts DPDK. `Err` has an error number.
fn environment(options: &Options) -> Result<(), c_int> {
    // The thread may run on every processor that the process may use: without a map, DPDK would
    // pin it to the first one.
    let cpus = allowed_cpus();
    let map = CString::new(format!("0@({cpus})")).expect("a list of numbers");
    // DPDK prints to standard error what is not an error here, such as missing huge pages.
    let context = c"--log-level=*:critical";
    // SAFETY: the structure is plain data, for which zero is a value, and which SPDK then fills;
    // SPDK copies the strings into the arguments of DPDK before it returns.
    let number = unsafe {
        let mut opts: spdk_env_opts = std::mem::zeroed();
        opts.opts_size = size_of::<spdk_env_opts>();
        spdk_env_opts_init(&raw mut opts);
        opts.name = c"meetpoint".as_ptr();
        opts.core_mask = ptr::null();
        opts.lcore_map = map.as_ptr();
        opts.mem_size = options.memory_mib as c_int;
        opts.no_huge = !options.huge_pages;
        opts.no_pci = !options.huge_pages;
        opts.env_context = context.as_ptr().cast_mut().cast();
        spdk_env_init(&raw const opts)
    };
    if number == 0 { Ok(()) } else { Err(number) }
}

/// The processors that this process may use, such as `0-3,8`.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map_or_else(|| "0".to_owned(), |list| list.trim().to_owned())
}

/// Makes the pools of SPDK small: engines bring their own buffers.
fn pools() -> Result<(), c_int> {
    // SAFETY: plain data, filled by SPDK; the structures state their sizes.
    unsafe {
        let mut pools: spdk_iobuf_opts = std::mem::zeroed();
        spdk_iobuf_get_opts(&raw mut pools, size_of::<spdk_iobuf_opts>());
        (pools.small_pool_count, pools.large_pool_count) = POOL_BUFFERS;
        match spdk_iobuf_set_opts(&raw const pools) {
            0 => {}
            number => return Err(number),
        }
        let mut transfers: spdk_bdev_opts = std::mem::zeroed();
        spdk_bdev_get_opts(&raw mut transfers, size_of::<spdk_bdev_opts>());
        transfers.bdev_io_pool_size = TRANSFERS_MAX;
        transfers.bdev_io_cache_size = 64;
        transfers.iobuf_small_cache_size = 16;
        transfers.iobuf_large_cache_size = 8;
        match spdk_bdev_set_opts(&raw mut transfers) {
            0 => Ok(()),
            number => Err(number),
        }
    }
}

/// Memory that a drive may access itself.
struct DmaMemory(*mut c_void);

impl DmaMemory {
    /// `None` if SPDK's memory is used up.
    fn new(bytes: usize) -> Option<Self> {
        // SAFETY: plain allocation.
        let start = unsafe { spdk_malloc(bytes, 4096, ptr::null_mut(), -1, SPDK_MALLOC_DMA) };
        (!start.is_null()).then_some(Self(start))
    }
}

impl Drop for DmaMemory {
    fn drop(&mut self) {
        // SAFETY: `spdk_malloc` returned it, and it is freed once.
        unsafe { spdk_free(self.0) }
    }
}

/// An open bdev. It must be dropped on SPDK's thread, outside of callbacks, with nothing in flight.
pub(crate) struct Bdev<'env> {
    name: String,
    descriptor: *mut spdk_bdev_desc,
    channel: *mut spdk_io_channel,
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u64,
    is_nvme: bool,
    needs_dma: bool,
    /// Whether it can flush; `None` if it has no cache.
    flush: Option<bool>,
    /// Set by SPDK when the device is gone. A box, because its address is the callback's context.
    is_gone: Box<Cell<bool>>,
    in_flight: Rc<Cell<usize>>,
    environment: PhantomData<&'env Environment>,
}

/// A transfer that SPDK has accepted.
struct Flight {
    transfer: Transfer,
    /// The drive's copy of the bytes, if it may not access the caller's.
    bounce: Option<DmaMemory>,
    is_nvme: bool,
    counters: [Rc<Cell<usize>>; 2],
}

/// Receives events of a bdev.
unsafe extern "C" fn on_event(
    event: spdk_bdev_event_type,
    _bdev: *mut spdk_bdev,
    context: *mut c_void,
) {
    if event == spdk_bdev_event_type_SPDK_BDEV_EVENT_REMOVE {
        // SAFETY: the box outlives the descriptor, whose context it is.
        unsafe { (*context.cast::<Cell<bool>>()).set(true) }
    }
}

/// Receives the end of a transfer.
unsafe extern "C" fn on_transfer(io: *mut spdk_bdev_io, success: bool, context: *mut c_void) {
    // SAFETY: `Bdev::submit` made the context from a box, and SPDK calls back once.
    let flight = unsafe { Box::from_raw(context.cast::<Flight>()) };
    let result = if success { Ok(()) } else { Err(failure(io, flight.is_nvme)) };
    // SAFETY: the transfer is complete and its status was read.
    unsafe { spdk_bdev_free_io(io) };
    flight.end(result);
}

/// Why a transfer failed.
fn failure(io: *mut spdk_bdev_io, is_nvme: bool) -> Failure {
    let (mut words, mut code_type, mut code, mut number) = (0, 0, 0, 0);
    // SAFETY: SPDK has completed the transfer and not freed it.
    unsafe {
        if is_nvme {
            let (code_type, code) = (&raw mut code_type, &raw mut code);
            spdk_bdev_io_get_nvme_status(io, &raw mut words, code_type, code);
        } else {
            spdk_bdev_io_get_aio_status(io, &raw mut number);
        }
    }
    match (code_type as u16 & 7) << 8 | code as u16 & 0xff {
        0 => Failure::Os(if number == 0 { libc::EIO } else { number.abs() }),
        status => Failure::Nvme(status),
    }
}

impl Flight {
    fn end(self, result: Result<(), Failure>) {
        for counter in &self.counters {
            counter.set(counter.get() - 1);
        }
        let Transfer { operation, memory, token, reply, .. } = self.transfer;
        if let (Some(bounce), Operation::Read, Ok(())) = (&self.bounce, operation, result) {
            copy(bounce.0, memory.start(), memory.bytes());
        }
        // The engine of a lost answer is gone.
        let _ = reply.try_send(Done { token, result });
    }
}

/// Copies between memory of a transfer and the drive's copy of it.
fn copy(from: *mut c_void, to: *mut c_void, bytes: usize) {
    // SAFETY: both have this length, and are different allocations that no other code accesses.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), bytes) }
}

impl<'env> Bdev<'env> {
    /// Opens a bdev by its name.
    pub(crate) fn open(
        _environment: &'env Environment,
        name: &str,
        writable: bool,
        needs_dma: bool,
    ) -> Result<Self, Error> {
        log::clear();
        let failed = |reason| Error::Open { bdev: name.to_owned(), reason };
        let text = CString::new(name).map_err(|_| failed("its name has a zero byte".to_owned()))?;
        let is_gone = Box::new(Cell::new(false));
        let mut descriptor = ptr::null_mut();
        // SAFETY: the name outlives the call, the context the descriptor.
        unsafe {
            let context = (&raw const *is_gone).cast_mut().cast();
            let to = &raw mut descriptor;
            match spdk_bdev_open_ext(text.as_ptr(), writable, Some(on_event), context, to) {
                0 => {}
                number if number == -libc::ENODEV => {
                    return Err(failed(
                        "there is no device with this name; MEETPOINT_SPDK_CONFIG names a \
                         configuration that creates it"
                            .to_owned(),
                    ));
                }
                number => return Err(failed(log::reason(number))),
            }
        }
        // SAFETY: the descriptor is open.
        unsafe {
            let channel = spdk_bdev_get_io_channel(descriptor);
            if channel.is_null() {
                spdk_bdev_close(descriptor);
                return Err(failed(log::reason(libc::ENOMEM)));
            }
            let bdev = spdk_bdev_desc_get_bdev(descriptor);
            let module = CStr::from_ptr(spdk_bdev_get_module_name(bdev));
            let is_nvme = module == c"nvme";
            let opened = Self {
                name: name.to_owned(),
                descriptor,
                channel,
                block_bytes: spdk_bdev_get_block_size(bdev),
                blocks: spdk_bdev_get_num_blocks(bdev),
                is_nvme,
                needs_dma: needs_dma && is_nvme,
                flush: {
                    let flush = spdk_bdev_io_type_SPDK_BDEV_IO_TYPE_FLUSH;
                    let can_flush = spdk_bdev_io_type_supported(bdev, flush);
                    (can_flush || spdk_bdev_has_write_cache(bdev)).then_some(can_flush)
                },
                is_gone,
                in_flight: Rc::default(),
                environment: PhantomData,
            };
            match spdk_bdev_get_buf_align(bdev) {
                0..=4096 => Ok(opened),
                more => Err(failed(format!("it needs memory aligned to {more} bytes"))),
            }
        }
    }

    /// Starts a transfer, or returns it if SPDK has no memory for it at the moment.
    pub(crate) fn submit(
        &self,
        environment: &Environment,
        transfer: Transfer,
    ) -> Result<(), Transfer> {
        let Transfer { operation, offset, .. } = transfer;
        let bytes = transfer.memory.bytes();
        let bounce = if self.needs_dma && bytes > 0 {
            match DmaMemory::new(bytes) {
                Some(memory) => Some(memory),
                // Those in flight return theirs.
                None if environment.in_flight() > 0 => return Err(transfer),
                None => return self.refuse(transfer, libc::ENOMEM),
            }
        } else {
            None
        };
        if let (Some(bounce), Operation::Write) = (&bounce, operation) {
            copy(transfer.memory.start(), bounce.0, bytes);
        }
        if self.is_gone.get() {
            return self.refuse(transfer, libc::ENODEV);
        }
        match (operation, self.flush) {
            (Operation::Flush, None) => {
                let Transfer { token, reply, .. } = transfer;
                let _ = reply.try_send(Done { token, result: Ok(()) });
                return Ok(());
            }
            (Operation::Flush, Some(false)) => return self.refuse(transfer, libc::EOPNOTSUPP),
            (Operation::Flush, Some(true)) | (Operation::Read | Operation::Write, _) => {}
        }
        let memory = bounce.as_ref().map_or(transfer.memory.start(), |bounce| bounce.0);
        let counters = [&self.in_flight, &environment.in_flight].map(Rc::clone);
        for counter in &counters {
            counter.set(counter.get() + 1);
        }
        let flight = Box::new(Flight { transfer, bounce, is_nvme: self.is_nvme, counters });
        let context = Box::into_raw(flight);
        let (descriptor, channel, bytes) = (self.descriptor, self.channel, bytes as u64);
        // SAFETY: descriptor and channel are open; the memory is valid until the answer, as its
        // creator promised; the callback takes the context.
        let number = unsafe {
            let (done, context) = (Some(on_transfer as _), context.cast());
            match operation {
                Operation::Read => {
                    spdk_bdev_read(descriptor, channel, memory, offset, bytes, done, context)
                }
                Operation::Write => {
                    spdk_bdev_write(descriptor, channel, memory, offset, bytes, done, context)
                }
                Operation::Flush => {
                    let whole = self.blocks * u64::from(self.block_bytes);
                    spdk_bdev_flush(descriptor, channel, 0, whole, done, context)
                }
            }
        };
        if number == 0 {
            return Ok(());
        }
        // SAFETY: SPDK did not accept the transfer and will not call back.
        let flight = unsafe { Box::from_raw(context) };
        if number == -libc::ENOMEM && environment.in_flight() > 1 {
            let Flight { transfer, counters, .. } = *flight;
            for counter in &counters {
                counter.set(counter.get() - 1);
            }
            return Err(transfer);
        }
        flight.end(Err(Failure::Os(number.abs())));
        Ok(())
    }

    fn refuse(&self, transfer: Transfer, number: c_int) -> Result<(), Transfer> {
        let Transfer { token, reply, .. } = transfer;
        let _ = reply.try_send(Done { token, result: Err(Failure::Os(number)) });
        Ok(())
    }

    /// Transfers that SPDK has not completed.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Bdev<'_> {
    fn drop(&mut self) {
        // SAFETY: on SPDK's thread; both were opened by `open` and nothing is in flight.
        unsafe {
            spdk_put_io_channel(self.channel);
            spdk_bdev_close(self.descriptor);
        }
    }
}
