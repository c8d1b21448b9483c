//! Which slots of a mapping are page-locked, so that a GPU copies from and to them directly.
//!
//! A slot is locked when a GPU first needs it: only slots in use are, and only up to a limit.

use meetpoint_diagnose::Diagnose;
use meetpoint_gpu::{Compute, Error, PageLock};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// The locks of the slots of one mapping, which must outlive them.
#[derive(Debug, Default)]
pub(crate) struct PageLocks(Mutex<Vec<Option<PageLock>>>);

/// A limit of page-locked memory for a GPU.
#[derive(Debug)]
pub struct LockBudget {
    limit_bytes: u64,
    locked_bytes: u64,
    /// Why slots are not locked any more.
    refusal: Option<Unlocked>,
}

/// Why memory is not page-locked, so that copies are staged through other memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Unlocked {
    /// The limit is reached.
    Limit {
        /// The limit of all slots together.
        limit_bytes: u64,
    },
    /// The driver or the system refuses.
    Refused {
        /// Stable name of the error.
        cause: String,
        /// The error message.
        error: String,
    },
    /// The memory is not in a slot: the batch was read from a file, or is too large.
    NotInSlot,
}

impl std::fmt::Display for Unlocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limit { limit_bytes } => {
                let limit = meetpoint_format::units::show_bytes(*limit_bytes);
                write!(f, "the limit of page-locked memory is {limit}")
            }
            Self::Refused { error, .. } => write!(f, "memory cannot be page-locked: {error}"),
            Self::NotInSlot => f.write_str("batches are not in memory that is used again"),
        }
    }
}

impl LockBudget {
    /// An unused budget.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, locked_bytes: 0, refusal: None }
    }

    /// Bytes that were locked under this budget.
    pub fn locked_bytes(&self) -> u64 {
        self.locked_bytes
    }
}

impl PageLocks {
    /// Page-locks a slot, unless it is locked already.
    pub(crate) fn lock(
        &self,
        slot: usize,
        memory: &[u8],
        compute: &mut (impl Compute + ?Sized),
        budget: &mut LockBudget,
    ) -> Result<(), Unlocked> {
        // A panic leaves the state consistent.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.get(slot).is_some_and(Option::is_some) {
            return Ok(());
        }
        if let Some(refusal) = &budget.refusal {
            return Err(refusal.clone());
        }
        let LockBudget { limit_bytes, locked_bytes, .. } = *budget;
        let bytes = memory.len() as u64;
        let locked = match locked_bytes + bytes <= limit_bytes {
            true => compute.lock_pages(memory).map_err(|error| refused(&error)),
            false => Err(Unlocked::Limit { limit_bytes }),
        };
        // A refused request is not repeated: the reason stays.
        let lock = locked.inspect_err(|reason| budget.refusal = Some(reason.clone()))?;
        budget.locked_bytes += bytes;
        if slots.len() <= slot {
            slots.resize_with(slot + 1, || None);
        }
        slots[slot] = Some(lock);
        Ok(())
    }
}

fn refused(error: &Error) -> Unlocked {
    Unlocked::Refused { cause: error.cause().to_owned(), error: error.to_string() }
}
