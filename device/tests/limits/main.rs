//! Every setting of the emulation, measured: never more than five percent faster than its target,
//! on any machine. How much slower it is depends on the load, so only a setting that has the effect
//! of another value fails; `docs/measurements/` has the accuracy of a quiet machine.
//!
//! A separate program, so that the worker is identified by its thread's name.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

#[expect(dead_code, reason = "the other tests of the device use the rest")]
#[path = "../device/support.rs"]
mod support;

use crate::support::{Device, Host, SAMPLE_BYTES, Spool, jpeg, talk};
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{Meters, Release, SpoolKind};
use meetpoint_link::{Emulation, Targets};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const ATTEMPTS: usize = 5;

/// Held while a device works: there is one worker at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What one job measured.
struct Measured {
    meters: Meters,
    /// From granting the work to the last publish.
    took: Duration,
    /// Time that the worker waited for its core (second number of schedstat).
    held_off: Duration,
    allowed_cores: String,
}

/// A file of /proc about the worker, which is the newest thread of its name; empty if there is
/// none.
fn about_worker(file: &str) -> String {
    let mut workers = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap();
        // A thread may end at any moment.
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim() == "prepare" {
            workers.push(task.file_name().to_str().unwrap().parse::<u32>().unwrap());
        }
    }
    let worker = workers.iter().max().expect("the worker runs");
    std::fs::read_to_string(format!("/proc/self/task/{worker}/{file}")).unwrap_or_default()
}

/// Time that the worker waited for its core.
fn held_off() -> Duration {
    let waited = about_worker("schedstat");
    Duration::from_nanos(waited.split(' ').nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// The cores that a thread may use, from its status file (proc(5)).
fn allowed_cores(status: &str) -> String {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("the kernel lists them").trim().to_owned()
}

/// Prepares `batches` of `batch_size` in an epoch, one slot at a time.
fn measure(device: &Device, kind: SpoolKind, batch_size: u32, batches: u32) -> Measured {
    let spool = Spool::new(kind, 2, u64::from(batch_size) * SAMPLE_BYTES);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(device, &spool, |load| load.batch_size = batch_size).await.unwrap();
        let mut link = host.run().await.unwrap();
        let start = Instant::now();
        link.grant(0, 1, batches - 1, batches).await;
        for _ in 0..batches {
            let slot = link.published().await.slot;
            link.say(Message::Release(Release { slot })).await;
        }
        let took = start.elapsed();
        let meters = link.meters_at(u64::from(batches)).await;
        let (held_off, allowed_cores) = (held_off(), allowed_cores(&about_worker("status")));
        drop(link.say);
        while link.receiver.message().await.unwrap().is_some() {}
        Measured { meters, took, held_off, allowed_cores }
    })
}

#[test]
fn the_worker_stays_on_the_core_it_was_given() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let usable = allowed_cores(&std::fs::read_to_string("/proc/self/status").unwrap());
    let core: Option<u32> = usable.split(['-', ',']).next().and_then(|core| core.parse().ok());
    let targets = Targets { core, ..Targets::default() };
    let device = emulated((0..20).map(|index| jpeg(index, 64)).collect(), &targets);
    let measured = measure(&device, SpoolKind::Memory, 5, 1);
    assert!(core.is_some());
    assert_eq!(measured.allowed_cores.parse().ok(), core);
}

/// An attempt is ignored if the worker waited for its core for more than this share of the time.
const HELD_OFF_MAX: f64 = 0.01;

/// A limit that takes effect twice halves the speed.
const SPEED_MIN: f64 = 0.6;

/// Tries until the speed, achieved over target, is at least [`SPEED_MIN`].
///
/// A speed above the target fails at once. A lower speed fails if all attempts have one, except for
/// those in which the worker waited for its core.
fn no_faster_than_its_target(what: &str, mut attempt: impl FnMut() -> (f64, Measured)) {
    let mut got = Vec::new();
    for _ in 0..ATTEMPTS {
        let (speed, measured) = attempt();
        let held_off = measured.held_off.as_secs_f64() / measured.took.as_secs_f64();
        eprintln!("{what}: achieved over target {speed:.4}, kept off for {held_off:.4} of it");
        assert!(speed <= 1.05, "{what}: achieved over target was {speed:.4}");
        if speed >= SPEED_MIN {
            return;
        }
        if held_off <= HELD_OFF_MAX {
            got.push(speed);
        }
    }
    assert!(got.is_empty(), "{what}: achieved over target was {got:?}");
}

fn emulated(images: Vec<Vec<u8>>, targets: &Targets) -> Device {
    Device::start_with(images, |options| {
        options.emulation =
            Emulation { allow_shared: true, targets: *targets, ..Emulation::default() };
    })
}

#[test]
fn the_worker_gets_its_share_of_a_core() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for target in [0.5, 0.25] {
        let targets = Targets { cpu_ratio: Some(target), ..Targets::default() };
        // Enough work that the sleep owed at the end or credited at the start is a small part of
        // it.
        let images = (0..40).map(|index| jpeg(index, 900)).collect();
        let device = emulated(images, &targets);
        no_faster_than_its_target("cpu ratio", || {
            let measured = measure(&device, SpoolKind::Memory, 5, 8);
            let cpu = measured.meters.cpu_ns as f64;
            let least = cpu / target * 0.9;
            assert!(measured.took.as_nanos() as f64 >= least, "{:?}", measured.took);
            let core = measured.meters.core_use.expect("an emulated device reports its core");
            assert!(core.cpu_ns + core.contention_ns <= core.available_ns, "{core:?}");
            assert!(core.sleeps > 0 && core.late_p50_ns <= core.late_p99_ns, "{core:?}");
            let achieved = core.cpu_ns as f64 / core.available_ns as f64;
            assert!((achieved / measured.meters.cpu_ratio_achieved - 1.0).abs() < 1e-6, "{core:?}");
            (measured.meters.cpu_ratio_achieved / target, measured)
        });
    }
}

#[test]
fn the_dataset_is_read_at_the_bandwidth() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let images: Vec<_> = (0..20).map(|index| jpeg(index, 256)).collect();
    let bytes: u64 = images.iter().map(|image| image.len() as u64).sum();
    let target = bytes * 2;
    let targets = Targets { read_bytes_per_second: Some(target), ..Targets::default() };
    let device = emulated(images, &targets);
    no_faster_than_its_target("read bandwidth", || {
        let measured = measure(&device, SpoolKind::Memory, 10, 2);
        assert_eq!(measured.meters.dataset_bytes_read, bytes);
        assert!(measured.took >= Duration::from_millis(490), "{:?}", measured.took);
        (measured.meters.read_bytes_per_second_achieved / target as f64, measured)
    });
}

#[test]
fn the_spool_is_written_at_the_bandwidth() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for kind in [SpoolKind::Memory, SpoolKind::File] {
        let bytes = 20 * SAMPLE_BYTES + 4 * 4096;
        let target = bytes * 2;
        let targets = Targets { write_bytes_per_second: Some(target), ..Targets::default() };
        let device = emulated((0..20).map(|index| jpeg(index, 64)).collect(), &targets);
        no_faster_than_its_target("write bandwidth", || {
            let measured = measure(&device, kind, 5, 4);
            assert!(measured.took >= Duration::from_millis(490), "{:?}", measured.took);
            (measured.meters.write_bytes_per_second_achieved / target as f64, measured)
        });
    }
}

#[test]
fn every_read_takes_its_latency() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let latency = Duration::from_millis(20);
    let targets = Targets { latency_ns: Some(20_000_000), ..Targets::default() };
    let device = emulated((0..20).map(|index| jpeg(index, 64)).collect(), &targets);
    no_faster_than_its_target("latency", || {
        let measured = measure(&device, SpoolKind::Memory, 1, 20);
        assert!(measured.took >= 19 * latency, "{:?}", measured.took);
        (latency.as_nanos() as f64 / measured.meters.latency_ns_achieved as f64, measured)
    });
}

/// The limits apply to the device, not to each host. Other load can only make it slower.
#[test]
fn two_hosts_get_no_more_than_one_device_together() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let images: Vec<_> = (0..40).map(|index| jpeg(index, 256)).collect();
    let bytes: u64 = images.iter().map(|image| image.len() as u64).sum();
    let (ratio, rate) = (0.5, bytes * 4);
    for targets in [
        Targets { cpu_ratio: Some(ratio), ..Targets::default() },
        Targets { read_bytes_per_second: Some(rate), ..Targets::default() },
    ] {
        let device = Device::start_with(images.clone(), |options| {
            options.emulation = Emulation { allow_shared: true, targets, ..Emulation::default() };
            options.hosts = 2;
        });
        talk(async {
            let mut sessions = Vec::new();
            for _ in 0..2 {
                let spool = Spool::new(SpoolKind::Memory, 8, 5 * SAMPLE_BYTES);
                let mut host = Host::connect(device.socket()).await;
                host.load(&device, &spool, |_| ()).await.unwrap();
                let link = host.run().await.unwrap();
                sessions.push((spool, host, link));
            }
            let start = Instant::now();
            for (_, _, link) in &sessions {
                link.grant(0, 1, 7, 8).await;
            }
            let mut sum = Meters::default();
            for (_, _, link) in &mut sessions {
                for _ in 0..8 {
                    link.published().await;
                }
                let meters = link.meters_at(8).await;
                sum.cpu_ns += meters.cpu_ns;
                sum.dataset_bytes_read += meters.dataset_bytes_read;
            }
            let took = start.elapsed();
            assert_eq!(sum.dataset_bytes_read, 2 * bytes);
            if targets.cpu_ratio.is_some() {
                let share = sum.cpu_ns as f64 / took.as_nanos() as f64;
                eprintln!("{share:.4} of a core for {ratio}, two hosts together");
                // A share for each host would be twice the ratio. The sleep owed at the end or
                // credited at the start is less than half of it.
                assert!(share <= ratio * 1.5, "{share}");
            } else {
                let got = sum.dataset_bytes_read as f64 / took.as_secs_f64();
                eprintln!("{:.4} of the read bandwidth, two hosts together", got / rate as f64);
                assert!(got <= rate as f64 * 1.05, "{got}");
            }
        });
    }
}
