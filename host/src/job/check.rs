//! Checks of a job against its dataset and this machine, with file, line and column of a fault.

use super::{Choice, DeviceKind, JobFile};
use crate::error::memory_of;
use crate::job_error::{CAUSE, JobError};
use crate::notice::Notice;
use crate::{Error, SpoolKind};
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, shown};
use meetpoint_format::batching::{BatchOptions, Batching, Rank};
use meetpoint_format::holders::Holders;
use meetpoint_format::sampler::{AspectRatio, Sampler, Sampling, Shuffled};
use meetpoint_format::units::show_bytes;
use meetpoint_prepare::{Dataset, Error as PrepareError, RemoteFailure};
use meetpoint_scheduler::{AnyStrategy, OptionTooLarge, Order};
use meetpoint_storage::MemoryLimit;
use rustix::fs::{Access, access, statvfs};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of ranks that a device serves.
const HOSTS_MAX: u32 = 64;

impl JobFile {
    /// A fault of the value under a key, such as `device.core` or `host_cores[1]`.
    pub fn fault(
        &self,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> JobError {
        JobError {
            file: self.path.clone(),
            place: self.marks.of_key(key),
            cause: CAUSE,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// Refuses a job that cannot run with its dataset or on this machine, before anything is
    /// started. Returns notices, which are not errors.
    pub fn check(&self) -> Result<Vec<Notice>, Error> {
        self.check_with(&mut |_, _| true)
    }

    /// As [`Self::check`]; while it reads the sizes of pictures, it calls `watch` with the number
    /// of samples done and the total, and fails once that returns `false`.
    pub fn check_with(
        &self,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Vec<Notice>, Error> {
        self.check_plan()?;
        self.check_combination()?;
        self.check_dataset(watch)?;
        self.check_cores()?;
        self.check_memory(&MemoryLimit::of_this_process())?;
        Ok(self.check_spool()?)
    }

    /// Attributes an error of the loader to the key that caused it.
    pub fn locate(&self, error: Error) -> Error {
        if let Error::Prepare(PrepareError::Sampler(error)) = &error {
            if self.marks.of_key("sampler").is_none() {
                return PrepareError::Sampler(error.clone()).into();
            }
            let key = error.option().map(|option| format!("sampler.{option}"));
            let key = key.as_deref().unwrap_or("sampler");
            let fault = self.fault(key, error.to_string(), error.instruction());
            return JobError { cause: error.cause(), ..fault }.into();
        }
        let cause = match &error {
            Error::OfDevice { source, .. } => source.as_ref(),
            error => error,
        };
        let of_column;
        let key = match cause {
            Error::BudgetTooSmall { .. }
            | Error::BudgetTooLarge { .. }
            | Error::RingMemory { .. } => "memory_budget",
            Error::QuotaTooSmall { .. } | Error::SpoolTooLarge { .. } => "spool.quota",
            Error::Spool { .. } => match self.spool.kind {
                SpoolKind::Memory => "spool.quota",
                SpoolKind::File { .. } => "spool.directory",
            },
            Error::Cores { .. } => "host_cores",
            Error::GpuMemoryTooLarge { .. } if self.marks.of_key("gpu_memory").is_some() => {
                "gpu_memory"
            }
            Error::Gpu { .. } if self.marks.of_key("gpu_decode").is_some() => "gpu_decode",
            Error::TooFewParts { .. } | Error::NoBatchForDevice { .. } => "device",
            Error::BatchLargerThanDataset { .. } => "batch_size",
            Error::Prepare(PrepareError::Columns { source, .. }) => {
                if self.marks.of_key("columns").is_none() {
                    return error;
                }
                let at = self.columns.iter().rposition(|name| source.column() == Some(name));
                of_column = at.map_or_else(|| "columns".to_owned(), |at| format!("columns[{at}]"));
                &of_column
            }
            Error::Prepare(
                PrepareError::Collate(_)
                | PrepareError::CollateViews { .. }
                | PrepareError::CollateOnBatches { .. },
            ) if self.marks.of_key("collate").is_some() => "collate",
            _ => return error,
        };
        match error.remedy() {
            Some(remedy) => {
                let fault = self.fault(key, error.to_string(), remedy);
                JobError { cause: error.cause(), ..fault }.into()
            }
            None => error,
        }
    }

    /// Refuses keys that contradict each other, and those that this version parses but does not
    /// support.
    fn check_combination(&self) -> Result<(), JobError> {
        if self.reuse {
            let refuse = |why: &str, remedy: &'static str| {
                let problem = format!("`reuse` retains batches for the next epoch, but {why}");
                Err(self.fault("reuse", problem, remedy))
            };
            if !self.sampler.is_same_in_every_epoch() {
                let why = format!(
                    "sampler {:?} gives different batches in every epoch",
                    self.sampler.name()
                );
                return refuse(&why, self.same_in_every_epoch());
            }
            if !self.recipe.is_deterministic() {
                return refuse(
                    "the recipe has random parameters",
                    "use deterministic operations, such as resize and center_crop, or leave \
                     `reuse` out",
                );
            }
            if self.run_ahead {
                let remedy = "leave one of the two out";
                return refuse("devices that run ahead need the slots", remedy);
            }
        }
        if self.run_ahead && !self.replay.is_empty() {
            let problem = "`run_ahead` begins an epoch before its record is known to the devices";
            return Err(self.fault("run_ahead", problem, "leave it out of a job with `replay`"));
        }
        if let Some(device) = self.devices.iter().find(|it| self.shared && it.parts.is_some()) {
            let problem = "with `shared` every device has every part of the dataset";
            let key = format!("{}.parts", device.table);
            return Err(self.fault(&key, problem, "leave out `parts`, or `shared`"));
        }
        if !self.devices.is_empty() && self.ranks > HOSTS_MAX {
            let problem = format!("a device works for at most {HOSTS_MAX} ranks at a time");
            return Err(self.fault("ranks", &problem, "use fewer ranks, or no device"));
        }
        let epochs = self.epochs as usize;
        if self.replay.len() > 1 && self.replay.len() != epochs {
            let problem =
                format!("`replay` has {} records, and the job {epochs} epochs", self.replay.len());
            return Err(self.fault("replay", problem, "give one for each epoch, or one for all"));
        }
        if self.choice == Choice::Saving {
            let refuse = |why: &str, remedy: &'static str| {
                let problem =
                    format!("`choice` moves batches according to measured times, but {why}");
                Err(self.fault("choice", problem, remedy))
            };
            if self.run_ahead {
                let remedy = "leave one of the two out";
                return refuse("devices that run ahead begin before these are known", remedy);
            }
            if !self.replay.is_empty() {
                return refuse("a record does not contain them", "leave one of the two out");
            }
            if let AnyStrategy::Auto(auto) = self.strategy(self.strategy)
                && auto.order != Order::Any
            {
                return refuse("`auto.order` requires an order", "set order = \"any\"");
            }
        }
        Ok(())
    }

    /// How to set the job's sampler, or another one, so that every epoch has the same batches.
    fn same_in_every_epoch(&self) -> &'static str {
        let options = self.sampler.declaration().options;
        if options.iter().any(|option| option.name == "shuffle") {
            return "set shuffle = false in [sampler], or leave `reuse` out";
        }
        match (self.sampler == Shuffled.into(), self.marks.of_key("sampler").is_some()) {
            (true, false) => "set shuffle = false, or leave `reuse` out",
            (true, true) => "set sampler = \"sequential\", or leave `reuse` out",
            (false, _) => {
                "leave `reuse` out, or use the sampler \"sequential\", \"indices\" or \"filter\""
            }
        }
    }

    fn check_dataset(&self, watch: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), Error> {
        let remedy = || {
            Remedy::advice("correct the path, which starts at the job file's folder")
                .or_run(Command::Pack)
        };
        let dataset = Dataset::open_for_samples(&self.dataset).map_err(|error| match error {
            PrepareError::Open { path, source } if RemoteFailure::inside(&source).is_none() => {
                let problem = format!("failed to open dataset {}: {source}", shown(&path));
                self.fault("dataset", problem, remedy()).into()
            }
            PrepareError::NotADataset { path, problem } => {
                let problem = format!("{} is not a dataset: {problem}", shown(&path));
                self.fault("dataset", problem, remedy()).into()
            }
            error => Error::from(error),
        })?;
        let samples = dataset.len();
        if samples == 0 {
            return Err(Error::EmptyDataset { dataset: self.dataset.name() });
        }
        if let Sampler::AspectRatio(AspectRatio { columns: None, .. }) = &self.sampler {
            dataset.picture_sizes(watch).map_err(|error| self.locate(error.into()))?;
        }
        let sampling = Sampling::of(&self.sampler, &dataset);
        let sampling = Arc::new(sampling.map_err(|error| self.locate(error.into()))?);
        let (batch_size, samples) = (self.batch_size, sampling.length());
        if u64::from(batch_size) > samples {
            let problem = format!(
                "a batch of {batch_size} is more than the {samples} samples of an epoch of dataset \
                 {} under sampler {:?}",
                self.dataset,
                self.sampler.name()
            );
            return Err(self
                .fault("batch_size", problem, format!("set `batch_size` to at most {samples}"))
                .into());
        }
        dataset.select(&self.columns, &self.recipe).map_err(|error| self.locate(error.into()))?;
        self.check_parts(dataset.manifest().parts.len())?;
        let (drop_last, seed) = (self.drop_last, self.seed);
        let batch_options = BatchOptions { batch_size, drop_last, seed };
        let rank = Rank { rank: 0, ranks: self.ranks };
        let batches =
            Batching::new(batch_options, sampling, rank, self.holders(&dataset)?)?.batches();
        let count = u32::try_from(batches).unwrap_or(u32::MAX);
        for chosen in self.options.iter() {
            if let Err(OptionTooLarge { strategy, option, asked, .. }) = chosen.fits(count) {
                let key = format!("{strategy}.{option}");
                let problem = format!("`{key}` is {asked}, and an epoch has {batches} batches");
                let options = chosen.options().into_iter();
                let words = options.filter(|(spec, _)| spec.name == option);
                let words = words.flat_map(|(spec, _)| spec.takes.words);
                let words: String = words.map(|word| format!(", or {word:?}")).collect();
                let remedy = format!("set `{key}` to at most {batches}{words}");
                return Err(self.fault(&key, problem, remedy).into());
            }
        }
        Ok(())
    }

    /// Which device holds which parts.
    fn holders(&self, dataset: &Dataset) -> Result<Holders, Error> {
        let devices = u32::try_from(self.devices.len()).expect("at most DEVICES_MAX");
        if devices < 2 || self.shared {
            return Ok(Holders::all_alike());
        }
        let spread = dataset.spread(devices, &self.part_holders());
        spread.map_err(|source| Error::Holders { dataset: self.dataset.name(), source })
    }

    /// Checks that every part of the dataset is on one device.
    fn check_parts(&self, parts: usize) -> Result<(), JobError> {
        let mut at_device = vec![false; parts];
        let last = parts.saturating_sub(1);
        let mut is_named = false;
        for device in &self.devices {
            for (index, &part) in device.parts.iter().flatten().enumerate() {
                is_named = true;
                let Some(place) = at_device.get_mut(part as usize) else {
                    let key = format!("{}.parts[{index}]", device.table);
                    let problem = format!("`{key}` is part {part}, but the dataset has {parts}");
                    return Err(self.fault(&key, problem, format!("name parts from 0 to {last}")));
                };
                *place = true;
            }
        }
        if is_named
            && !self.shared
            && let Some(left_out) = at_device.iter().position(|is_there| !is_there)
        {
            let problem = format!("part {left_out} of the dataset is in no device's `parts`");
            let remedy = "assign every part to one device, or leave `parts` out everywhere";
            return Err(self.fault("device", problem, remedy));
        }
        let devices = self.devices.len();
        if !self.shared && devices > parts {
            let problem = format!(
                "{devices} devices need at least one part each, but the dataset has {parts}"
            );
            let remedy = Remedy::run(Command::PackSmallerParts)
                .or("use fewer devices")
                .or_set(Setting::Shared, Change::On);
            return Err(self.fault("device", problem, remedy));
        }
        Ok(())
    }

    fn check_cores(&self) -> Result<(), JobError> {
        // If the kernel does not report it, binding a thread will.
        let Ok(set) = sched_getaffinity(None) else { return Ok(()) };
        let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
        let check = |key: &str, core: usize| {
            if usable.contains(&core) {
                return Ok(());
            }
            let listed: Vec<String> = usable.iter().map(usize::to_string).collect();
            let problem = format!("`{key}` is core {core}, which this process may not use");
            Err(self.fault(key, problem, format!("name one of the cores {}", listed.join(", "))))
        };
        for (index, &core) in self.host_cores.iter().flatten().enumerate() {
            check(&format!("host_cores[{index}]"), core)?;
        }
        for device in &self.devices {
            if let DeviceKind::Emulated(command) = &device.kind
                && let Some(core) = command.emulation.targets.core
            {
                check(&format!("{}.core", device.table), core as usize)?;
            }
        }
        Ok(())
    }

    /// Only for values in the file: a default is not the user's mistake.
    fn check_memory(&self, limit: &MemoryLimit) -> Result<(), JobError> {
        let check = |key: &str, bytes: u64| {
            if bytes <= limit.bytes || self.marks.of_key(key).is_none() {
                return Ok(());
            }
            let problem =
                format!("`{key}` is {}, more than {}", show_bytes(bytes), memory_of(limit));
            let remedy = format!("set `{key}` to less than {}", show_bytes(limit.bytes));
            Err(self.fault(key, problem, remedy))
        };
        check("memory_budget", self.memory_budget_bytes)?;
        self.check_gpu_memory(limit)?;
        match self.spool.kind {
            SpoolKind::Memory => check("spool.quota", self.spool.quota_bytes),
            SpoolKind::File { .. } => Ok(()),
        }
    }

    /// Rejects page-locked memory for a GPU that does not fit together with the budget for batches.
    fn check_gpu_memory(&self, limit: &MemoryLimit) -> Result<(), JobError> {
        let Some(decode) = &self.gpu_decode else { return Ok(()) };
        let is_budget_given = self.marks.of_key("memory_budget").is_some();
        let others = if is_budget_given { self.memory_budget_bytes } else { 0 };
        if decode.memory(limit.bytes, others).is_some() {
            return Ok(());
        }
        let given = decode.memory_bytes.unwrap_or(0);
        let (with_others, remedy) = match others {
            0 => (String::new(), "lower `gpu_memory`"),
            others => (
                format!("with {} for batches, ", show_bytes(others)),
                "lower `gpu_memory` or `memory_budget`",
            ),
        };
        let problem = format!(
            "`gpu_memory` is {}, an eighth of which is page-locked memory; {with_others}that is \
             more than {}",
            show_bytes(given),
            memory_of(limit)
        );
        Err(self.fault("gpu_memory", problem, remedy))
    }

    fn check_spool(&self) -> Result<Vec<Notice>, JobError> {
        let SpoolKind::File { directory } = &self.spool.kind else { return Ok(Vec::new()) };
        let refuse = |problem: String| {
            let remedy = "name a folder that can be written, relative to the job file's folder";
            Err(self.fault("spool.directory", problem, remedy))
        };
        if !directory.is_dir() {
            return refuse(format!("{} is not a folder", shown(directory)));
        }
        if let Err(error) = access(directory, Access::WRITE_OK | Access::EXEC_OK) {
            let error = std::io::Error::from(error);
            return refuse(format!("cannot create a file in {}: {error}", shown(directory)));
        }
        let quota = self.spool.quota_bytes;
        Ok(free_bytes(directory)
            .filter(|&free| free < quota)
            .map(|free_bytes| Notice::SpoolSpace {
                directory: directory.clone(),
                quota_bytes: quota,
                free_bytes,
            })
            .into_iter()
            .collect())
    }
}

/// Bytes that this user may still write to a file system; `None` if it does not report them.
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
