//! Log messages about refused connections and failed batches, limited so that neither peers nor a
//! damaged dataset can fill the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of messages in a [`PERIOD`].
const SENTENCES_MAX: u32 = 20;

/// Maximum length of a message in characters. Some messages contain text from peers.
const SENTENCE_CHARS_MAX: usize = 500;

const PERIOD: Duration = Duration::from_secs(60);

/// Forwards messages, up to a limit.
#[derive(Debug)]
pub(crate) struct Reporter {
    report: fn(&str),
    /// Beginning of the period, and the number of messages in it.
    state: Mutex<(Instant, u32)>,
}

impl Reporter {
    pub(crate) fn new(report: fn(&str), now: Instant) -> Self {
        Self { report, state: Mutex::new((now, 0)) }
    }

    /// Forwards a message as one line, unless the limit is reached.
    pub(crate) fn say(&self, sentence: &str, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.0) >= PERIOD {
            *state = (now, 0);
        }
        state.1 = state.1.saturating_add(1);
        let count = state.1;
        drop(state);
        let plain = |it: char| if it.is_control() { ' ' } else { it };
        let sentence: String = sentence.chars().take(SENTENCE_CHARS_MAX).map(plain).collect();
        match count {
            ..SENTENCES_MAX => (self.report)(&sentence),
            SENTENCES_MAX => {
                (self.report)(&format!("{sentence}; further ones of this minute are not reported"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Reporter, SENTENCE_CHARS_MAX, SENTENCES_MAX};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    static SAID: AtomicU32 = AtomicU32::new(0);

    fn count(sentence: &str) {
        assert!(sentence.chars().count() < 2 * SENTENCE_CHARS_MAX);
        assert!(!sentence.contains(char::is_control), "{sentence:?}");
        SAID.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn log_messages_are_limited_per_minute() {
        let begun = Instant::now();
        let reporter = Reporter::new(count, begun);
        for _ in 0..1000 {
            reporter.say("refused\n\u{1b}[31m", begun);
        }
        assert_eq!(SAID.load(Ordering::Relaxed), SENTENCES_MAX);
        reporter.say(&"refused".repeat(1000), begun + PERIOD);
        assert_eq!(SAID.load(Ordering::Relaxed), SENTENCES_MAX + 1);
    }
}
