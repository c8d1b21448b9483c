//! What replays an epoch: the sequence of batches is a function of it, the seed and the epoch.

use std::fmt;
use std::str::FromStr;

use crate::config::{Split, Strategy, Tail};

/// A few integers from which the order of an epoch follows exactly (C3).
///
/// In text `KIND:N,N,…`, as `mte:812` or `mte-feedback:4100`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    kind: Kind,
    numbers: Vec<u64>,
}

/// Which strategy's order a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The devices' shares: one number, or one a device where each holds its own batches.
    Mte,
    /// As `Mte`.
    MteFeedback,
    /// Host steps at first, t_c, t_g, t_s together, slack, then the devices' shares.
    WrrFrozen,
}

/// Text that is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no record of an epoch; one looks like \"mte:812\"")]
pub struct NoRecord {
    /// As given.
    pub text: String,
}

impl Kind {
    /// The strategy that runs it.
    pub(crate) fn strategy(self) -> Strategy {
        match self {
            Self::Mte => Strategy::Mte { split: Split::EqualFinish, tail: Tail::Descending },
            Self::MteFeedback => Strategy::MteFeedback,
            Self::WrrFrozen => Strategy::WrrFrozen,
        }
    }

    const ALL: [Self; 3] = [Self::Mte, Self::MteFeedback, Self::WrrFrozen];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mte => "mte",
            Self::MteFeedback => "mte-feedback",
            Self::WrrFrozen => "wrr-frozen",
        }
    }
}

impl Record {
    pub(crate) fn new(kind: Kind, numbers: Vec<u64>) -> Self {
        Self { kind, numbers }
    }

    /// Numbers of a record of `wrr-frozen` before the shares.
    pub(crate) const FROZEN_NUMBERS: usize = 5;

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// What replays the rest of an epoch of `batches` batches once the first `consumed` of its
    /// order are consumed; `None` where a record of the rest says more than the rest's length.
    pub fn rest(&self, batches: u32, consumed: u32) -> Option<Self> {
        let (Kind::Mte | Kind::MteFeedback, [share]) = (self.kind, &self.numbers[..]) else {
            return None;
        };
        let left = batches.saturating_sub(consumed);
        Some(Self::new(self.kind, vec![(*share).min(left.into())]))
    }

    /// Name of the strategy whose order it is.
    pub fn strategy(&self) -> &'static str {
        self.kind.name()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind.name())?;
        for (at, number) in self.numbers.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = NoRecord;

    fn from_str(text: &str) -> Result<Self, NoRecord> {
        let wrong = || NoRecord { text: text.to_owned() };
        let (name, numbers) = text.split_once(':').ok_or_else(wrong)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(wrong)?;
        let numbers: Result<Vec<u64>, _> = numbers.split(',').map(str::parse).collect();
        Ok(Self { kind, numbers: numbers.map_err(|_| wrong())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_epoch_has_the_rest_of_the_share() {
        let record: Record = "mte:30".parse().unwrap();
        let rest = |consumed| record.rest(100, consumed).unwrap().to_string();
        assert_eq!([rest(0), rest(70), rest(71)], ["mte:30", "mte:30", "mte:29"]);
        assert_eq!([rest(99), rest(100)], ["mte:1", "mte:0"]);
        let several: Record = "mte:3,4".parse().unwrap();
        assert_eq!(several.rest(100, 5), None);
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        for text in ["mte:812", "mte:812,0,7", "mte-feedback:4100", "wrr-frozen:3,10,4,20,2,812"] {
            assert_eq!(text.parse::<Record>().unwrap().to_string(), text);
        }
        for text in ["", "mte", "mte:", "mte:1,", "wrr:3", "mte:-1", "mte: 1"] {
            assert_eq!(text.parse::<Record>(), Err(NoRecord { text: text.to_owned() }));
        }
    }
}
