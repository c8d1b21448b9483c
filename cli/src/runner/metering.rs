//! Energy meters over the epochs of one strategy.

use meetpoint_host::energy::{Measurement, Meters, Recorder};
use std::sync::{Mutex, PoisonError};

/// Meters that begin with the first epoch.
#[derive(Debug)]
pub(super) struct Metering(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting(Meters),
    Running(Recorder),
    Ended,
}

impl Metering {
    pub(super) fn new(meters: Meters) -> Self {
        Self(Mutex::new(State::Waiting(meters)))
    }

    /// Begins, unless it has begun. Opening the dataset and starting devices are not part of the
    /// epochs.
    pub(super) fn begin(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match std::mem::replace(&mut *state, State::Ended) {
            State::Waiting(meters) => State::Running(Recorder::start(meters)),
            other => other,
        };
    }

    /// Ends: returns the measurement, `None` if no epoch began, and the meters for the next
    /// strategy.
    pub(super) fn end(self) -> (Option<Measurement>, Meters) {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::Waiting(meters) => (None, meters),
            State::Running(recorder) => {
                let (measurement, meters) = recorder.stop();
                (Some(measurement), meters)
            }
            State::Ended => (None, Meters::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Metering;
    use meetpoint_host::energy::{Kernel, Machine, MeterError, Meters, Unusable};

    fn none() -> Meters {
        let folder = tempfile::tempdir().unwrap();
        let no_gpu =
            Unusable::from(MeterError::NoLibrary { library: "libnvidia-ml.so.1".to_owned() });
        Meters::find(Machine {
            root: folder.path().to_owned(),
            counters: Box::new(Kernel),
            gpus: Err(no_gpu),
        })
    }

    #[test]
    fn epochs_are_one_interval_and_none_is_no_measurement() {
        let (nothing, meters) = Metering::new(none()).end();
        assert_eq!(nothing, None);
        assert_eq!(meters.listed().len(), 5, "the meters come back");
        let metering = Metering::new(meters);
        metering.begin();
        metering.begin();
        let (measurement, meters) = metering.end();
        let because = measurement.unwrap().nothing_because.unwrap();
        let is_no_library = |it: &MeterError| matches!(it, MeterError::NoLibrary { .. });
        assert!(because.unusable.iter().any(|it| is_no_library(&it.reason)), "{because}");
        assert_eq!(meters.listed().len(), 5);
    }
}
