//! What went wrong and what was done about it, as sentences.

use serde::Serialize;
use std::collections::BTreeMap;

/// Most events that are kept of one epoch.
const EVENTS_MAX: usize = 1000;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Nanoseconds since the epoch began.
    pub at_ns: u64,
    /// What happened, a sentence.
    pub text: String,
}

/// Reasons for which batches of a device went to the host that are told; the rest is counted.
const REASONS_MAX: usize = 5;

/// Batches that a device failed on: each reason is told once, its repeats are counted.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    by_reason: BTreeMap<String, u32>,
    others: u32,
}

impl Failures {
    /// Enters one; whether it is to be told.
    pub(crate) fn enter(&mut self, reason: &str) -> bool {
        if let Some(times) = self.by_reason.get_mut(reason) {
            *times += 1;
            return false;
        }
        if self.by_reason.len() >= REASONS_MAX {
            self.others += 1;
            return false;
        }
        self.by_reason.insert(reason.to_owned(), 1);
        true
    }

    /// Sentences for what was counted and not told.
    pub(crate) fn untold(&self, device: &str) -> impl Iterator<Item = String> {
        let again = self.by_reason.iter().filter(|(_, times)| **times > 1);
        let again = again.map(|(reason, times)| (times - 1, format!("like this one ({reason})")));
        let others = (self.others > 0).then(|| (self.others, "for other reasons".to_owned()));
        again.chain(others).map(move |(count, why)| {
            let batches = if count == 1 { "batch" } else { "batches" };
            format!("… {count} more {batches} of {device} went to the host {why}")
        })
    }
}

/// The events of an epoch in the order of happening.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    events: Vec<Event>,
    left_out: usize,
}

impl EventLog {
    pub(crate) fn add(&mut self, at_ns: u64, text: String) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(Event { at_ns, text });
        } else {
            self.left_out += 1;
        }
    }

    /// Tells of damaged samples that were filled in by the host; those of devices are not counted.
    pub(crate) fn add_filled_in(&mut self, at_ns: u64, samples: u64, has_devices: bool) {
        if samples == 0 {
            return;
        }
        let (damaged, were) = if samples == 1 { ("sample", "was") } else { ("samples", "were") };
        let others =
            if has_devices { "; those that a device prepared are not counted" } else { "" };
        let text = format!(
            "{samples} damaged {damaged} that the host prepared {were} filled in, as on_error = \
             \"lenient\" asks{others}; `meetpoint verify --deep` names them"
        );
        self.add(at_ns, text);
    }

    /// Those that are kept, from this one on.
    pub(crate) fn from(&self, first: usize) -> Vec<Event> {
        self.events.get(first..).unwrap_or_default().to_vec()
    }

    pub(crate) fn finish(mut self, at_ns: u64) -> Vec<Event> {
        if self.left_out > 0 {
            let text = format!("{} more events were not kept", self.left_out);
            self.events.push(Event { at_ns, text });
        }
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_and_its_repeats_are_counted() {
        let mut failures = Failures::default();
        assert!(failures.enter("the spool is full"));
        assert!((0..37).all(|_| !failures.enter("the spool is full")));
        assert!((1..REASONS_MAX).all(|number| failures.enter(&number.to_string())));
        assert!(!failures.enter("one reason too many"));
        let untold: Vec<String> = failures.untold("the device").collect();
        assert_eq!(
            untold,
            [
                "… 37 more batches of the device went to the host like this one (the spool is \
                 full)",
                "… 1 more batch of the device went to the host for other reasons"
            ]
        );
    }

    #[test]
    fn a_flood_of_events_is_counted_and_not_kept() {
        let mut log = EventLog::default();
        for at_ns in 0..EVENTS_MAX as u64 + 7 {
            log.add(at_ns, "it happened again".to_owned());
        }
        let events = log.finish(5);
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events.last().unwrap().text, "7 more events were not kept");
    }
}
