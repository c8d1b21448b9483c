//! Checks a job before the device accepts it.

use crate::job_refusal::{RECIPE_BYTES_MAX, Refusal};
use crate::resources::{DeviceResources, Reservation};
use crate::shown_paths::ShownPaths;
use crate::spool::{Geometry, SLOTS_MAX, Spool, slowed};
use crate::waits::{StorageWaits, WatchedEngine};
use meetpoint_format::batching::{BatchOptions, Batching, Rank};
use meetpoint_format::column::{BatchColumns, BatchLayout, COLUMNS_MAX, Collate, ColumnNames};
use meetpoint_format::recipe::{Recipe, RecipeHash};
use meetpoint_format::sampler::{DATASETS_MAX, Sampling};
use meetpoint_format::slot::{HEADER_BYTES, slot_bytes};
use meetpoint_format::wire::{LoadRequest, PROTOCOL_VERSION, SpoolKind};
use meetpoint_prepare::{Dataset, OnError, Preparer, Resources, read_recipe_files};
use meetpoint_storage::BLOCK_BYTES;
use meetpoint_storage::slow::Meter;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads that a worker keeps in flight.
const READ_DEPTH: usize = 32;

/// Copies of a sampler's lists in memory while they are read: received, decoded, and in the option.
/// The tables are built afterwards.
const COPIES_OF_LISTS: u64 = 3;

/// Longest part of a root's name that is repeated to a host.
const ROOT_CHARS_SHOWN: usize = 64;

/// A job ready to be run.
pub(crate) struct LoadedJob {
    pub(crate) batches: u64,
    pub(crate) slots: u32,
    pub(crate) samples: u64,
    /// Batches that this device holds.
    pub(crate) batches_held: u64,
    /// Whether slots are sent.
    pub(crate) is_stream: bool,
    /// One for each worker; at least one.
    pub(crate) workers: Vec<Job>,
}

/// A job as one of its workers sees it.
pub(crate) struct Job {
    pub(crate) batching: Batching,
    /// Index of this device among devices that hold different parts.
    pub(crate) device: u16,
    pub(crate) recipe: RecipeHash,
    /// Bytes of a slot after its header.
    pub(crate) payload_bytes_max: u64,
    pub(crate) preparer: Box<dyn Preparer>,
    pub(crate) read_meter: Option<Meter>,
    /// Records the waits for reads of the worker.
    pub(crate) waits: Arc<StorageWaits>,
    pub(crate) spool: Spool,
    /// As in [`DeviceResources`].
    pub(crate) shown_paths: Arc<ShownPaths>,
    /// Shared by the workers of the job, and held while one of them exists.
    _memory: Arc<Reservation>,
}

/// Checks a job and opens everything that it needs. Blocks on files.
pub(crate) fn load(
    request: &LoadRequest,
    sampler_data: &[u8],
    spool: Option<&Arc<OwnedFd>>,
    resources: &DeviceResources,
) -> Result<LoadedJob, Refusal> {
    let dataset = open_dataset(request, resources)?;
    let recipe = parse_recipe(request)?;
    let count = request.columns.len();
    if count > COLUMNS_MAX {
        return Err(Refusal::TooManyColumns { count });
    }
    let collate = request.collate.as_ref().map_or(Ok(Collate::Stack), Collate::try_from)?;
    let columns = ColumnNames::from(request.columns.clone()).collated(collate);
    let selected = dataset.select(&columns, &recipe)?;
    let (batching, device) = find_batching(request, sampler_data, &dataset, resources)?;
    let batches = batching.batches();
    let least = least_payload(&selected, request.batch_size);
    resources.check_memory(least)?;
    let geometry = check_geometry(request, least)?;
    let payload_bytes_max = geometry.slot_bytes - HEADER_BYTES as u64;
    let is_stream = geometry.kind == SpoolKind::Stream;
    match spool {
        _ if is_stream => {}
        _ if resources.is_remote => return Err(Refusal::SharedSpool),
        None => return Err(Refusal::NoSpool { token: request.spool_token }),
        Some(_) => {}
    }
    // A batch that is sent is in memory twice: while it is prepared, and while it is sent.
    let of_worker = payload_bytes_max.saturating_mul(if is_stream { 2 } else { 1 });
    resources.check_memory(of_worker)?;
    let recipe = Arc::new(recipe);
    let job = meetpoint_prepare::Job {
        dataset,
        recipe: Arc::clone(&recipe),
        batching: batching.clone(),
        // The host decides about damaged samples and prepares the batch.
        on_error: OnError::default(),
        columns,
    };
    job.dataset.keep_small_samples_by_memory();
    let decode_memory = resources.decode_memory(request, payload_bytes_max);
    let workers = workers(geometry.slots, of_worker, resources);
    let bytes = of_worker.saturating_mul(workers.into());
    let memory = Arc::new(resources.reserve(bytes));
    let worker = || {
        let spool = match spool.filter(|_| !is_stream) {
            None => Spool::stream(geometry.slot_bytes, resources.write_pace()),
            Some(fd) => {
                Spool::open(fd.as_fd(), geometry, resources.write_pace(), resources.engine)?
            }
        };
        let engine = job.dataset.open_engine(resources.engine, READ_DEPTH)?.engine;
        let (engine, read_meter) = slowed(engine, resources.read_pace());
        let engine = WatchedEngine::new(engine);
        let waits = engine.waits();
        let decode_memory = Some(Arc::clone(&decode_memory));
        let of_preparer = Resources { engine: Box::new(engine), decode_memory, cache: None };
        let preparer = resources.preparers.preparer(&job, of_preparer)?;
        Ok(Job {
            batching: batching.clone(),
            device,
            recipe: recipe.hash(),
            payload_bytes_max,
            preparer,
            read_meter,
            waits,
            spool,
            shown_paths: Arc::clone(&resources.shown_paths),
            _memory: Arc::clone(&memory),
        })
    };
    Ok(LoadedJob {
        batches,
        slots: geometry.slots,
        samples: batching.samples(),
        batches_held: batching.count(device),
        is_stream,
        workers: (0..workers).map(|_| worker()).collect::<Result<_, Refusal>>()?,
    })
}

/// Workers of a job: one for each thread and another that waits for its turn, so that a job has a
/// batch ready whenever a thread becomes free, as far as its slots and the memory allow.
fn workers(slots: u32, bytes_each: u64, resources: &DeviceResources) -> u32 {
    // With one worker, batches are published in order.
    if resources.threads == 1 {
        return 1;
    }
    let wanted = resources.threads.saturating_add(1).min(slots);
    let fitting = resources.memory_left() / bytes_each.max(1);
    wanted.min(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1)
}

/// Refuses another version of the link, before anything else is checked.
pub(crate) fn check_version(request: &LoadRequest) -> Result<(), Refusal> {
    let host = request.protocol_version;
    if host == PROTOCOL_VERSION { Ok(()) } else { Err(Refusal::Version { host }) }
}

/// Opens a dataset inside the roots. The error does not reveal whether a path outside of them
/// exists.
fn open_dataset(
    request: &LoadRequest,
    resources: &DeviceResources,
) -> Result<Arc<Dataset>, Refusal> {
    let roots = || {
        let roots: Vec<_> =
            resources.roots.paths().map(|root| root.display().to_string()).collect();
        let extents = resources.extents.paths().map(|path| path.display().to_string());
        roots.into_iter().chain(extents).collect::<Vec<_>>().join(", ")
    };
    let inside = |path: &PathBuf| resources.roots.contain(path);
    // Without a limit, a host could have many more opened than it can use.
    let count = request.datasets.len().max(request.named.len());
    if count > DATASETS_MAX {
        return Err(meetpoint_prepare::Error::TooManyDatasets { datasets: count }.into());
    }
    if let Some(folders) = resources.extents.of_request(request, resources.is_remote) {
        return Ok(resources.datasets.open_extents(&folders)?);
    }
    if resources.is_remote {
        return open_named(request, resources);
    }
    let mut paths = Vec::with_capacity(count);
    for named in &request.datasets {
        let named = Path::new(OsStr::from_bytes(named));
        let Some(path) = std::fs::canonicalize(named).ok().filter(inside) else {
            let (dataset, roots) = (named.to_path_buf(), roots());
            return Err(Refusal::OutsideRoots { dataset, roots });
        };
        paths.push(path);
    }
    let dataset = resources.datasets.open(&paths)?;
    for content in dataset.content_roots() {
        if std::fs::canonicalize(content).ok().filter(inside).is_none() {
            return Err(Refusal::ContentOutsideRoots {
                dataset: dataset.path().to_path_buf(),
                content: content.display().to_string(),
                roots: roots(),
            });
        }
    }
    let own = dataset.manifest_sha256();
    if own[..] != request.manifest_sha256[..] {
        let (own, host) = (hex(&own), hex(&request.manifest_sha256));
        return Err(Refusal::OtherDataset { own, host });
    }
    Ok(dataset)
}

/// Opens the datasets that a host on another machine names. No error reveals a path.
fn open_named(request: &LoadRequest, resources: &DeviceResources) -> Result<Arc<Dataset>, Refusal> {
    if !request.datasets.is_empty() || request.named.is_empty() {
        return Err(Refusal::Unnamed);
    }
    let mut paths = Vec::with_capacity(request.named.len());
    for named in &request.named {
        let found = resources.roots.dataset(&named.root, &named.manifest_sha256);
        paths.push(found.ok_or_else(|| {
            Refusal::NotServed {
                root: named.root.chars().take(ROOT_CHARS_SHOWN).collect(),
                sha256: hex(&named.manifest_sha256),
                names: resources
                    .roots
                    .names()
                    .chain(resources.extents.names())
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        })?);
    }
    let dataset = resources.datasets.open(&paths)?;
    let inside = |path: &PathBuf| resources.roots.contain(path);
    for content in dataset.content_roots() {
        if std::fs::canonicalize(content).ok().filter(inside).is_none() {
            return Err(Refusal::NamedContentOutsideRoots);
        }
    }
    let own = dataset.manifest_sha256();
    if own[..] != request.manifest_sha256[..] {
        let (own, host) = (hex(&own), hex(&request.manifest_sha256));
        return Err(Refusal::OtherDataset { own, host });
    }
    Ok(dataset)
}

fn parse_recipe(request: &LoadRequest) -> Result<Recipe, Refusal> {
    let bytes = request.recipe_toml.len();
    if bytes > RECIPE_BYTES_MAX {
        return Err(Refusal::RecipeTooLong { bytes });
    }
    let recipe = Recipe::from_toml(&request.recipe_toml)?;
    // The host must know the checksum of the content, so that a device reveals no other files.
    if let Some(file) = recipe.files().iter().find(|file| file.sha256.is_none()) {
        return Err(Refusal::NamelessFile { path: file.path.clone() });
    }
    let recipe = read_recipe_files(recipe)?;
    let own = recipe.hash();
    if own.0[..] != request.recipe_hash[..] {
        return Err(Refusal::OtherRecipe { own, host: hex(&request.recipe_hash) });
    }
    Ok(recipe)
}

/// The batches of the job, and the index of this device.
fn find_batching(
    request: &LoadRequest,
    sampler_data: &[u8],
    dataset: &Dataset,
    resources: &DeviceResources,
) -> Result<(Batching, u16), Refusal> {
    let LoadRequest { batch_size, drop_last, seed, .. } = *request;
    let LoadRequest { rank, ranks, device, devices, .. } = *request;
    let samples = dataset.len();
    let refuse = |problem| Err(Refusal::Batches { batch_size, samples, problem });
    if batch_size == 0 {
        return refuse("a batch has at least one sample");
    }
    let holders = dataset.spread(devices, &request.part_holders)?;
    let number = u16::try_from(device).ok().filter(|_| device < devices);
    let number = number.ok_or(Refusal::Device { device, devices })?;
    let batch_options = BatchOptions { batch_size, drop_last, seed };
    let sampling = Arc::new(find_sampling(request, sampler_data, dataset, resources)?);
    let batching = Batching::new(batch_options, sampling, Rank { rank, ranks }, holders)?;
    match batching.batches() {
        0 => refuse("not even one is full"),
        batches if batches > 1 << 32 => refuse("an epoch has at most 2^32"),
        _ => Ok((batching, number)),
    }
}

/// Builds the sampler and checks that it equals the host's.
fn find_sampling(
    request: &LoadRequest,
    data: &[u8],
    dataset: &Dataset,
    resources: &DeviceResources,
) -> Result<Sampling, Refusal> {
    let message = request.sampler.as_ref().ok_or(Refusal::NoSampler)?;
    let sampler = message.read(data)?;
    resources.check_memory(sampler.memory_bytes(dataset.len()))?;
    let sampling = Sampling::of(&sampler, dataset)?;
    let own = sampling.checksum();
    if own[..] != message.checksum[..] {
        let (own, host) = (hex(&own), hex(&message.checksum));
        return Err(Refusal::OtherSampler { sampler: sampler.to_string(), own, host });
    }
    Ok(sampling)
}

/// Bytes of the sampler's lists, which must fit the memory of this process [`COPIES_OF_LISTS`]
/// times.
pub(crate) fn announced_bytes(
    request: &LoadRequest,
    resources: &DeviceResources,
) -> Result<usize, Refusal> {
    let message = request.sampler.as_ref().ok_or(Refusal::NoSampler)?;
    let bytes = message.data_bytes()?;
    resources.check_memory(COPIES_OF_LISTS * bytes)?;
    Ok(usize::try_from(bytes).expect("at most SAMPLER_BYTES_MAX"))
}

/// Minimum bytes of a batch: its columns of fixed length, and offsets. If values of variable length
/// do not fit the slot, only that batch fails.
fn least_payload(columns: &BatchColumns, batch_size: u32) -> u64 {
    BatchLayout::new(columns, batch_size, |_| 0).map_or(u64::MAX, |layout| layout.bytes())
}

fn check_geometry(request: &LoadRequest, payload: u64) -> Result<Geometry, Refusal> {
    let (slots, got) = (request.spool_slots, request.spool_slot_bytes);
    if !(1..=SLOTS_MAX).contains(&slots) {
        return Err(Refusal::Slots { slots });
    }
    let needed = slot_bytes(payload);
    if got < needed || !got.is_multiple_of(BLOCK_BYTES as u64) {
        return Err(Refusal::SlotBytes { got, needed });
    }
    Ok(Geometry { kind: request.spool_kind(), slots, slot_bytes: got })
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "(none)".to_owned();
    }
    // Hosts send no hash that is longer.
    bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}
