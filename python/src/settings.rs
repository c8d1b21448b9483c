//! The settings of a loader, from the package.

use crate::damage::{self, UserException};
use crate::exceptions::ProblemText;
use crate::gpu::{DecodeArguments, GpuArguments, GpuSettings};
use crate::ranks::MeetingSettings;
use crate::{errors, recipe, sampler, stores};
use meetpoint_diagnose::known;
use meetpoint_format::column::{Collate, ColumnNames};
use meetpoint_host::collective::{Collective, CollectiveError, RendezvousConfig, Turn};
use meetpoint_host::{
    DeviceSource, LoaderConfig, RemoteDevice, SpawnDevice, SpoolConfig, SpoolKind, Tune,
};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::{AddressSyntax, RemoteAddress};
use meetpoint_prepare::cache::CacheSettings;
use meetpoint_scheduler::{
    AcceptedValues, Agreement, AnyStrategy, OptionSpec, Proposal, StrategyName, Value,
};
use meetpoint_storage::MemoryLimit;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A dictionary with exactly these keys; the package fills in defaults.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    dataset: Vec<PathBuf>,
    /// In TOML.
    recipe: String,
    /// Columns of a batch, in order.
    columns: Vec<String>,
    /// Mode, `multiple_of`, `fill` and `max_size`.
    collate: (String, Option<u64>, Option<f64>, Option<[u64; 2]>),
    batch_size: u32,
    drop_last: bool,
    sampler: sampler::SamplerArguments,
    seed: u64,
    strategy: String,
    /// The required order under `auto`.
    order: String,
    /// Batches in a window of `windowed`.
    window: Option<u32>,
    workers: u32,
    prefetch: u32,
    /// `auto` or `off`.
    tune: String,
    memory_budget: Option<u64>,
    /// Bytes of it for small samples; `None` for what batches leave.
    small_samples: Option<u64>,
    /// Bytes of the cache of prepared samples; `None` without one.
    cache: Option<u64>,
    /// Operations after which samples are cached.
    cache_after: Option<usize>,
    /// Folder of the caches of datasets at URLs; `None`: the user's.
    cache_dir: Option<PathBuf>,
    /// Maximum bytes of each.
    cache_size: u64,
    /// Whether requests are sent without credentials.
    anonymous: bool,
    /// Sockets of devices that are already running.
    sockets: Vec<PathBuf>,
    /// Devices on other machines.
    remotes: Vec<RemoteSettings>,
    /// Command lines of devices to start, without the arguments that the loader adds.
    commands: Vec<Vec<OsString>>,
    spool_quota: Option<u64>,
    /// Folder of a spool file; without one, the spool is in memory.
    spool_folder: Option<PathBuf>,
    rank: u32,
    ranks: u32,
    /// The address at which they connect, if they have something to agree on.
    meeting: Option<MeetingSettings>,
    /// Seconds.
    rank_timeout: f64,
    /// Seconds.
    stall_timeout: f64,
    /// A word or a function.
    on_error: Py<PyAny>,
    max_errors: Option<u64>,
    quarantine: Option<PathBuf>,
    /// The GPU that batches are copied to; `None`: they stay on the host.
    gpu: Option<GpuArguments>,
    /// The GPU that prepares a share of each batch of the host.
    gpu_decode: Option<DecodeArguments>,
}

/// The parameters of a new loader.
pub(crate) struct Configured {
    pub(crate) config: LoaderConfig,
    /// The other ranks to connect to first.
    pub(crate) meeting: Option<RendezvousConfig>,
    /// The GPU that batches are copied to.
    pub(crate) gpu: Option<GpuSettings>,
    /// Hash of the whole recipe; the configuration may contain only the host's part of it.
    pub(crate) recipe_hash: String,
}

fn tune(py: Python<'_>, word: &str) -> PyResult<Tune> {
    let found = Tune::ALL.into_iter().find(|tune| tune.as_str() == word);
    found.ok_or_else(|| {
        let names = Tune::ALL.map(|tune| format!("{:?}", tune.as_str())).join(" or ");
        let message = format!("tune is {word:?}");
        errors::plain(py, "SettingError", (message, format!("give {names}")))
    })
}

/// A device on another machine.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct RemoteSettings {
    /// `tcp://HOST:PORT` or `file:PATH`.
    address: String,
    /// Folder with `ca.pem`, `client.pem` and `client.key`.
    keys: Option<PathBuf>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    crl: Option<PathBuf>,
    server_name: Option<String>,
    token_file: Option<PathBuf>,
    root: Option<String>,
}

impl RemoteSettings {
    fn device(self, py: Python<'_>) -> PyResult<DeviceSource> {
        let address = self.address.parse::<RemoteAddress>();
        let address = address.map_err(|error: AddressSyntax| {
            let message = format!("address is {:?}: {error}", self.address);
            let remedy = format!("give {}", RemoteAddress::EXPECTED);
            errors::plain(py, "SettingError", (message, remedy))
        })?;
        let mut device = RemoteDevice::new(address);
        if let Some(folder) = &self.keys {
            device = device.with_keys(folder);
        }
        match (&mut device.tls, self.ca, self.cert, self.key) {
            (Some(files), ca, cert, key) => {
                let given = [(&mut files.ca, ca), (&mut files.cert, cert), (&mut files.key, key)];
                given.into_iter().for_each(|(file, given)| *file = given.unwrap_or(file.clone()));
                files.crl = self.crl.or(files.crl.take());
            }
            (none, Some(ca), Some(cert), Some(key)) => {
                *none = Some(TlsFiles { ca, cert, key, crl: self.crl });
            }
            (_, None, None, None) if self.crl.is_none() => {}
            (_, _, _, _) => {
                let said = ("some of ca, cert and key are missing", "give all three, or keys");
                return Err(errors::plain(py, "SettingError", said));
            }
        }
        device.server_name = self.server_name;
        device.token_file = self.token_file;
        device.root = self.root;
        Ok(DeviceSource::Remote(Box::new(device.or_environment())))
    }
}

/// Ranks that reach the same result without communication.
#[derive(Debug)]
struct IndependentRanks;

impl Collective for IndependentRanks {
    fn agree(&self, _: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError> {
        Ok(proposal.agreement())
    }

    fn at_work(&self, _: u32) {}

    fn leave(&self, _: u32, _: u32, _: &str) {}
}

impl Settings {
    /// The parameters of a new loader; a function given as `on_error` leaves its exception in
    /// `raised`.
    pub(crate) fn config(self, py: Python<'_>, raised: &UserException) -> PyResult<Configured> {
        let strategy = self.strategy(py)?;
        let on_error = damage::policy(py, self.on_error, raised)?;
        let time = |name: &str, seconds: f64| {
            let remedy = format!("set {name} to a number of seconds from 0");
            let said = (format!("{name} is {seconds}"), remedy);
            let time = Duration::try_from_secs_f64(seconds);
            time.map_err(|_| errors::plain(py, "SettingError", said))
        };
        let rank_timeout = time("rank_timeout", self.rank_timeout)?;
        let stall_timeout = time("stall_timeout", self.stall_timeout)?;
        let meet = |it: MeetingSettings| it.meeting(py, self.rank, self.ranks, rank_timeout);
        let meeting = self.meeting.map(meet).transpose()?;
        let recipe = Arc::new(recipe::read(py, &self.recipe)?);
        let sampler = sampler::read(py, self.sampler)?;
        let (mode, multiple_of, fill, max_size) = self.collate;
        let collate = Collate::read(&mode, multiple_of, fill, max_size).map_err(|error| {
            errors::plain(py, "SettingError", ProblemText::new(error.to_string(), &error))
        })?;
        let are_remote = self.sockets.is_empty() && self.commands.is_empty();
        let sockets = self.sockets.into_iter().map(|socket| DeviceSource::Connect { socket });
        let spawned = self.commands.into_iter().filter_map(|words| {
            let mut words = words.into_iter();
            let program = PathBuf::from(words.next()?);
            Some(DeviceSource::Spawn(SpawnDevice { program, arguments: words.collect() }))
        });
        let remotes = self.remotes.into_iter().map(|it| it.device(py));
        let remotes = remotes.collect::<PyResult<Vec<_>>>()?;
        let kind = match self.spool_folder {
            Some(directory) => SpoolKind::File { directory },
            None => SpoolKind::Memory,
        };
        if self.ranks > 1 && strategy.uses_devices() && meeting.is_none() {
            let message = format!(
                "strategy {} with {} ranks needs ranks that agree on every step",
                self.strategy, self.ranks
            );
            return Err(errors::plain(py, "SettingError", (message, "give a rendezvous")));
        }
        // Ranks whose batches all come from their hosts need no agreement.
        let is_apart = self.ranks > 1 && meeting.is_none();
        let collective = is_apart.then(|| Arc::new(IndependentRanks) as Arc<dyn Collective>);
        let recipe_hash = recipe.hash().to_string();
        let store = (self.cache_dir, Some(self.cache_size), self.anonymous);
        let dataset = stores::paths(self.dataset, stores::options(store, None));
        let memory = MemoryLimit::of_this_process();
        let quota = self.spool_quota.unwrap_or_else(|| SpoolConfig::quota_default(&kind, &memory));
        let mut config = LoaderConfig {
            columns: ColumnNames::from(self.columns).collated(collate),
            collective,
            rank_timeout,
            drop_last: self.drop_last,
            sampler,
            seed: self.seed,
            strategy,
            workers: self.workers,
            prefetch: self.prefetch,
            tune: tune(py, &self.tune)?,
            memory_budget_bytes: self
                .memory_budget
                .unwrap_or_else(|| LoaderConfig::memory_budget_default(&memory)),
            small_samples_bytes: self.small_samples,
            cache: self.cache.map(|bytes| CacheSettings { bytes, operations: self.cache_after }),
            // Devices on other machines have a copy of the whole dataset each.
            shared_dataset: are_remote && remotes.len() > 1,
            devices: sockets.chain(remotes).chain(spawned).collect(),
            spool: SpoolConfig { kind, quota_bytes: quota },
            stall_timeout,
            rank: self.rank,
            ranks: self.ranks,
            on_error,
            errors_max: self.max_errors,
            quarantine: self.quarantine,
            ..LoaderConfig::new(dataset, recipe, self.batch_size)
        };
        self.gpu_decode.map(|it| it.apply(py, &mut config)).transpose()?;
        let gpu = self.gpu.map(|it| GpuSettings::new(py, it, &mut config)).transpose()?;
        Ok(Configured { config, meeting, gpu, recipe_hash })
    }

    /// The strategy, with all of its options that are arguments here.
    fn strategy(&self, py: Python<'_>) -> PyResult<AnyStrategy> {
        let wrong = |said: ProblemText| errors::plain(py, "SettingError", said);
        let mut strategy = StrategyName::from_str(&self.strategy)
            .map_err(|_| {
                let remedy = known(&self.strategy, StrategyName::TEXTS);
                wrong((format!("strategy is {:?}", self.strategy), remedy).into())
            })?
            .with_defaults();
        // Every argument is checked, even if another strategy is used.
        let arguments = [
            ("order", Some(Argument::Word(&self.order))),
            ("window", self.window.map(Argument::Whole)),
        ];
        for (argument, given) in arguments {
            let Some(given) = given else { continue };
            for (owner, spec) in options().filter(|(_, spec)| spec.name == argument) {
                let value = given.value(&spec.takes).ok_or_else(|| {
                    let remedy = format!("set {argument} to {}", spec.takes);
                    wrong((format!("{argument} is {given}"), remedy).into())
                })?;
                if owner == strategy.name() {
                    strategy
                        .set(argument, value)
                        .map_err(|error| wrong(error.to_string().into()))?;
                }
            }
        }
        Ok(strategy)
    }
}

/// An argument that is an option of a strategy.
enum Argument<'a> {
    Word(&'a str),
    Whole(u32),
}

impl Argument<'_> {
    fn value(&self, takes: &AcceptedValues) -> Option<Value> {
        match self {
            Self::Word(text) => takes.word(text),
            Self::Whole(number) => takes.number((*number).into()),
        }
    }
}

impl fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) => write!(f, "{text:?}"),
            Self::Whole(number) => write!(f, "{number}"),
        }
    }
}

/// Every option of every strategy.
fn options() -> impl Iterator<Item = (StrategyName, &'static OptionSpec)> {
    StrategyName::ALL
        .into_iter()
        .flat_map(|name| name.options().into_iter().map(move |(spec, _)| (name, spec)))
}
