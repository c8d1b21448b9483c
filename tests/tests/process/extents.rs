//! A device reads a dataset by its extents on a raw image, without a mount of its file system.
//!
//! The image and the positions of the files in it come from e2fsprogs, which shares no code with
//! this program. Without it, the tests print why they are skipped.

use super::jobs::{BATCHES, SAMPLES, check_devices, check_run, job, number, report};
use super::support::{command, finish, packed, run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const IMAGE_BYTES: u64 = 32 << 20;
const BLOCK_BYTES: u64 = 1024;

/// Runs a tool and returns what it prints, or why there is no such tool.
fn tool(name: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let ran = Command::new(name).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    match ran {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// CRC-32C by its definition, one bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}

/// The extents of a file by the numbers of its blocks, as `debugfs` lists them.
fn extents_of(folder: &Path, name: &str) -> Value {
    let bytes = std::fs::read(folder.join("small.set").join(name)).unwrap();
    let request = format!("blocks /small.set/{name}");
    let listed = tool("debugfs", &["-R", &request, "image"], folder).unwrap();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut left = bytes.len() as u64;
    for block in listed.split_whitespace().map(|number| number.parse::<u64>().unwrap()) {
        let taken = left.min(BLOCK_BYTES);
        left -= taken;
        match ranges.last_mut() {
            Some((begin, length)) if *begin + *length == block * BLOCK_BYTES => *length += taken,
            _ => ranges.push((block * BLOCK_BYTES, taken)),
        }
    }
    assert_eq!(left, 0, "{name}: {listed}");
    let mut at = 0;
    let extents = ranges.iter().map(|&(offset, length)| {
        let content = &bytes[at..at + length as usize];
        at += length as usize;
        json!({"offset": offset, "bytes": length, "crc32c": crc32c(content)})
    });
    let extents: Vec<Value> = extents.collect();
    json!({"file": name, "bytes": bytes.len(), "extents": extents})
}

/// A dataset, an image with a copy of it, and a file with its extents; `None` without e2fsprogs.
fn image() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let tree = folder.path().join("tree/small.set");
    std::fs::create_dir_all(&tree).unwrap();
    for file in std::fs::read_dir(folder.path().join("small.set")).unwrap().flatten() {
        std::fs::copy(file.path(), tree.join(file.file_name())).unwrap();
    }
    std::fs::File::create(folder.path().join("image")).unwrap().set_len(IMAGE_BYTES).unwrap();
    let format = ["-q", "-t", "ext4", "-b", "1024", "-d", "tree", "image"];
    let made = tool("mke2fs", &format, folder.path());
    if let Err(reason) = made.and_then(|_| tool("debugfs", &["-V"], folder.path())) {
        eprintln!("skipped: {reason}");
        return None;
    }
    let manifest = std::fs::read(folder.path().join("small.set/dataset.json")).unwrap();
    let sha256: String = Sha256::digest(&manifest).iter().map(|it| format!("{it:02x}")).collect();
    let listed: Value = serde_json::from_slice(&manifest).unwrap();
    let parts = listed["parts"].as_array().unwrap().iter().map(|part| part["file"].clone());
    let names = std::iter::once(json!("dataset.json")).chain(parts);
    let files: Vec<Value> =
        names.map(|name| extents_of(folder.path(), name.as_str().unwrap())).collect();
    let extents = json!({
        "format": "meetpoint-extents",
        "version": 1,
        "manifest_sha256": sha256,
        "device": {
            "name": "image", "bytes": IMAGE_BYTES, "block_bytes": 512,
            "drive": "image", "drive_bytes": IMAGE_BYTES, "partition_offset": 0
        },
        "files": files
    });
    write(folder.path(), &extents);
    Some(folder)
}

fn write(folder: &Path, extents: &Value) {
    std::fs::write(folder.join("extents.json"), extents.to_string()).unwrap();
}

fn read(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("extents.json")).unwrap()).unwrap()
}

/// A device on the image; killed when dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVE: [&str; 9] = [
    "device",
    "serve",
    "--socket",
    "socket",
    "--allow-shared",
    "--extents",
    "extents.json",
    "--block",
    "image",
];

fn serve(folder: &Path, more: &[&str]) -> Served {
    started(folder, &[&SERVE[..], more].concat()).0
}

/// A started device, and the line that says where it listens.
fn started(folder: &Path, arguments: &[&str]) -> (Served, String) {
    let mut child = command(folder, arguments).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("listening on"), "{line}");
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    (Served(child), line)
}

/// The job with the device on the image. Its host reads the folder.
fn connected(strategy: &str) -> String {
    let device = "kind = \"connect\"\nsocket = \"socket\"";
    job(strategy, 0, "").replace("kind = \"emulated\"\nallow_shared = true", device)
}

/// Changes one byte of the image, and makes the change durable.
fn flip(folder: &Path, offset: u64) {
    let image = std::fs::File::options().read(true).write(true).open(folder.join("image")).unwrap();
    let mut byte = [0];
    image.read_exact_at(&mut byte, offset).unwrap();
    image.write_all_at(&[!byte[0]], offset).unwrap();
    image.sync_all().unwrap();
}

fn offset_of(extents: &Value, file: usize) -> u64 {
    number(extents, &format!("/files/{file}/extents/0/offset"))
}

#[test]
fn a_device_prepares_the_batches_of_a_dataset_that_it_cannot_mount() {
    let Some(folder) = image() else { return };
    let verify = ["dataset", "extents", "extents.json", "--verify", "image", "--json"];
    let verified = run(folder.path(), &verify).success();
    let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
    let bytes =
        |file: &str| std::fs::metadata(folder.path().join("small.set").join(file)).unwrap().len();
    let all = bytes("dataset.json") + bytes("part-00000.arrow");
    assert_eq!((number(&verified, "/bytes"), number(&verified, "/begin")), (all, 0));
    // The last one lowers each batch to requests of a device with memory of its own.
    let devices: [&[&str]; 3] =
        [&["--engine", "threads"], &["--engine", "auto"], &["--function-memory", "16MiB"]];
    for more in devices {
        let _device = serve(folder.path(), more);
        let report = report(folder.path(), &connected("device-only"), &["--strategy", "all"]);
        for run in report["runs"].as_array().unwrap() {
            check_run(run);
            check_devices(run);
            if run["strategy"] == "device-only" {
                assert_eq!(number(run, "/totals/device_batches"), BATCHES, "{run}");
            }
        }
    }
}

#[test]
fn what_is_written_and_synced_is_seen_and_damage_is_detected_by_checksums() {
    let Some(folder) = image() else { return };
    let extents = read(folder.path());
    // The page cache of the reader holds the image.
    drop(std::fs::read(folder.path().join("image")).unwrap());
    let part = offset_of(&extents, 1);
    // In the first samples, after the head and the table of the first record batch.
    let damaged = part + number(&extents, "/files/1/bytes") / 2;
    flip(folder.path(), damaged);
    let verify = ["dataset", "extents", "extents.json", "--verify", "image"];
    run(folder.path(), &verify).refused(&["part-00000.arrow, extent 0", "checksum is 0x"]);
    let device = serve(folder.path(), &[]);
    // The host has an intact copy, and prepares the batch that the device cannot.
    let report = report(folder.path(), &connected("device-only"), &[]);
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/device_batches"), BATCHES - 1, "{report}");
    assert_eq!(number(&report, "/runs/0/totals/host_batches"), 1, "{report}");
    drop(device);
    flip(folder.path(), damaged);
    run(folder.path(), &verify).success();
}

#[test]
fn a_host_on_a_network_names_the_extents_and_their_checksum() {
    let Some(folder) = image() else { return };
    std::fs::write(folder.path().join("token"), "0123456789abcdef0123456789abcdef").unwrap();
    let listen = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--token-file", "token"];
    let block = ["--allow-shared", "--block", "image", "--extents"];
    let unnamed = [&listen[..], &block, &["extents.json"]].concat();
    run(folder.path(), &unnamed).refused(&["extents.json", "NAME="]);
    let (_device, line) =
        started(folder.path(), &[&listen[..], &block, &["photos=extents.json"]].concat());
    let port = line.trim().rsplit(':').next().unwrap();
    let device =
        format!("kind = \"connect\"\naddress = \"tcp://127.0.0.1:{port}\"\ntoken_file = \"token\"");
    let job =
        job("device-only", 0, "").replace("kind = \"emulated\"\nallow_shared = true", &device);
    let report = report(folder.path(), &job, &[]);
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/device_batches"), BATCHES, "{report}");
}

#[test]
fn blocks_that_match_no_extents_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["device", "serve", "--socket", "s"];
    for wrong in [
        &["--extents", "a", "--extents", "b", "--extents", "c", "--block", "x", "--block", "y"][..],
        &["--extents", "a"],
        &["--root", ".", "--block", "x"],
    ] {
        assert_eq!(run(folder.path(), &[&serve[..], wrong].concat()).code(), Some(2), "{wrong:?}");
    }
    let verify = ["dataset", "extents", ".", "--to", "x", "--verify", "y"];
    assert_eq!(run(folder.path(), &verify).code(), Some(2));
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert_eq!(run(folder.path(), &["dataset", "extents", "file"]).code(), Some(2));
}

#[test]
fn batches_that_do_not_fit_the_function_memory_are_prepared_by_the_host() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let roots = ["device", "serve", "--socket", "socket", "--allow-shared", "--root", "small.set"];
    let arguments = [&roots[..], &["--function-memory", "20KB"]].concat();
    let (_device, _) = started(folder.path(), &arguments);
    let report = report(folder.path(), &connected("device-only"), &[]);
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/host_batches"), BATCHES, "{report}");
    assert!(report.to_string().contains("bytes of function data memory left"), "{report}");
}

#[test]
fn another_device_and_impossible_extents_are_refused_before_anything_is_served() {
    let Some(folder) = image() else { return };
    let extents = read(folder.path());
    let refused = |words: &[&str]| {
        finish(command(folder.path(), &SERVE).spawn().unwrap()).refused(words);
    };
    let with = |pointer: &str, value: u64| {
        let mut changed = extents.clone();
        *changed.pointer_mut(pointer).unwrap() = json!(value);
        write(folder.path(), &changed);
    };
    let end = IMAGE_BYTES - 512;
    with("/files/1/extents/0/offset", end);
    refused(&["part-00000.arrow, extent 0: ends after the device", "meetpoint dataset extents"]);
    with("/files/1/extents/0/offset", offset_of(&extents, 0));
    refused(&["overlaps another extent"]);
    with("/files/0/extents/0/offset", 1 << 20);
    refused(&["does not hold dataset.json where the extents say"]);
    let mut shorter = extents.clone();
    shorter["device"]["bytes"] = json!(IMAGE_BYTES - 1024);
    shorter["device"]["drive_bytes"] = json!(IMAGE_BYTES - 1024);
    write(folder.path(), &shorter);
    refused(&["image has 33554432 bytes, but the extents are on image of 33553408 bytes"]);
    for (name, problem) in
        [("x".repeat(1 << 20), "longer than 255 bytes"), ("a\u{1b}[31m".to_owned(), "control")]
    {
        let mut named = extents.clone();
        named["files"][1]["file"] = json!(name);
        write(folder.path(), &named);
        refused(&["files: a name", problem, "meetpoint dataset extents"]);
    }
    write(folder.path(), &extents);
    let image = std::fs::File::options().write(true).open(folder.path().join("image")).unwrap();
    image.set_len(IMAGE_BYTES / 2).unwrap();
    refused(&["image has 16777216 bytes"]);
    std::fs::remove_file(folder.path().join("image")).unwrap();
    refused(&["failed to open image", "name the device or the drive that the dataset is on"]);
}

#[test]
fn the_extents_of_a_mounted_image_are_those_that_the_file_system_tools_list() {
    let Some(folder) = image() else { return };
    std::fs::create_dir(folder.path().join("mounted")).unwrap();
    let mount = ["-o", "loop,ro", "image", "mounted"];
    if let Err(reason) = tool("mount", &mount, folder.path()) {
        return eprintln!("skipped: {reason}");
    }
    let mapped = ["dataset", "extents", "mounted/small.set", "--to", "mapped.json", "--json"];
    let mapped = finish(command(folder.path(), &mapped).spawn().unwrap());
    tool("umount", &["mounted"], folder.path()).unwrap();
    let mapped: Value = serde_json::from_str(&mapped.success().stdout).unwrap();
    let expected = read(folder.path());
    assert_eq!(mapped["files"], expected["files"]);
    assert_eq!(mapped["manifest_sha256"], expected["manifest_sha256"]);
    assert_eq!(number(&mapped, "/device/bytes"), IMAGE_BYTES);
    // The file system is not mounted any more.
    let verify = ["dataset", "extents", "mapped.json", "--verify", "image"];
    run(folder.path(), &verify).success();
    let again = ["dataset", "extents", "small.set", "--to", "mapped.json"];
    let again = run(folder.path(), &again);
    let is_mapped_here = !again.stderr.contains("neither ext4 nor XFS");
    if is_mapped_here && again.stderr.contains("exists") {
        again.refused(&["mapped.json exists", "--force"]);
    }
}

#[test]
fn a_dataset_of_this_machine_is_verified_on_its_own_block_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 6);
    let mapped = run(folder.path(), &["dataset", "extents", "small.set", "--to", "e.json"]);
    if mapped.code() == Some(1) {
        return eprintln!("skipped: {}", mapped.stderr);
    }
    let name = read_name(&folder.path().join("e.json"));
    let block = format!("/dev/{name}");
    if let Err(error) = std::fs::File::open(&block) {
        return eprintln!("skipped: {block}: {error}");
    }
    run(folder.path(), &["dataset", "extents", "e.json", "--verify", &block]).success();
}

fn read_name(path: &Path) -> String {
    let extents: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    extents["device"]["name"].as_str().unwrap().to_owned()
}
