//! `meetpoint dataset extents`: maps a dataset to extents of its block device.

use crate::commands::serving::engine_parser;
use crate::surface::failure::Interrupted;
use crate::surface::fault::Fault;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::extents::{MapError, map_extents, write_extents};
use meetpoint_diagnose::shown;
use meetpoint_format::dataset::DatasetExtents;
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::ExtentFolder;
use meetpoint_storage::EngineKind;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Extents of a file that the text lists; `--json` has them all.
const LISTED: usize = 8;

/// Map a dataset to extents of its block device, for a device that reads it without mounting it.
///
/// The files are synced and read once. They must be on ext4 or XFS, and each must have blocks of
/// its own: files that are not yet allocated, preallocated, compressed, encrypted, stored in an
/// inode or shared with another file are refused. `device serve --extents` reads the result. The
/// extents are valid until a file of the dataset is written, moved or deleted, so mount the file
/// system read-only, or protect the files (chattr +i).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset extents photos.set
  meetpoint dataset extents photos.set --to photos.extents.json
  meetpoint dataset extents photos.extents.json --verify /dev/nvme0n1")]
pub(super) struct Arguments {
    /// Folder of the dataset, or with --verify a file of extents.
    path: PathBuf,
    /// File to which the extents are written, in JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    to: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long, requires = "to")]
    force: bool,
    /// Read every extent of a file of extents from this block device, image or NVMe namespace, and
    /// compare it with its checksum.
    #[arg(long, value_name = "BLOCK")]
    verify: Option<PathBuf>,
    /// Engine that reads blocks for --verify. An NVMe namespace is always read by NVMe commands;
    /// spdk also accepts devices of SPDK (docs/spdk.md).
    #[arg(long, default_value = "auto", requires = "verify", value_parser = engine_parser())]
    engine: EngineKind,
}

/// What was verified.
#[derive(Debug, Serialize)]
struct Verified {
    block: PathBuf,
    /// The engine that read it.
    engine: &'static str,
    /// Offset on it of the device that the extents refer to.
    begin: u64,
    files: usize,
    extents: usize,
    bytes: u64,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    if let Some(block) = &arguments.verify {
        return verify(&arguments.path, block, arguments.engine, &stop, output);
    }
    if arguments.path.is_file() {
        let remedy = "name a folder, or the block device to compare it with (--verify)";
        return Err(Fault::usage("the path is a file of extents, not a dataset", remedy).into());
    }
    let mut bar = Progress::new("reading", "bytes", 0);
    let mapped =
        map_extents(&arguments.path, &stop.flag(), &mut |done, bytes| bar.set(done, bytes));
    drop(bar);
    let extents = mapped.map_err(|error| match error {
        MapError::Interrupted => Interrupted.into(),
        error => anyhow::Error::from(error),
    })?;
    if let Some(to) = &arguments.to {
        write_extents(to, &extents, arguments.force)?;
    }
    output.result(&extents, || text(&extents, arguments.to.as_deref()))
}

fn verify(
    path: &Path,
    block: &Path,
    engine: EngineKind,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<()> {
    let folder = ExtentFolder::open(path, block, engine)?;
    let extents = folder.extents();
    let bytes = extents.files.iter().map(|file| file.bytes).sum();
    let flag = stop.flag();
    let interrupt = Interrupt::when(move || flag.load(Ordering::Relaxed));
    let (bar, done) = (RefCell::new(Progress::new("verifying", "bytes", bytes)), Cell::new(0));
    let verified = folder.verify(&interrupt, &|read| {
        done.set(done.get() + read);
        bar.borrow_mut().set(done.get(), bytes);
    });
    drop(bar);
    verified.map_err(|error| match error {
        meetpoint_prepare::Error::Interrupted => Interrupted.into(),
        error => anyhow::Error::from(error),
    })?;
    let verified = Verified {
        block: block.to_path_buf(),
        engine: folder.engine(),
        begin: folder.begin(),
        files: extents.files.len(),
        extents: extents.files.iter().map(|file| file.extents.len()).sum(),
        bytes,
    };
    output.result(&verified, || {
        format!(
            "{}: all {} of {} match their checksums ({})\n",
            shown(block),
            units::count(verified.extents as u64, "extent"),
            units::count(verified.files as u64, "file"),
            units::bytes(bytes)
        )
    })
}

fn text(extents: &DatasetExtents, to: Option<&Path>) -> String {
    let device = &extents.device;
    let mut text = format!(
        "device       {}, {}, blocks of {} bytes\n",
        device.name,
        units::bytes(device.bytes),
        device.block_bytes
    );
    if device.drive != device.name {
        text.push_str(&format!(
            "drive        {}, {}; the device begins at byte {}\n",
            device.drive,
            units::bytes(device.drive_bytes),
            device.partition_offset
        ));
    }
    text.push_str(&format!("identity     {}\n", extents.manifest_sha256));
    for file in &extents.files {
        let count = units::count(file.extents.len() as u64, "extent");
        text.push_str(&format!("{}  {}, {count}\n", file.file, units::bytes(file.bytes)));
        for extent in file.extents.iter().take(LISTED) {
            text.push_str(&format!("  {:>16}  {:>12} bytes\n", extent.offset, extent.bytes));
        }
        if file.extents.len() > LISTED {
            let more = file.extents.len() - LISTED;
            text.push_str(&format!("  and {more} more; --json lists all\n"));
        }
    }
    if let Some(to) = to {
        text.push_str(&format!("written to {}\n", shown(to)));
    }
    text
}
