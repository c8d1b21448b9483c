//! SPDK's messages: the last errors become the reasons of errors, nothing is printed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Messages that are retained.
const LINES_MAX: usize = 4;

/// Longest message, in bytes; the rest is cut off.
pub(crate) const LINE_BYTES_MAX: usize = 512;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Adds a message.
pub(crate) fn add(text: &str) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(text.split_whitespace().collect::<Vec<_>>().join(" "));
}

/// Forgets all messages.
pub(crate) fn clear() {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The messages since [`clear`], and the error with this number if there are none.
pub(crate) fn reason(number: i32) -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    if lines.is_empty() {
        return std::io::Error::from_raw_os_error(number.abs()).to_string();
    }
    lines.join("; ")
}
