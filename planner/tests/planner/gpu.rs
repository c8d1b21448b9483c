//! Profiles with the kernels of a GPU, which the CPU executes here: what is measured, checked and
//! refused.

use crate::measuring::{OPERATIONS, dataset, dataset_of, is_empty, measure, options};
use meetpoint_datasets::{JpegOptions, PackOptions, Progressive};
use meetpoint_gpu::{Compute, Error as GpuError, Hooked, Hooks, Launch, subject};
use meetpoint_planner::profile::{Options, ProfiledGpu, Samples};
use meetpoint_planner::{Codec, Error, Form, GpuIndex, Settings, enumerate, read_csv, write_csv};
use meetpoint_prepare::gpu::{Computes, GpuRefusal};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a tensor of [`OPERATIONS`].
const TENSOR_BYTES: usize = 20 * 20 * 3 * 4;

/// A defect of the simulated GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    None,
    /// It has no driver.
    Absent,
    /// A bit of every tensor is wrong.
    WrongBit,
    /// It fails at this launch and from then on.
    FailsAt(u64),
}

/// The simulated GPU.
#[derive(Debug)]
struct Subject(Defect);

impl Computes for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn compute(&self) -> Result<Box<dyn Compute>, GpuError> {
        if self.0 == Defect::Absent {
            return Err(GpuError::NoDriver);
        }
        let inner = subject(env!("CARGO_TARGET_TMPDIR").as_ref())?;
        Ok(Box::new(Hooked::new(inner, Defects { defect: self.0, launches: 0 })))
    }
}

/// The hooks of one thread, which inject a defect.
struct Defects {
    defect: Defect,
    launches: u64,
}

impl Hooks for Defects {
    fn downloaded(&mut self, to: &mut [u8]) {
        if self.defect == Defect::WrongBit && to.len().is_multiple_of(TENSOR_BYTES) {
            to[0] ^= 1;
        }
    }

    fn launch(&mut self, _launch: &Launch<'_>) -> Result<bool, GpuError> {
        self.launches += 1;
        match self.defect {
            Defect::FailsAt(first) if self.launches > first => Err(GpuError::Driver {
                call: "cuLaunchKernel",
                name: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(),
                what: "an illegal memory access was encountered".to_owned(),
            }),
            Defect::None | Defect::Absent | Defect::WrongBit | Defect::FailsAt(_) => Ok(true),
        }
    }
}

/// Options of a short profile with this GPU.
fn with(defect: Defect, folder: &Path) -> Options {
    let gpu = ProfiledGpu { index: GpuIndex(1), gpu: Arc::new(Subject(defect)), batch_size: 3 };
    let settings = Settings { codecs: vec![Codec::None, Codec::Lz4], threads: vec![1, 2] };
    Options { settings, gpu: Some(gpu), ..options(folder) }
}

#[test]
fn forms_that_suit_a_gpu_are_measured_with_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 8);
    let temporary = tempfile::tempdir().unwrap();
    let options = with(Defect::None, temporary.path());
    let found = measure(&dataset, OPERATIONS, &options).unwrap();
    let strategies = enumerate(&found.points.legal, &options.settings, Some(GpuIndex(1)));
    let measured: Vec<_> = found.results.iter().map(|it| it.strategy()).collect();
    assert_eq!(measured, strategies);
    let (of_gpu, of_cpu): (Vec<_>, Vec<_>) =
        found.results.iter().partition(|it| it.gpu == Some(GpuIndex(1)));
    // Four forms, two numbers of threads, from the drive and from the page cache.
    assert_eq!(of_gpu.len(), 4 * 2 * 2);
    assert!(of_cpu.iter().all(|it| it.gpu_seconds.is_none() && it.gpu_joules.is_none()));
    for it in of_gpu {
        assert_eq!((it.samples, it.runs, it.dataset_samples), (5, 2, 8));
        assert!(it.cold_per_second > 0.0 && it.per_second > 0.0 && it.cpu_seconds > 0.0, "{it:?}");
        // Never longer than the runs took.
        let busy = it.gpu_seconds.unwrap();
        assert!(busy > 0.0 && busy < 3.0 / it.per_second.min(it.cold_per_second), "{it:?}");
        let is_same = |cpu: &&&meetpoint_planner::Measured| {
            (cpu.point(), cpu.codec, cpu.threads) == (it.point(), it.codec, it.threads)
        };
        let cpu = of_cpu.iter().find(is_same).unwrap();
        assert_eq!((it.offline_seconds, it.stored_bytes), (cpu.offline_seconds, cpu.stored_bytes));
    }
    let text = write_csv(&found.results).unwrap();
    assert_eq!(read_csv(&text).unwrap(), found.results);
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_gpu_with_wrong_bits_is_an_error_that_names_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 5);
    let temporary = tempfile::tempdir().unwrap();
    let found = measure(&dataset, OPERATIONS, &with(Defect::WrongBit, temporary.path()));
    let Err(Error::NotIdentical { strategy, key }) = found else { panic!("{found:?}") };
    assert_eq!(strategy, "files with cuda:1");
    assert!(key.ends_with(".jpg"), "{key}");
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_gpu_that_fails_ends_the_profile_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 5);
    // In the check, and while it is measured.
    for launch in [2, 60] {
        let temporary = tempfile::tempdir().unwrap();
        let found = measure(&dataset, OPERATIONS, &with(Defect::FailsAt(launch), temporary.path()));
        let Err(Error::GpuFailed { gpu, failure }) = found else { panic!("{launch}: {found:?}") };
        assert_eq!(gpu, GpuIndex(1));
        assert!(failure.detail.contains("illegal"), "{failure:?}");
        assert!(is_empty(temporary.path()));
    }
}

#[test]
fn a_gpu_that_cannot_be_used_is_an_error_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 5);
    let temporary = tempfile::tempdir().unwrap();
    // The temporary folder does not exist, which would be an error once something is stored.
    let absent = temporary.path().join("absent");
    let found = measure(&dataset, OPERATIONS, &with(Defect::Absent, &absent));
    let Err(Error::Gpu { gpu, source }) = found else { panic!("{found:?}") };
    assert_eq!((gpu, source.to_string().contains("no NVIDIA driver")), (GpuIndex(1), true));
    let found = measure(&dataset, &["decode"], &with(Defect::None, &absent));
    let is_refused =
        matches!(found, Err(Error::GpuRecipe { source: GpuRefusal::VariableSize, .. }));
    assert!(is_refused, "{found:?}");
    let mut large = with(Defect::None, &absent);
    large.settings.threads = vec![1024];
    let gpu = large.gpu.as_mut().unwrap();
    gpu.batch_size = u32::MAX;
    let found = measure(&dataset, OPERATIONS, &large);
    assert!(matches!(found, Err(Error::GpuBatches { threads: 1024, .. })), "{found:?}");
}

#[test]
fn forms_of_which_the_gpu_takes_no_sample_are_measured_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let jpeg = JpegOptions { progressive: Progressive::Keep, ..JpegOptions::default() };
    let options = PackOptions { jpeg, ..PackOptions::default() };
    let dataset = dataset_of(folder.path(), 4, true, &options);
    let temporary = tempfile::tempdir().unwrap();
    let settings = Settings { codecs: vec![Codec::None], threads: vec![1] };
    let samples = Samples::Exactly(4);
    let options = Options { settings, samples, ..with(Defect::None, temporary.path()) };
    let found = measure(&dataset, OPERATIONS, &options).unwrap();
    let of_gpu = found.results.iter().filter(|it| it.gpu.is_some());
    let forms: Vec<Form> = of_gpu.map(|it| it.form).collect();
    let (fast, compact) = (Form::CoefficientsFast, Form::CoefficientsCompact);
    assert_eq!(forms, [fast, fast, compact, compact]);
}
