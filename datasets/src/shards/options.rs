//! Options of a shard's run, and the check of a plan's rule.

use super::PartRule;
use super::folder::Line;
use crate::Error;
use crate::error::ShardError;
use meetpoint_diagnose::Setting;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of a shard's run.
pub struct ShardOptions<'a> {
    /// Threads that read and check; 0 for one per core.
    pub threads: usize,
    /// Set by another thread to stop. Finished parts are retained.
    pub stop: Arc<AtomicBool>,
    /// Receives the record of each part when it is finished, as a line of JSON.
    pub line: &'a mut dyn FnMut(&str),
}

impl ShardOptions<'_> {
    /// Passes on the record of a part.
    pub fn report<T: Serialize>(&mut self, line: &Line<T>) {
        (self.line)(&serde_json::to_string(line).expect("results serialise"));
    }
}

/// Rejects a rule whose parts would be empty.
pub fn check_rule(rule: PartRule) -> Result<(), Error> {
    let limits =
        [(Setting::PartSamples, rule.samples), (Setting::PartSourceBytes, rule.source_bytes)];
    match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((setting, _)) => Err(ShardError::EmptyRule { setting }.into()),
        None => Ok(()),
    }
}
