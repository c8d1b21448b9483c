//! How a shard runs, and which rules a plan may have.

use super::folder::Line;
use super::{PartRule, ShardError};
use crate::Error;
use meetpoint_diagnose::Setting;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a shard runs.
pub struct ShardOptions<'a> {
    /// Threads that read and check; 0 for one per core.
    pub threads: usize,
    /// Set by another thread to stop; finished parts stay.
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

/// Refuses a rule with an empty part.
pub fn check_rule(rule: PartRule) -> Result<(), Error> {
    let limits =
        [(Setting::PartSamples, rule.samples), (Setting::PartSourceBytes, rule.source_bytes)];
    match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((setting, _)) => Err(ShardError::EmptyRule { setting }.into()),
        None => Ok(()),
    }
}
