//! One Run stream: the host's messages go to the queue, those of the workers go to the host.

use crate::ServeOptions;
use crate::meters::{HeartbeatMonitor, Heartbeats, Totals};
use crate::metrics::Metrics;
use crate::owner::{Owner, Peer};
use crate::pieces::OutgoingMessage;
use crate::queue::{InvalidMessage, Queue};
use crate::reporting::Reporter;
use crate::session::LoadedJob;
use crate::shares::Claimant;
use crate::turns::Turns;
use crate::worker::{self, WorkerEnvironment};
use meetpoint_format::wire::{
    DeviceMessage, Draining, HostMessage, PROGRESS_INTERVAL_MS, Progress, device_message,
    host_message,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tonic::{Status, Streaming};

/// Maximum messages that wait for the connection; the workers wait at this limit.
const MESSAGES_MAX: usize = 256;

/// The same limit for messages with the contents of slots, up to 256 KiB each.
const PIECES_MAX: usize = 8;

/// How often the workers are polled: twice within the longest permitted silence.
const POLL_INTERVAL: Duration = Duration::from_millis(PROGRESS_INTERVAL_MS / 2);

/// What a stream needs of the process.
pub(crate) struct StreamEnvironment {
    pub(crate) owner: Arc<Owner>,
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) core: Option<usize>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) metrics: Arc<Metrics>,
    /// Batches published, over all jobs.
    pub(crate) batches: Arc<AtomicU64>,
    /// Where failed batches are logged; `None`: nowhere, as the host reports them.
    pub(crate) failures: Option<Arc<Reporter>>,
}

/// Reports the end of a worker when dropped, even by a panic.
struct EndOfWorker {
    ended: mpsc::Sender<Ended>,
    how: Ended,
}

impl Drop for EndOfWorker {
    fn drop(&mut self) {
        // The channel has room for every worker; the task ends before only with the whole process.
        let _ = self.ended.try_send(self.how);
    }
}

/// How a worker ended.
#[derive(Debug, Clone, Copy)]
enum Ended {
    /// By itself, after it published this many batches.
    Published(u64),
    /// By a defect.
    Panicked,
}

/// Starts the workers and their task; returns the stream of messages to the host.
pub(crate) fn start(
    environment: &StreamEnvironment,
    peer: &Peer,
    (job, queue): (LoadedJob, Arc<Queue>),
    from_host: Streaming<HostMessage>,
) -> Result<mpsc::Receiver<OutgoingMessage>, Status> {
    let most = if job.is_stream { PIECES_MAX } else { MESSAGES_MAX };
    let (messages, to_host) = mpsc::channel(most);
    let (ended, workers_ended) = mpsc::channel(job.workers.len());
    let claimant = Claimant { client: Arc::clone(&peer.client), loader: peer.connection };
    let client = environment.metrics.client(&peer.client);
    let totals = Arc::new(Mutex::new(Totals::default()));
    let mut workers = Vec::with_capacity(job.workers.len());
    for job in job.workers {
        let heartbeats = Arc::new(Heartbeats::default());
        let of_worker = WorkerEnvironment {
            queue: Arc::clone(&queue),
            heartbeats: Arc::clone(&heartbeats),
            messages: messages.clone(),
            emulation: environment.options.emulation,
            core: environment.core,
            faults: environment.options.faults.clone(),
            turns: Arc::clone(&environment.turns),
            claimant: claimant.clone(),
            client: Arc::clone(&client),
            failures: environment.failures.clone(),
            totals: Arc::clone(&totals),
            disconnect: Arc::clone(&peer.disconnect),
        };
        let ended = ended.clone();
        let thread = std::thread::Builder::new().name("prepare".to_owned()).spawn(move || {
            let mut end = EndOfWorker { ended, how: Ended::Panicked };
            end.how = Ended::Published(worker::run(job, of_worker));
        });
        match thread {
            Ok(_) => workers.push((heartbeats, HeartbeatMonitor::default())),
            // Fewer workers only prepare fewer batches at the same time.
            Err(_) if !workers.is_empty() => break,
            Err(error) => {
                environment.owner.end_run(&queue);
                let reason = format!("failed to start a thread for the job: {error}");
                return Err(Status::resource_exhausted(reason));
            }
        }
    }
    let stream = Stream { queue, workers, messages };
    let (owner, batches) = (Arc::clone(&environment.owner), Arc::clone(&environment.batches));
    tokio::spawn(async move {
        let queue = Arc::clone(&stream.queue);
        let _close_on_drop = CloseOnDrop(Arc::clone(&queue));
        let published = stream.drive(from_host, workers_ended).await;
        batches.fetch_add(published, Ordering::Relaxed);
        owner.end_run(&queue);
    });
    Ok(to_host)
}

/// Ends the job however its task ends: by itself, or with the whole runtime.
struct CloseOnDrop(Arc<Queue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Stream {
    queue: Arc<Queue>,
    workers: Vec<(Arc<Heartbeats>, HeartbeatMonitor)>,
    messages: mpsc::Sender<OutgoingMessage>,
}

impl Stream {
    /// Carries messages until either side ends, then ends the workers; returns what they published.
    async fn drive(
        mut self,
        mut from_host: Streaming<HostMessage>,
        mut workers_ended: mpsc::Receiver<Ended>,
    ) -> u64 {
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut at_work = self.workers.len();
        let mut published = 0;
        let status = loop {
            tokio::select! {
                message = from_host.message() => match message {
                    Ok(Some(message)) => if let Err(status) = self.take(message) {
                        break Some(status);
                    },
                    // The host has ended the stream, or its connection has.
                    Ok(None) | Err(_) => break None,
                },
                _ = polls.tick() => {
                    // Workers that still run end it.
                    if at_work == 0 && self.queue.is_closed() {
                        break None;
                    }
                    self.send_progress();
                }
                () = self.messages.closed() => break None,
                Some(ended) = workers_ended.recv() => {
                    at_work -= 1;
                    match ended {
                        Ended::Published(count) => published += count,
                        Ended::Panicked => {
                            let reason = "a worker of the device ended because of a defect";
                            break Some(Status::internal(reason));
                        }
                    }
                    if at_work > 0 {
                        continue;
                    }
                    if !self.queue.is_draining() || self.queue.is_closed() {
                        break None;
                    }
                    // Everything that was prepared is on its way; the host ends the stream.
                    let message = Some(device_message::Message::Draining(Draining {}));
                    if self.messages.send(Ok(DeviceMessage { message })).await.is_err() {
                        break None;
                    }
                }
            }
        };
        self.queue.close();
        if let Some(status) = status {
            // Without room in the channel, the host is not reading anyway.
            let _ = self.messages.try_send(Err(status));
        }
        drop(self.messages);
        while at_work > 0 {
            match workers_ended.recv().await {
                Some(Ended::Published(count)) => published += count,
                Some(Ended::Panicked) => {}
                None => break,
            }
            at_work -= 1;
        }
        published
    }

    /// Handles a message from the host.
    fn take(&self, message: HostMessage) -> Result<(), Status> {
        use host_message::Message;
        let Some(message) = message.message else {
            return Err(Status::invalid_argument("a message of an unknown kind"));
        };
        let queue = &self.queue;
        let done = match message {
            Message::StartEpoch(start) => {
                queue.start_epoch(start.epoch, start.generation);
                Ok(())
            }
            Message::Work(work) => {
                let now = (work.epoch, work.generation);
                queue.work(now, work.first, work.count, work.descending)
            }
            Message::Revoke(revoke) => {
                queue.revoke(revoke.epoch, revoke.generation);
                Ok(())
            }
            Message::Release(release) => queue.release(release.slot),
            Message::Stop(_) => {
                queue.stop();
                Ok(())
            }
        };
        done.map_err(|invalid: InvalidMessage| Status::invalid_argument(invalid.to_string()))
    }

    /// Sends the progress of the workers to the host, if there is any.
    fn send_progress(&mut self) {
        for (heartbeats, monitor) in &mut self.workers {
            let Some(((epoch, batch, generation), samples_done)) = monitor.poll(heartbeats) else {
                continue;
            };
            let progress = Progress { epoch, batch, generation, samples_done };
            let message = Some(device_message::Message::Progress(progress));
            // Without room in the channel, the pending messages show that the device is alive.
            let _ = self.messages.try_send(Ok(DeviceMessage { message }));
        }
    }
}
