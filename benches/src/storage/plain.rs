//! The least that reads a file through io_uring: no trait, no bookkeeping, no limits. Its buffers
//! are as good as an engine's: one piece of memory, on huge pages from 2 MiB on, registered.
#![expect(unsafe_code, reason = "hands buffers to the kernel")]

use super::{Check, Load, Offsets};
use io_uring::{IoUring, opcode, types};
use meetpoint_storage::{ARENA_BYTES_MIN, AlignedBuffer};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

/// Reads for the load's time; MB a second and a hash of what was read.
pub(super) fn read(path: &Path, load: Load) -> anyhow::Result<(f64, u64)> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let fd = types::Fd(file.as_raw_fd());
    let mut memory =
        AlignedBuffer::zeroed((load.pattern.depth * load.pattern.block_bytes).max(ARENA_BYTES_MIN));
    let start = memory.as_mut_slice().as_mut_ptr();
    let block = |index: usize| start.wrapping_add(index * load.pattern.block_bytes);
    let mut places = vec![0; load.pattern.depth];
    let mut ring = IoUring::new(load.pattern.depth as u32)?;
    let entry = libc::iovec { iov_base: start.cast(), iov_len: memory.capacity() };
    // SAFETY: the memory outlives the ring, which was made after it.
    unsafe { ring.submitter().register_buffers(&[entry]) }?;
    let (mut offsets, mut check) = (Offsets::new(load), Check::default());
    let (mut moved, mut flying) = (0, 0);
    let begin = Instant::now();
    let mut free: Vec<usize> = (0..load.pattern.depth).collect();
    loop {
        if begin.elapsed() < load.pattern.time {
            for index in free.drain(..) {
                places[index] = offsets.next();
                let read =
                    opcode::ReadFixed::new(fd, block(index), load.pattern.block_bytes as u32, 0)
                        .offset(places[index])
                        .build()
                        .user_data(index as u64);
                // SAFETY: file and memory outlive the loop, which ends when nothing is in flight,
                // and each block is in one read at a time.
                unsafe { ring.submission().push(&read) }?;
                flying += 1;
            }
        }
        if flying == 0 {
            return Ok((moved as f64 / 1e6 / begin.elapsed().as_secs_f64(), check.hash));
        }
        ring.submit_and_wait(1)?;
        for entry in ring.completion() {
            let index = entry.user_data() as usize;
            anyhow::ensure!(entry.result() == load.pattern.block_bytes as i32, "a read fell short");
            // SAFETY: the read of this block is over, and the next one has not begun.
            let bytes =
                unsafe { std::slice::from_raw_parts(block(index), load.pattern.block_bytes) };
            check.block(places[index], bytes)?;
            moved += load.pattern.block_bytes;
            flying -= 1;
            free.push(index);
        }
    }
}
