//! The CPU that runs kernels, as a device without streams: its work is done when it is asked.

use super::streams::{ConsumerStream, Consumers, Event, Streams};
use crate::{Error, Shim};
use std::time::Duration;

/// An event that is done.
#[derive(Debug)]
pub struct ShimEvent(());

/// Streams that have no work.
#[derive(Debug, Clone)]
pub struct ShimConsumers(());

impl Event for ShimEvent {
    fn is_done(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn wait_unless(&self, _limit: Duration, _is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        Ok(())
    }

    fn since(&self, _earlier: &Self) -> Result<Duration, Error> {
        Ok(Duration::ZERO)
    }
}

impl Streams for Shim {
    type Event = ShimEvent;
    type Consumers = ShimConsumers;

    fn record(&mut self) -> Result<ShimEvent, Error> {
        Ok(ShimEvent(()))
    }

    fn wait_for(&mut self, _event: &ShimEvent) -> Result<(), Error> {
        Ok(())
    }

    fn consumers(&self) -> ShimConsumers {
        ShimConsumers(())
    }
}

impl Consumers for ShimConsumers {
    type Event = ShimEvent;

    fn device(&self) -> u32 {
        0
    }

    fn order(&self, _stream: ConsumerStream, _after: &ShimEvent) -> Result<(), Error> {
        Ok(())
    }

    fn record(&self, _stream: ConsumerStream) -> Result<ShimEvent, Error> {
        Ok(ShimEvent(()))
    }

    fn settle(&self, _limit: Duration, _is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        Ok(())
    }
}
