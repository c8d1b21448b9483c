//! The loader for Python: sends requests to the engine and waits without blocking other threads.

use crate::batch::Batch;
use crate::damage::UserException;
use crate::energy::{Energy, Scene};
use crate::engine::{Answer, Engine, EpochRequest, Failure, Next, Opened, Request, WaitResult};
use crate::exporter::{self, ExportSettings, MetricsExporter};
use crate::loader_state::{FinishedEpoch, State};
use crate::settings::{Configured, Settings};
use crate::{errors, guarded, panics};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::batching::Rank;
use meetpoint_host::Notice;
use meetpoint_host::explain::{RunContext, explain};
use meetpoint_host::stats::EpochStats;
use meetpoint_host::trace::{Process, TRACE_BATCHES_MAX, write};
use meetpoint_metrics::{ConsumedBatch, Exporter};
use meetpoint_scheduler::{NoRecord, Record};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time between two checks of Python's signals.
const SLICE: Duration = Duration::from_millis(50);

/// A loader. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct Loader {
    /// The process that created it.
    process: u32,
    state: Mutex<State>,
    opened: Opened,
    recipe_hash: String,
    /// The exception of a function that was called for a damaged sample.
    raised: UserException,
}

#[guarded]
#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, settings: Settings) -> PyResult<Self> {
        let raised = UserException::default();
        let Configured { config, meeting, gpu, recipe_hash } = settings.config(py, &raised)?;
        let collate = config.columns.collate();
        let shape = meetpoint_prepare::collated_shape(&config.recipe, collate);
        shape.map_err(|error| errors::of_prepare(py, &error))?;
        let engine = Engine::start(config, meeting, gpu)?;
        let mut state = State::new(engine);
        let opened = loop {
            let waited;
            (state, waited) = py.detach(|| {
                let waited = state.engine.wait(SLICE);
                (state, waited)
            });
            match waited {
                WaitResult::Answer(Answer::Opened(Ok(opened))) => break *opened,
                WaitResult::Answer(Answer::Opened(Err(failure))) => {
                    return Err(match failure {
                        Failure::Host(error) => errors::of_host(py, &error),
                        Failure::Gpu(failure) => failure.raised(py),
                    });
                }
                WaitResult::Answer(_) | WaitResult::Gone => return Err(panics::of_thread(py)),
                WaitResult::Nothing => py.check_signals().inspect_err(|_| {
                    drop(state.engine.close());
                })?,
            }
        };
        let process = std::process::id();
        Ok(Self { process, state: Mutex::new(state), opened, recipe_hash, raised })
    }

    #[getter]
    fn batches(&self) -> u32 {
        self.opened.batches
    }

    #[getter]
    fn samples(&self) -> u64 {
        self.opened.batching.samples()
    }

    /// Samples of an epoch of all ranks.
    #[getter]
    fn samples_per_epoch(&self) -> u64 {
        self.opened.batching.positions()
    }

    /// The sampler with its options in words, and the SHA-256 of its rule on the dataset.
    #[getter]
    fn sampler(&self) -> (String, String) {
        let sampling = self.opened.batching.sampling();
        let checksum = sampling.checksum();
        let digits = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        (sampling.sampler().to_string(), digits)
    }

    /// Number of batches and of samples of an epoch of another rank.
    fn size_of(&self, py: Python<'_>, rank: u32, ranks: u32) -> PyResult<(u64, u64)> {
        let own = &self.opened.batching;
        let batching = own
            .of_rank(Rank { rank, ranks })
            .map_err(|error| errors::plain(py, "SettingError", error.to_string()))?;
        let batches = batching.batches();
        let counted = u32::try_from(batches).unwrap_or(u32::MAX);
        let samples = (0..counted).map(|batch| u64::from(batching.batch_len(batch))).sum();
        Ok((batches, samples))
    }

    /// Indices of the samples of these batches, in order.
    fn samples_of(&self, epoch: u32, batches: Vec<u32>) -> Vec<Vec<u64>> {
        let batching = &self.opened.batching;
        let order = batching.order(epoch);
        batches.into_iter().map(|batch| batching.samples_of(&order, batch).collect()).collect()
    }

    #[getter]
    fn has_host_order(&self) -> bool {
        self.opened.has_host_order
    }

    #[getter]
    fn label_names(&self) -> Vec<String> {
        self.opened.labels.clone()
    }

    #[getter]
    fn recipe_hash(&self) -> String {
        self.recipe_hash.clone()
    }

    #[getter]
    fn dataset_sha256(&self) -> String {
        self.opened.manifest_sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[getter]
    /// As JSON, each with its sentence as `message`.
    fn notices(&self) -> Vec<String> {
        let json = |notice: &Notice| {
            let mut value = serde_json::to_value(notice).expect("notices are plain data");
            value["message"] = notice.in_full(Surface::Python).into();
            value.to_string()
        };
        self.opened.notices.iter().map(json).collect()
    }

    #[getter]
    fn device_processes(&self) -> Vec<u32> {
        self.opened.devices.iter().flatten().map(|device| device.process_id).collect()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.process != std::process::id() || self.lock().is_closed
    }

    #[pyo3(signature = (epoch, consumed=Vec::new(), record=None, errors=0))]
    fn begin(
        &self,
        py: Python<'_>,
        epoch: u32,
        consumed: Vec<(u32, u32)>,
        record: Option<&str>,
        errors: u64,
    ) -> PyResult<u64> {
        let parsed = record.map(str::parse::<Record>).transpose();
        let record = parsed.map_err(|NoRecord { text }| {
            let message = format!("the state is damaged: its record is {text:?}");
            errors::plain(py, "StateError", (message, "load the state of another checkpoint"))
        })?;
        let consumed = consumed.into_iter().map(|(from, to)| from..to).collect();
        let mut request = Some(Request::Begin(EpochRequest { epoch, consumed, record, errors }));
        loop {
            // A result that was requested for the previous epoch is dropped.
            match self.slice(py, &mut request)? {
                Some(Answer::Begun(Ok(()))) if request.is_none() => break,
                Some(Answer::Begun(Err(error))) => return Err(self.error(py, &error)),
                Some(other) => self.lock().absorb(other),
                None => {}
            }
        }
        let mut state = self.lock();
        state.serial += 1;
        state.is_over = false;
        state.is_begun = true;
        state.record = None;
        state.transform = Duration::ZERO;
        Ok(state.serial)
    }

    fn next(&self, py: Python<'_>, serial: u64) -> PyResult<Option<Batch>> {
        let since = Instant::now();
        loop {
            let mut request = Some(Request::Next);
            if self.lock().serial != serial {
                let said = "another iteration over the loader has begun, which ended this one";
                return Err(errors::plain(py, "ClosedError", said));
            }
            if self.lock().is_over {
                return Ok(None);
            }
            match self.slice(py, &mut request)? {
                Some(Answer::Next(Ok(Next::Batch { batch, handed, events, record }))) => {
                    let mut state = self.lock();
                    state.note_losses(&events);
                    state.record = record;
                    state.count(&ConsumedBatch { waited: since.elapsed(), ..handed });
                    return Ok(Some(*batch));
                }
                Some(Answer::Next(Ok(Next::End { stats, events }))) => {
                    let mut state = self.lock();
                    state.note_losses(&events);
                    state.finish(*stats);
                    return Ok(None);
                }
                Some(Answer::Next(Err(Failure::Host(error)))) => {
                    self.lock().is_begun = false;
                    return Err(self.error(py, &error));
                }
                Some(Answer::Next(Err(Failure::Gpu(failure)))) => {
                    self.lock().is_begun = false;
                    return Err(failure.raised(py));
                }
                Some(other) => self.lock().absorb(other),
                None => {}
            }
        }
    }

    fn note_transform(&self, serial: u64, seconds: f64) {
        let mut state = self.lock();
        if state.serial == serial {
            let added = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            state.transform = state.transform.saturating_add(added);
        }
    }

    fn abandon(&self, serial: u64) {
        if self.process != std::process::id() {
            return;
        }
        let mut state = self.lock();
        if !state.is_closed && state.serial == serial {
            // An iterator with the old number ends.
            state.serial += 1;
            state.is_ending = state.engine.ask(Request::End);
        }
    }

    fn take_losses(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.lock().losses)
    }

    #[getter]
    fn rest_record(&self) -> Option<String> {
        self.lock().record.as_ref().map(Record::to_string)
    }

    fn take_finished<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.await_end(py)?;
        let finished = std::mem::take(&mut self.lock().finished);
        let texts = finished.iter().map(|stats| {
            described(stats)
                .map(|described| described.to_string())
                .map_err(|error| errors::plain(py, "InternalError", error.to_string()))
        });
        PyList::new(py, texts.collect::<PyResult<Vec<String>>>()?)
    }

    #[pyo3(signature = (replayed_step=None))]
    fn explain(&self, py: Python<'_>, replayed_step: Option<f64>) -> PyResult<Option<String>> {
        self.await_end(py)?;
        let context = |past: &FinishedEpoch| RunContext {
            workers: self.opened.workers,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            replayed_step_ns: replayed_step.map(|seconds| seconds * 1e9),
            transform_ns: past.transform.as_secs_f64() * 1e9,
        };
        let state = self.lock();
        // An aborted epoch is used only if none was finished.
        let whole = state.history.iter().rev().filter(|past| past.stats.is_complete);
        let broken = state.history.iter().rev().filter(|past| !past.stats.is_complete);
        let explained = whole.chain(broken).find_map(|past| explain(&past.stats, &context(past)));
        let json = explained.map(|mut explained| {
            explained.gpu_meters.clone_from(&state.gpu_meters);
            let sentences = explained.sentences().into_iter().chain(explained.ceiling_sentences());
            let sentences: Vec<String> = sentences.collect();
            serde_json::to_value(&explained).map(|mut value| {
                value["sentences"] = sentences.into();
                value.to_string()
            })
        });
        json.transpose().map_err(|error| errors::plain(py, "InternalError", error.to_string()))
    }

    fn write_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<(u64, u64)> {
        self.await_end(py)?;
        let history: Vec<FinishedEpoch> = self.lock().history.iter().cloned().collect();
        let shown = path.display().to_string();
        let written = py.detach(|| {
            let epochs = history.iter().map(|past| &*past.stats).collect();
            let process = Process { name: "meetpoint".to_owned(), epochs };
            write(BufWriter::new(File::create(path)?), &[process], TRACE_BATCHES_MAX)
        });
        let written = written.map_err(|error| {
            let message = format!("failed to write a trace to {shown}: {error}");
            errors::plain(py, "StorageError", (message, "name a file that can be written"))
        })?;
        Ok((written.events, written.batches_left_out))
    }

    fn metrics(&self) -> String {
        self.lock().metrics.text()
    }

    fn export_metrics(
        &self,
        py: Python<'_>,
        settings: ExportSettings,
    ) -> PyResult<MetricsExporter> {
        if self.process != std::process::id() {
            return Err(errors::forked(py));
        }
        let mut state = self.lock();
        if state.is_closed {
            return Err(errors::plain(py, "ClosedError", "the loader was closed"));
        }
        if state.exporter.as_ref().is_some_and(|exporter| !exporter.is_closed()) {
            let said = "metrics of this loader are exported already";
            return Err(errors::plain(py, "SettingError", (said, "close that exporter first")));
        }
        let started = Exporter::start(&settings.into());
        let exporter = Arc::new(started.map_err(|error| exporter::raised(py, error))?);
        state.exporter = Some(Arc::clone(&exporter));
        Ok(exporter.into())
    }

    #[pyo3(signature = (power=None))]
    fn begin_energy(&self, py: Python<'_>, power: Option<&str>) -> PyResult<Energy> {
        self.await_end(py)?;
        let totals = self.lock().totals;
        Energy::begin(py, power, totals)
    }

    fn end_energy(&self, py: Python<'_>, energy: &Energy) -> PyResult<String> {
        self.await_end(py)?;
        let scene = {
            let state = self.lock();
            let devices = u32::try_from(self.opened.devices.len()).unwrap_or(u32::MAX);
            Scene {
                devices,
                batch_bytes: self.opened.batch_bytes,
                spool_on_flash: self.opened.spool_on_flash,
                is_under_way: state.is_begun && !state.is_closed,
                totals: state.totals,
            }
        };
        let (said, gpu_meters) = energy.end(py, &scene)?;
        self.lock().gpu_meters = gpu_meters;
        Ok(said)
    }

    fn close(&self, py: Python<'_>) {
        if self.process != std::process::id() {
            return;
        }
        py.detach(|| {
            let (thread, exporter) = {
                let mut state = self.lock();
                state.is_closed = true;
                (state.engine.close(), state.exporter.take())
            };
            if let Some(thread) = thread {
                // A panic was reported where it happened.
                let _ = thread.join();
            }
            if let Some(exporter) = exporter {
                exporter.close();
            }
        });
    }
}

impl Loader {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it is held leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the requested end of an epoch.
    fn await_end(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            let state = self.lock();
            if !state.is_ending || state.is_closed {
                break;
            }
            drop(state);
            if let Some(answer) = self.slice(py, &mut None)? {
                self.lock().absorb(answer);
            }
        }
        Ok(())
    }

    /// An error of the runtime; if a user's function caused it, the exception of that function.
    fn error(&self, py: Python<'_>, error: &meetpoint_host::Error) -> PyErr {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| errors::of_host(py, error))
    }

    /// Sends the request, if there is one, and waits a while for an answer. `None`: no answer yet.
    fn slice(&self, py: Python<'_>, request: &mut Option<Request>) -> PyResult<Option<Answer>> {
        if self.process != std::process::id() {
            return Err(errors::forked(py));
        }
        py.check_signals()?;
        // Never waits for the lock while other Python threads are blocked, because its owner may
        // need them.
        let waited = py.detach(|| {
            let mut state = self.lock();
            if state.is_closed {
                return None;
            }
            // One batch is requested at a time, and none after the last.
            let is_next = matches!(request, Some(Request::Next));
            if is_next && state.is_over {
                return Some(WaitResult::Nothing);
            }
            let is_asked_for = is_next && state.engine.unanswered > 0;
            if let Some(request) = request.take_if(|_| !is_asked_for)
                && !state.engine.ask(request)
            {
                return Some(WaitResult::Gone);
            }
            let waited = state.engine.wait(SLICE);
            if let WaitResult::Answer(Answer::Next(Ok(Next::End { .. }))) = &waited {
                state.is_over = true;
            }
            Some(waited)
        });
        match waited {
            Some(WaitResult::Answer(answer)) => Ok(Some(answer)),
            Some(WaitResult::Nothing) => Ok(None),
            Some(WaitResult::Gone) => Err(panics::of_thread(py)),
            None => Err(errors::plain(py, "ClosedError", "the loader was closed")),
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // A forked child changes nothing, because its threads do not exist. Otherwise the thread
        // ends by itself.
        if self.process == std::process::id() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            drop(state.engine.close());
        }
    }
}

/// The measurements of an epoch, with a sentence for each event.
fn described(stats: &EpochStats) -> serde_json::Result<serde_json::Value> {
    let mut document = serde_json::to_value(stats)?;
    let events = document["events"].as_array_mut().into_iter().flatten();
    for (json, event) in events.zip(&stats.events) {
        json["message"] = event.kind.to_string().into();
    }
    Ok(document)
}
