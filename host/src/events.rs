//! What went wrong and what was done about it, as sentences.

use serde::Serialize;

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
