//! Functions of the engine `spdk` alone: names, files of fixed length, failures of devices.

use crate::drive::Drive;
use crate::harness::{drain, open, pattern, read, request, tracked, write};
use meetpoint_diagnose::Diagnose;
use meetpoint_storage::spdk::SpdkEngine;
use meetpoint_storage::{Access, Engine, EngineKind, Error, Request, RequestKind, open_engine};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

#[test]
fn the_engine_is_chosen_by_name() {
    let chosen = open_engine(EngineKind::Spdk, 3).unwrap();
    assert_eq!((chosen.engine.name(), chosen.note), ("spdk", None));
    assert_eq!(chosen.engine.limits().depth, 3);
}

#[test]
fn a_file_does_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::write(&path, pattern(3 * 4096)).unwrap();
    let mut engine = SpdkEngine::new(2).unwrap();
    let file = engine.open(&path, Access::ReadWrite).unwrap();
    for offset in [2 * 4096, 3 * 4096, 1 << 40] {
        let error = write(&mut engine, file, offset, &[1; 8192]).unwrap_err();
        let Error::Io { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::StorageFull, "{offset}");
    }
    assert!(std::fs::read(&path).unwrap() == pattern(3 * 4096));
}

#[test]
fn a_file_whose_length_is_not_a_number_of_blocks_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    std::fs::write(&path, pattern(9000)).unwrap();
    let error = SpdkEngine::new(1).unwrap().open(&path, Access::Read).unwrap_err();
    assert!(error.remedy().is_some());
    let Error::Device { path: named, device, .. } = error else { panic!("{error}") };
    assert_eq!((named, &*device), (path, "bdev_aio"));
}

#[test]
fn a_write_into_the_last_partial_block_of_a_range_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::write(&path, pattern(3 * 4096)).unwrap();
    let mut engine = SpdkEngine::new(2).unwrap();
    let range = format!("aio:{}@0+5000", path.display());
    let file = engine.open(Path::new(&range), Access::ReadWrite).unwrap();
    assert!(read(&mut engine, file, 4096, 904).unwrap() == pattern(5000)[4096..]);
    for (offset, bytes) in [(4096, 4096), (0, 8192)] {
        let error = write(&mut engine, file, offset, &vec![1; bytes]).unwrap_err();
        let Error::Io { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::StorageFull, "{offset}");
    }
    assert!(std::fs::read(&path).unwrap() == pattern(3 * 4096));
}

#[test]
fn an_unnamed_file_is_shared_with_another_engine() {
    let memory = rustix::fs::memfd_create("spool", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&memory, 1 << 20).unwrap();
    for file in [tempfile::tempfile().unwrap(), std::fs::File::from(memory)] {
        file.set_len(1 << 20).unwrap();
        let again = file.try_clone().unwrap();
        let mut device = SpdkEngine::new(2).unwrap();
        let mut host = meetpoint_storage::threads::ThreadsEngine::new(2).unwrap();
        let spool = device.adopt(file, "the spool").unwrap();
        write(&mut device, spool, 8192, &pattern(12_288)).unwrap();
        let spool = host.adopt(again, "the spool").unwrap();
        assert!(read(&mut host, spool, 9000, 10_000).unwrap() == pattern(12_288)[808..10_808]);
    }
}

#[test]
fn a_file_that_was_replaced_is_not_confused_with_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    for fill in 1..40_u8 {
        let next = folder.path().join("next");
        std::fs::write(&next, [fill; 8192]).unwrap();
        std::fs::rename(&next, &path).unwrap();
        let mut engine = SpdkEngine::new(1).unwrap();
        let file = open(&mut engine, &path);
        assert_eq!(read(&mut engine, file, 0, 8192).unwrap(), [fill; 8192]);
    }
}

#[test]
fn devices_that_do_not_exist_are_named_with_a_remedy() {
    let mut engine = SpdkEngine::new(1).unwrap();
    for (name, bdev) in [
        ("spdk:NoSuchDevice", "bdev NoSuchDevice"),
        // Nothing listens on port 1.
        ("spdk:trtype:TCP traddr:127.0.0.1 trsvcid:1 subnqn:nqn.2016-06.io.spdk:none", "n1"),
    ] {
        let error = engine.open(Path::new(name), Access::Read).unwrap_err();
        assert_eq!(error.path(), Some(Path::new(name)));
        assert!(error.remedy().is_some());
        let Error::Device { device, reason, .. } = error else { panic!("{error}") };
        assert!(device.ends_with(bdev), "{device}");
        assert!(!reason.is_empty());
    }
    for name in ["spdk:", "spdk:a@1", "spdk:trtype:TCP traddr:127.0.0.1"] {
        let error = engine.open(Path::new(name), Access::Read).unwrap_err();
        let Error::Open { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::InvalidInput, "{name}");
    }
    // The engine works after these failures.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    std::fs::write(&path, pattern(8192)).unwrap();
    let file = open(&mut engine, &path);
    assert!(read(&mut engine, file, 77, 8000).unwrap() == pattern(8192)[77..8077]);
}

#[test]
fn many_engines_share_the_thread_with_more_requests_than_it_has_memory_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    let bytes = pattern(6000 * 512);
    std::fs::write(&path, &bytes).unwrap();
    let mut engines: Vec<_> = (0..6).map(|_| SpdkEngine::new(1000).unwrap()).collect();
    for engine in &mut engines {
        let file = open(engine, &path);
        for index in 0..1000 {
            let mut read = request(engine, file, RequestKind::Read, index * 3000, 100);
            read.token = index;
            engine.submit(read).unwrap();
        }
    }
    for mut engine in engines {
        let completions = drain(&mut engine);
        assert_eq!(completions.len(), 1000);
        for completion in completions {
            assert_eq!(completion.result.unwrap(), 100);
            let begin = completion.token as usize * 3000;
            let got = &completion.buffer.as_slice()[completion.start..][..100];
            assert!(got == &bytes[begin..][..100]);
        }
    }
}

/// An NVMe/TCP target of SPDK, from the program that `MEETPOINT_TEST_NVMF_TGT` names.
struct Target {
    process: Child,
    /// Has its drive, and is deleted after it.
    _folder: tempfile::TempDir,
    port: u16,
}

impl Target {
    const NAME: &str = "nqn.2016-06.io.spdk:meetpoint-stops";

    /// `None` and a message on standard error without the program.
    fn start() -> Option<Self> {
        let variable = "MEETPOINT_TEST_NVMF_TGT";
        let Some(program) = std::env::var_os(variable) else {
            eprintln!("skipped: a target that stops: {variable} names no program");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("drive.img");
        std::fs::write(&drive, pattern(1 << 20)).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let call = |method: &str, parameters: &str| {
            format!("{{\"method\": \"{method}\", \"params\": {{{parameters}}}}}")
        };
        let nqn = format!("\"nqn\": \"{}\"", Self::NAME);
        let bdev = call(
            "bdev_aio_create",
            &format!(
                "\"name\": \"drive\", \"filename\": \"{}\", \"block_size\": 512",
                drive.display()
            ),
        );
        let address = format!(
            "\"trtype\": \"TCP\", \"adrfam\": \"IPv4\", \"traddr\": \"127.0.0.1\", \
             \"trsvcid\": \"{port}\""
        );
        let nvmf = [
            call("nvmf_create_transport", "\"trtype\": \"TCP\""),
            call("nvmf_create_subsystem", &format!("{nqn}, \"allow_any_host\": true")),
            call(
                "nvmf_subsystem_add_ns",
                &format!("{nqn}, \"namespace\": {{\"bdev_name\": \"drive\", \"nsid\": 1}}"),
            ),
            call(
                "nvmf_subsystem_add_listener",
                &format!("{nqn}, \"listen_address\": {{{address}}}"),
            ),
        ];
        let config = format!(
            "{{\"subsystems\": [{{\"subsystem\": \"bdev\", \"config\": [{bdev}]}}, \
             {{\"subsystem\": \"nvmf\", \"config\": [{}]}}]}}",
            nvmf.join(", ")
        );
        let file = folder.path().join("target.json");
        std::fs::write(&file, config).unwrap();
        let mut process = Command::new(program)
            .args(["--no-huge", "--no-pci", "-s", "512", "-m", "0x1", "--interrupt-mode"])
            // Targets that run at the same time share the processor.
            .args(["--disable-cpumask-locks", "-r"])
            .arg(folder.path().join("rpc.sock"))
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let is_ready = |line: &String| line.contains("Target Listening");
        assert!(lines.map_while(Result::ok).any(|line| is_ready(&line)), "the target listens");
        Some(Self { process, _folder: folder, port })
    }

    fn signal(&self, signal: Signal) {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn requests_to_a_target_that_stops_fail_and_their_buffers_are_free() {
    for signal in [Signal::STOP, Signal::KILL] {
        let Some(target) = Target::start() else { return };
        let name = format!(
            "spdk:trtype:TCP traddr:127.0.0.1 trsvcid:{} subnqn:{}",
            target.port,
            Target::NAME
        );
        let mut engine = SpdkEngine::new(8).unwrap();
        let file = open(&mut engine, Path::new(&name));
        assert!(read(&mut engine, file, 77, 9000).unwrap() == pattern(1 << 20)[77..9077]);
        target.signal(signal);
        let tracker = Arc::new(());
        for token in 0..8 {
            let (offset, bytes) = (token * 5000, 100_000);
            let buffer = tracked(bytes + 8192, &tracker);
            let kind = RequestKind::Read;
            engine.submit(Request { token, file, kind, offset, bytes, buffer }).unwrap();
        }
        for completion in drain(&mut engine) {
            assert!(matches!(completion.result, Err(Error::Io { .. })), "{signal:?}");
        }
        assert_eq!(Arc::strong_count(&tracker), 1);
    }
    // The thread still works.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::write(&path, pattern(8192)).unwrap();
    let mut engine = SpdkEngine::new(1).unwrap();
    let file = open(&mut engine, &path);
    assert!(read(&mut engine, file, 0, 8192).unwrap() == pattern(8192));
}

#[test]
fn long_transfers_to_a_device_are_split_and_stay_in_their_range() {
    let Some(drive) = Drive::of_spdk() else { return };
    let [before, path, after] = [1, 2, 3].map(|fill| drive.put(&vec![fill; 3 << 20]));
    let mut engine = SpdkEngine::new(4).unwrap();
    let file = engine.open(&path, Access::ReadWrite).unwrap();
    assert!(engine.is_direct(file));
    let bytes = pattern(3 << 20);
    write(&mut engine, file, 0, &bytes).unwrap();
    assert!(read(&mut engine, file, 777, 3_000_000).unwrap() == bytes[777..3_000_777]);
    let error = write(&mut engine, file, 3 << 20, &[8; 4096]).unwrap_err();
    let Error::Io { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::StorageFull);
    assert!(drive.contents(&path) == bytes);
    for (path, fill) in [(&before, 1), (&after, 3)] {
        assert!(drive.contents(path).iter().all(|&byte| byte == fill), "{}", path.display());
    }
}
