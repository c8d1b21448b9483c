//! The interface to events and to streams of other libraries.

use crate::{Compute, Error};
use std::fmt::Debug;
use std::time::Duration;

/// A stream of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConsumerStream {
    /// The legacy default stream, number 1 in DLPack.
    LegacyDefault,
    /// The default stream of each thread, number 2 in DLPack.
    PerThreadDefault,
    /// A stream by its handle.
    Handle(u64),
}

impl ConsumerStream {
    /// The handle in the driver: `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` are 1 and 2.
    pub fn raw(self) -> u64 {
        match self {
            Self::LegacyDefault => 1,
            Self::PerThreadDefault => 2,
            Self::Handle(handle) => handle,
        }
    }

    /// A stream that waits for this one in any thread: a per-thread default stream becomes the
    /// legacy default stream, which waits for all of them.
    pub fn for_any_thread(self) -> Self {
        match self {
            Self::PerThreadDefault => Self::LegacyDefault,
            stream => stream,
        }
    }
}

/// How the consumer orders its work after the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// Its stream waits on the GPU.
    Stream(ConsumerStream),
    /// The consumer synchronises by itself; its streams are not known.
    Unordered,
}

/// A point in the work of a stream.
pub trait Event: Debug + Send + Sync + 'static {
    /// Whether everything before it is done.
    fn is_done(&self) -> Result<bool, Error>;

    /// Waits until everything before it is done; [`Error::Hung`] after `limit`. Calls `is_stopped`
    /// at least every [`ASK_EVERY`](crate::ASK_EVERY) and returns [`Error::Stopped`] if it returns
    /// true.
    fn wait_unless(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error>;

    /// The time on the device since an earlier event; both are done.
    fn since(&self, earlier: &Self) -> Result<Duration, Error>;
}

/// A [`Compute`] whose work is ordered with that of other streams.
pub trait Streams: Compute + 'static {
    /// A point in its work, or in that of a consumer.
    type Event: Event;
    /// Streams of consumers.
    type Consumers: Consumers<Event = Self::Event>;

    /// Marks the end of the work so far.
    fn record(&mut self) -> Result<Self::Event, Error>;

    /// Makes later work wait for an event.
    fn wait_for(&mut self, event: &Self::Event) -> Result<(), Error>;

    /// The streams of consumers on the same device.
    fn consumers(&self) -> Self::Consumers;
}

/// Streams of consumers, for any thread.
pub trait Consumers: Debug + Clone + Send + Sync + 'static {
    /// As [`Streams::Event`].
    type Event: Event;

    /// Index of the device.
    fn device(&self) -> u32;

    /// Makes later work of a stream wait for an event.
    fn order(&self, stream: ConsumerStream, after: &Self::Event) -> Result<(), Error>;

    /// Marks the end of the work of a stream so far.
    fn record(&self, stream: ConsumerStream) -> Result<Self::Event, Error>;

    /// Waits for all work of this process on the device; [`Error::Hung`] after `limit`. Calls
    /// `is_stopped` at least every [`ASK_EVERY`](crate::ASK_EVERY) and returns [`Error::Stopped`]
    /// if it returns true. After either, no memory is freed until that work has ended.
    fn settle(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error>;
}
