//! Settings that exclude each other, and epochs that exclude a request.

use std::fmt;

/// Why batches cannot be reused in the next epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseConflict {
    /// Every epoch has different batches.
    Shuffle,
    /// The recipe has random parameters.
    RandomRecipe,
    /// Devices that run ahead need the slots.
    RunAhead,
}

impl fmt::Display for ReuseConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shuffle => "every epoch is shuffled",
            Self::RandomRecipe => "the recipe has random parameters in every epoch",
            Self::RunAhead => "devices that run ahead need the slots",
        })
    }
}

/// Why an epoch cannot resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeConflict {
    /// Its devices hold different parts.
    PartsOfTheirOwn,
    /// Its batches are chosen for the devices at its start.
    ChosenAtStart,
    /// It does not have the batches that were consumed.
    OtherBatches,
    /// All its batches were consumed.
    AllConsumed,
}

impl fmt::Display for ResumeConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartsOfTheirOwn => "its devices hold different parts",
            Self::ChosenAtStart => "its batches are chosen for the devices at its start",
            Self::OtherBatches => "it does not have the batches that were consumed",
            Self::AllConsumed => "all of its batches were consumed",
        })
    }
}

/// Why batches cannot be chosen for the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceConflict {
    /// Devices that run ahead begin before the choice is made.
    RunAhead,
    /// A record replays an order without a choice.
    Replay,
}

impl fmt::Display for ChoiceConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunAhead => "devices that run ahead begin before the choice is made",
            Self::Replay => "a record replays an order without a choice",
        })
    }
}
