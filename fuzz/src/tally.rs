//! Counts the results of inputs, so that a run shows what it covered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Increments a count.
pub fn add(what: &str) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    match counts.get_mut(what) {
        Some(count) => *count += 1,
        None => drop(counts.insert(what.to_owned(), 1)),
    }
}

/// All counts.
pub fn all() -> Vec<(String, u64)> {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    counts.iter().map(|(what, count)| (what.clone(), *count)).collect()
}
