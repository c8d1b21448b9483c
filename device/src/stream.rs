//! One Run stream: the host's messages go to the queue, the worker's go to the host.

use crate::ServeOptions;
use crate::meters::{HeartbeatMonitor, Heartbeats};
use crate::owner::{Owner, Peer};
use crate::pieces::OutgoingMessage;
use crate::queue::{InvalidMessage, Queue};
use crate::session::Job;
use crate::turns::Turns;
use crate::worker::{self, WorkerEnvironment};
use meetpoint_format::wire::{
    DeviceMessage, HostMessage, PROGRESS_INTERVAL_MS, Progress, device_message, host_message,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use tonic::{Status, Streaming};

/// Maximum messages that wait for the connection; the worker waits at this limit.
const MESSAGES_MAX: usize = 256;

/// The same limit for messages with the contents of slots, up to 256 KiB each.
const PIECES_MAX: usize = 8;

/// How often the worker is polled: twice within the longest permitted silence.
const POLL_INTERVAL: Duration = Duration::from_millis(PROGRESS_INTERVAL_MS / 2);

/// What a stream needs of the process.
pub(crate) struct StreamEnvironment {
    pub(crate) owner: Arc<Owner>,
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) core: Option<usize>,
    pub(crate) turns: Arc<Turns>,
    /// Batches published, over all jobs.
    pub(crate) batches: Arc<AtomicU64>,
}

/// Starts the worker and its task; returns the stream of messages to the host.
pub(crate) fn start(
    environment: &StreamEnvironment,
    peer: &Peer,
    (job, queue): (Job, Arc<Queue>),
    from_host: Streaming<HostMessage>,
) -> Result<mpsc::Receiver<OutgoingMessage>, Status> {
    let most = if job.spool.is_stream() { PIECES_MAX } else { MESSAGES_MAX };
    let (messages, to_host) = mpsc::channel(most);
    let (ended, worker_ended) = oneshot::channel();
    let heartbeats = Arc::new(Heartbeats::default());
    let of_worker = WorkerEnvironment {
        queue: Arc::clone(&queue),
        heartbeats: Arc::clone(&heartbeats),
        messages: messages.clone(),
        emulation: environment.options.emulation,
        core: environment.core,
        faults: environment.options.faults.clone(),
        turns: Arc::clone(&environment.turns),
        disconnect: Arc::clone(&peer.disconnect),
    };
    let thread = std::thread::Builder::new().name("prepare".to_owned()).spawn(move || {
        let batches = worker::run(job, of_worker);
        // The task ends only with the whole process.
        let _ = ended.send(batches);
    });
    if let Err(error) = thread {
        environment.owner.end_run(&queue);
        let reason = format!("failed to start a thread for the job: {error}");
        return Err(Status::resource_exhausted(reason));
    }
    let stream = Stream { queue, heartbeats, messages, monitor: HeartbeatMonitor::default() };
    let (owner, batches) = (Arc::clone(&environment.owner), Arc::clone(&environment.batches));
    tokio::spawn(async move {
        let queue = Arc::clone(&stream.queue);
        let _close_on_drop = CloseOnDrop(Arc::clone(&queue));
        let published = stream.drive(from_host, worker_ended).await;
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
    heartbeats: Arc<Heartbeats>,
    messages: mpsc::Sender<OutgoingMessage>,
    monitor: HeartbeatMonitor,
}

impl Stream {
    /// Carries messages until either side ends, then ends the worker; returns what it published.
    async fn drive(
        mut self,
        mut from_host: Streaming<HostMessage>,
        mut worker_ended: oneshot::Receiver<u64>,
    ) -> u64 {
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let status = loop {
            tokio::select! {
                message = from_host.message() => match message {
                    Ok(Some(message)) => if let Err(status) = self.take(message) {
                        break Some(status);
                    },
                    // The host has ended the stream, or its connection has.
                    Ok(None) | Err(_) => break None,
                },
                _ = polls.tick() => self.send_progress(),
                () = self.messages.closed() => break None,
                ended = &mut worker_ended => {
                    let published = ended.unwrap_or(0);
                    if !self.queue.is_closed() {
                        let status = Status::internal(
                            "the device's worker ended because of a defect"
                        );
                        let _ = self.messages.try_send(Err(status));
                    }
                    return published;
                }
            }
        };
        self.queue.close();
        if let Some(status) = status {
            // Without room in the channel, the host is not reading anyway.
            let _ = self.messages.try_send(Err(status));
        }
        drop(self.messages);
        worker_ended.await.unwrap_or(0)
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

    /// Sends the worker's progress to the host, if there is any.
    fn send_progress(&mut self) {
        let Some(((epoch, batch, generation), samples_done)) = self.monitor.poll(&self.heartbeats)
        else {
            return;
        };
        let progress = Progress { epoch, batch, generation, samples_done };
        let message = Some(device_message::Message::Progress(progress));
        // Without room in the channel, the pending messages show that the device is alive.
        let _ = self.messages.try_send(Ok(DeviceMessage { message }));
    }
}
