//! Kernels compiled for the CPU, for tests: a process that runs them, with its memory as that of
//! the device, under AddressSanitizer.

use crate::{
    Argument, Compute, DeviceMemory, Error, Fence, HostMemory, KernelName, Launch, MODULES,
    PageLock,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The headers of CUDA for the CPU, and the program around the kernels.
const CPU: &str = include_str!("../shim/cpu.h");
const MAIN: &str = include_str!("../shim/main.cpp");

/// Commands of the program; see `shim/main.cpp`.
const ALLOCATE: u64 = 1;
const FREE: u64 = 2;
const UPLOAD: u64 = 3;
const DOWNLOAD: u64 = 4;
const FILL: u64 = 5;
const LAUNCH: u64 = 6;
const WAIT: u64 = 7;
const COPY: u64 = 8;

/// Runs kernels on the CPU.
pub struct Shim {
    program: PathBuf,
    pipes: Arc<Mutex<Pipes>>,
    numbers: HashMap<KernelName, u64>,
}

struct Pipes {
    child: Child,
    commands: BufWriter<ChildStdin>,
    answers: ChildStdout,
}

impl Shim {
    /// Compiles the kernels into a folder, with the C++ compiler that the environment variable
    /// `CXX` names, or `c++`, and starts them. If the folder already has compiled kernels of the
    /// same sources, they are used.
    pub fn start(folder: &Path) -> Result<Self, Error> {
        let program = compile(folder)?;
        let refused = |error: std::io::Error| failed(&program, error);
        let mut child = Command::new(&program)
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let commands = BufWriter::new(child.stdin.take().expect("it is piped"));
        let answers = child.stdout.take().expect("it is piped");
        let numbers = all_kernels().zip(0..).collect();
        let pipes = Arc::new(Mutex::new(Pipes { child, commands, answers }));
        Ok(Self { program, pipes, numbers })
    }

    /// Another queue of the same device. The work of both is done in the order of the calls.
    #[must_use]
    pub fn queue(&self) -> Self {
        let (program, pipes) = (self.program.clone(), Arc::clone(&self.pipes));
        Self { program, pipes, numbers: self.numbers.clone() }
    }

    fn send(&self, words: &[u64], data: &[u8]) -> Result<(), Error> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        pipes.send(words, data).map_err(|error| pipes.failed(&self.program, error))
    }

    fn ask(&self, words: &[u64], answer: &mut [u8]) -> Result<(), Error> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = pipes.send(words, &[]).and_then(|()| pipes.commands.flush());
        let answered = asked.and_then(|()| pipes.answers.read_exact(answer));
        answered.map_err(|error| pipes.failed(&self.program, error))
    }
}

impl Pipes {
    fn send(&mut self, words: &[u64], data: &[u8]) -> std::io::Result<()> {
        for word in words {
            self.commands.write_all(&word.to_le_bytes())?;
        }
        self.commands.write_all(data)
    }

    /// A failed pipe is a program that has ended: a fault that the sanitizer printed.
    fn failed(&mut self, program: &Path, error: std::io::Error) -> Error {
        match self.child.try_wait() {
            Ok(Some(status)) => failed(program, format!("it ended with {status}")),
            Ok(None) | Err(_) => failed(program, error),
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // It ends at the end of its commands, at the latest when it is killed.
        drop(self.commands.flush());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Frees memory of the program.
struct Owned {
    address: u64,
    pipes: Arc<Mutex<Pipes>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        // A program that has ended has no memory.
        drop(pipes.send(&[FREE, self.address], &[]));
    }
}

impl Compute for Shim {
    fn name(&self) -> &str {
        "the CPU"
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        let mut address = [0; 8];
        self.ask(&[ALLOCATE, bytes as u64], &mut address)?;
        let address = u64::from_le_bytes(address);
        let owned = Owned { address, pipes: Arc::clone(&self.pipes) };
        Ok(DeviceMemory::new(address, bytes, Box::new(owned)))
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        Ok(HostMemory::new(vec![0; bytes]))
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        Ok(PageLock::new(memory.len(), Box::new(())))
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        self.send(&[UPLOAD, to.place(offset, from.len()), from.len() as u64], from)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.ask(&[DOWNLOAD, from.place(offset, to.len()), to.len() as u64], to)
    }

    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        let (from, to) = (from.place(from_offset, bytes), to.place(to_offset, bytes));
        self.send(&[COPY, from, to, bytes as u64], &[])
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        Ok(Fence::new(()))
    }

    /// Does nothing: all queues share one order.
    fn wait_for_fence(&mut self, _fence: &Fence) -> Result<(), Error> {
        Ok(())
    }

    fn fill(
        &mut self,
        memory: &DeviceMemory,
        offset: usize,
        bytes: usize,
        value: u8,
    ) -> Result<(), Error> {
        self.send(&[FILL, memory.place(offset, bytes), bytes as u64, u64::from(value)], &[])
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        let Launch { kernel, grid, block, shared_bytes, arguments } = launch;
        if grid.contains(&0) {
            return Ok(());
        }
        let number = self.numbers.get(kernel).expect("kernels are those of the list");
        let sides = grid.iter().chain(block).map(|side| u64::from(*side));
        let rest = [u64::from(*shared_bytes), arguments.len() as u64];
        let arguments = arguments.iter().map(|argument| match argument {
            Argument::Address(address) => *address,
            Argument::Word(word) => u64::from(*word),
        });
        let words: Vec<u64> =
            [LAUNCH, *number].into_iter().chain(sides).chain(rest).chain(arguments).collect();
        self.send(&words, &[])
    }

    /// The program answers when it has done what it was sent before.
    fn is_done(&mut self) -> Result<bool, Error> {
        self.ask(&[WAIT], &mut [0; 8]).map(|()| true)
    }

    fn wait_unless(
        &mut self,
        _limit: Duration,
        _is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        self.ask(&[WAIT], &mut [0; 8])
    }
}

fn all_kernels() -> impl Iterator<Item = KernelName> {
    MODULES.iter().flat_map(super::module::Module::kernels)
}

/// Writes the sources and compiles them, unless the folder has the same sources and a program.
fn compile(folder: &Path) -> Result<PathBuf, Error> {
    let write = |name: &str, text: &str| -> std::io::Result<bool> {
        let path = folder.join(name);
        let is_same = std::fs::read_to_string(&path).is_ok_and(|old| old == text);
        if !is_same {
            std::fs::write(path, text)?;
        }
        Ok(is_same)
    };
    let mut unit = String::from("#include \"cpu.h\"\n");
    unit.push_str(super::module::COMMON);
    for module in MODULES {
        let _ = write!(unit, "\n#line 1 \"{}.cu\"\n{}\n", module.name, module.source);
    }
    unit.push_str("#include \"main.cpp\"\n");
    let list: String = all_kernels().map(|kernel| format!("KERNEL({})\n", kernel.name)).collect();
    let files =
        [("cpu.h", CPU), ("main.cpp", MAIN), ("kernels.inc", &list), ("kernels.cpp", &unit)];
    let program = folder.join("kernels");
    // Tests that start at the same time compile once.
    let lock = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::File::create(folder.join("lock")))
        .and_then(|lock| lock.lock().map(|()| lock))
        .map_err(|error| failed(folder, error))?;
    let mut is_same = program.exists();
    for (name, text) in files {
        is_same &= write(name, text).map_err(|error| failed(folder, error))?;
    }
    if !is_same {
        let compiler = PathBuf::from(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        let unfinished = folder.join("kernels.unfinished");
        let output = Command::new(&compiler)
            .current_dir(folder)
            .args(["-std=c++17", "-O1", "-g", "-ffp-contract=off", "-fno-strict-aliasing"])
            .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall"])
            .args(["-Wno-unused-function", "-o", "kernels.unfinished", "kernels.cpp"])
            .output()
            .map_err(|error| failed(&compiler, format!("{error}; install a C++ compiler")))?;
        if !output.status.success() {
            return Err(failed(&compiler, String::from_utf8_lossy(&output.stderr)));
        }
        std::fs::rename(unfinished, &program).map_err(|error| failed(folder, error))?;
    }
    drop(lock);
    Ok(program)
}

fn failed(program: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Shim { program: program.to_path_buf(), reason: reason.to_string() }
}
