//! The events of one epoch, and failed batches that are only counted.

use crate::causes::BatchFault;
use crate::events::{DeviceLabel, Event, EventKind};

/// Maximum number of events that an epoch records.
const EVENTS_MAX: usize = 1000;

/// Maximum number of faults of a device that get an event each; further ones are counted.
const FAULTS_MAX: usize = 5;

/// Batches that a device failed on: each fault gets one event, its repeats are counted.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// In the order in which they happened, with the number of batches of each.
    faults: Vec<(BatchFault, u32)>,
    others: u32,
}

impl Failures {
    /// Records one; returns whether it gets an event.
    pub(crate) fn enter(&mut self, fault: &BatchFault) -> bool {
        if let Some((_, times)) = self.faults.iter_mut().find(|(known, _)| known == fault) {
            *times += 1;
            return false;
        }
        if self.faults.len() >= FAULTS_MAX {
            self.others += 1;
            return false;
        }
        self.faults.push((fault.clone(), 1));
        true
    }

    /// Those that were only counted.
    pub(crate) fn repeats(&self, device: DeviceLabel) -> impl Iterator<Item = EventKind> {
        let again = self.faults.iter().filter(|(_, times)| *times > 1);
        let again = again.map(|(fault, times)| (times - 1, Some(fault.clone())));
        let others = (self.others > 0).then_some((self.others, None));
        again.chain(others).map(move |(batches, fault)| EventKind::BatchesFailed {
            device,
            batches,
            fault,
        })
    }
}

/// The events of an epoch in the order in which they happened.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    events: Vec<Event>,
    not_recorded: u64,
}

impl EventLog {
    pub(crate) fn add(&mut self, at_ns: u64, kind: EventKind) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(Event { at_ns, rank: None, kind });
        } else {
            self.not_recorded += 1;
        }
    }

    /// Whether an event was recorded that meets a condition.
    pub(crate) fn any(&self, is_it: impl Fn(&EventKind) -> bool) -> bool {
        self.events.iter().any(|event| is_it(&event.kind))
    }

    /// The recorded events from index `first` on.
    pub(crate) fn from(&self, first: usize) -> Vec<Event> {
        self.events.get(first..).unwrap_or_default().to_vec()
    }

    pub(crate) fn finish(mut self, at_ns: u64) -> Vec<Event> {
        if self.not_recorded > 0 {
            let kind = EventKind::NotRecorded { events: self.not_recorded };
            self.events.push(Event { at_ns, rank: None, kind });
        }
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceLabel = DeviceLabel { number: 0, of: 1 };

    #[test]
    fn each_fault_gets_one_event_and_its_repeats_are_counted() {
        let mut failures = Failures::default();
        let full = BatchFault::Preparation { detail: "the spool is full".to_owned() };
        assert!(failures.enter(&full));
        assert!((0..37).all(|_| !failures.enter(&full)));
        // The same words mean another fault.
        let detail = "the spool is full".to_owned();
        assert!(failures.enter(&BatchFault::Size { detail }));
        let other = |number: usize| BatchFault::Damage { detail: number.to_string() };
        assert!((2..FAULTS_MAX).all(|number| failures.enter(&other(number))));
        assert!(!failures.enter(&other(FAULTS_MAX)));
        let repeats: Vec<EventKind> = failures.repeats(DEVICE).collect();
        let failed = |batches, fault| EventKind::BatchesFailed { device: DEVICE, batches, fault };
        assert_eq!(repeats, [failed(37, Some(full)), failed(1, None)]);
    }

    #[test]
    fn events_beyond_the_limit_are_counted_only() {
        let mut log = EventLog::default();
        for at_ns in 0..EVENTS_MAX as u64 + 7 {
            log.add(at_ns, EventKind::BatchesReclaimed { device: DEVICE, silent_ns: None });
        }
        let events = log.finish(5);
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events.last().unwrap().kind, EventKind::NotRecorded { events: 7 });
    }
}
