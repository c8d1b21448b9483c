//! Measures what a core of this machine can emulate: its own decoding rate, and how well a share
//! of it is held.

use crate::generate;
use crate::surface::Stop;
use anyhow::{Context, ensure};
use meetpoint_device::{Basis, DeviceProfile, PROFILE_BYTES_MAX, ProfileError, SlowCore};
use meetpoint_kernels::jpeg::{DecodeOptions, Decoder, Encoded, Picture};
use meetpoint_link::{CoreUse, Disturbance, Emulation, Targets};
use meetpoint_report::{EmulatedCore, SpeedLimit};
use meetpoint_storage::files::read_regular;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Generated pictures that are decoded in turn: photographs of 400 x 320 to 640 x 480 pixels.
const PICTURES: u32 = 8;
/// CPU time after which a measurement at a small share may end.
const CPU_MIN: Duration = Duration::from_millis(40);
/// Rounds over all pictures before a measurement.
const WARM_UP: usize = 2;

/// Encoded pictures, in memory, so that storage plays no part.
#[derive(Debug)]
pub(crate) struct Pictures(Vec<Vec<u8>>);

impl Pictures {
    /// Generates them.
    pub(crate) fn generate(stop: &Stop) -> anyhow::Result<Self> {
        let picture = |index| {
            stop.check()?;
            generate::encoded(0, index)
        };
        (0..PICTURES).map(picture).collect::<anyhow::Result<_>>().map(Self)
    }
}

/// What a thread did at a share of a core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// Share of the core that was requested; `None`: all of it, without a governor.
    pub(crate) target: Option<f64>,
    /// Share that it had.
    pub(crate) achieved: f64,
    /// Pixels decoded per second.
    pub(crate) pixels_per_second: f64,
    /// Pixels decoded per second of CPU time.
    pub(crate) pixels_per_cpu_second: f64,
    /// The core.
    pub(crate) core: Option<usize>,
    #[serde(flatten)]
    pub(crate) core_use: EmulatedCore,
    /// Whether the achieved share is within 5 % of the target.
    pub(crate) is_valid: bool,
    /// The causes if it is not; empty if no measured disturbance explains it.
    pub(crate) causes: Vec<Disturbance>,
}

impl Measured {
    /// The achieved share over the target, less 1.
    pub(crate) fn off(&self) -> f64 {
        self.target.map_or(0.0, |target| self.achieved / target - 1.0)
    }
}

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Minimum time of a measurement.
    pub(crate) duration: Duration,
    /// Core to use; by default the one that a device would.
    pub(crate) core: Option<u32>,
    /// Whether it may be the only core.
    pub(crate) allow_shared: bool,
    /// Whether another thread is busy on the same core.
    pub(crate) has_neighbour: bool,
}

/// Decodes pictures at a share of a core, in a thread of its own.
pub(crate) fn measure(
    pictures: &Pictures,
    share: Option<f64>,
    setting: Setting,
    stop: &Stop,
) -> anyhow::Result<Measured> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| decode_at(pictures, share, setting, stop));
        worker.join().expect("its errors are returned")
    })
}

fn decode_at(
    pictures: &Pictures,
    share: Option<f64>,
    setting: Setting,
    stop: &Stop,
) -> anyhow::Result<Measured> {
    // Without a share too, so that it is bound to the same core.
    let targets =
        Targets { cpu_ratio: Some(share.unwrap_or(1.0)), core: setting.core, ..Targets::default() };
    let emulation =
        Emulation { targets, allow_shared: setting.allow_shared, memory_bytes_max: None };
    let mut decoder = Decoder::new();
    let options = DecodeOptions::default();
    let mut out = Picture::default();
    for encoded in pictures.0.iter().cycle().take(WARM_UP * pictures.0.len()) {
        let encoded = Encoded::from(&encoded[..]);
        decoder
            .decode_into(encoded, None, &options, &mut out)
            .context("a generated picture does not decode")?;
    }
    let mut core = SlowCore::new(&emulation)?;
    let number = core.core();
    let neighbour = setting.has_neighbour.then(|| Neighbour::start(number)).transpose()?;
    let mut pixels = 0_u64;
    for encoded in pictures.0.iter().cycle() {
        stop.check()?;
        let encoded = Encoded::from(&encoded[..]);
        decoder
            .decode_into(encoded, None, &options, &mut out)
            .context("a generated picture does not decode")?;
        pixels += u64::from(out.width) * u64::from(out.height);
        core.pay();
        if core.wall() >= setting.duration && core.cpu() >= CPU_MIN {
            break;
        }
    }
    let used = core.finish();
    drop(neighbour);
    Ok(describe(share, number, pixels, &used))
}

fn describe(share: Option<f64>, core: Option<usize>, pixels: u64, used: &CoreUse) -> Measured {
    let achieved = used.share();
    let verdict = share.map(|share| SpeedLimit::of_core(share, achieved, Some(used)));
    let per = |time_ns: u64| pixels as f64 / (time_ns.max(1) as f64 / 1e9);
    Measured {
        target: share,
        achieved,
        pixels_per_second: per(used.available_ns),
        pixels_per_cpu_second: per(used.cpu_ns),
        core,
        core_use: (*used).into(),
        is_valid: verdict.as_ref().is_none_or(|verdict| verdict.is_valid),
        causes: verdict.map_or_else(Vec::new, |verdict| verdict.causes),
    }
}

/// A thread that is always busy. Dropping this ends the thread.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Neighbour {
    /// Starts it on the core that the calling thread is bound to, since a thread inherits the
    /// binding of the thread that starts it. Returns once it runs there.
    fn start(core: Option<usize>) -> anyhow::Result<Self> {
        let core = core.context("a neighbour needs a measured thread that is bound to a core")?;
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let (sender, running_on) = sync_channel(1);
        let busy = move || {
            let cores = rustix::thread::sched_getaffinity(None);
            let is_there = cores.is_ok_and(|cores| cores.count() == 1 && cores.is_set(core));
            // The receiver waits for exactly one answer.
            let _ = sender.send(is_there);
            while is_there && !asked.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = std::thread::Builder::new().name("neighbour".to_owned()).spawn(busy);
        let thread = Some(thread.context("failed to start the neighbour's thread")?);
        let neighbour = Self { is_over, thread };
        ensure!(running_on.recv()?, "the neighbour's thread is not bound to core {core}");
        Ok(neighbour)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A profile by its name, or from a file.
pub(crate) fn profile(name: &str) -> anyhow::Result<DeviceProfile> {
    if let Some(shipped) = DeviceProfile::shipped(name) {
        return Ok(shipped?);
    }
    let path = Path::new(name);
    if !path.is_file() {
        return Err(ProfileError::Unknown { name: name.to_owned() }.into());
    }
    let bytes =
        read_regular(path, PROFILE_BYTES_MAX).with_context(|| format!("failed to read {name}"))?;
    Ok(DeviceProfile::read(name, &String::from_utf8_lossy(&bytes))?)
}

/// Figures of a profile that have no source, as a sentence; `None` if all have one.
pub(crate) fn assumptions(profile: &DeviceProfile) -> Option<String> {
    let figures = profile.figures().into_iter();
    let assumed: Vec<&str> =
        figures.filter(|it| it.2 == Basis::Assumed).map(|figure| figure.0).collect();
    (!assumed.is_empty()).then(|| {
        format!("{}: assumed, without a published source: {}", profile.name, assumed.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    #[test]
    fn a_neighbour_runs_on_the_core_of_the_measured_thread_or_is_an_error() {
        // A separate thread, because the binding remains until a thread ends.
        let bound = || {
            let allowed = sched_getaffinity(None).unwrap();
            let core = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).unwrap();
            let mut only = CpuSet::new();
            only.set(core);
            sched_setaffinity(None, &only).unwrap();
            let neighbour = Neighbour::start(Some(core)).unwrap();
            assert!(!neighbour.thread.as_ref().unwrap().is_finished(), "it computes until the end");
            drop(neighbour);
            assert!(Neighbour::start(Some(core + 1)).is_err(), "it is bound to another core");
            assert!(Neighbour::start(None).is_err());
        };
        std::thread::scope(|scope| scope.spawn(bound).join().unwrap());
    }
}
