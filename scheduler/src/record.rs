//! The record that replays an epoch: the sequence of batches is a function of it, the seed and the
//! epoch.

use std::fmt;
use std::str::FromStr;

use crate::strategies::{RecordKind, StrategyName};

/// A few integers from which the order of an epoch follows exactly (C3).
///
/// Its text is `STRATEGY:N,N,…`, such as `mte:812` or `mte-feedback:4100`. The strategy's
/// [`RecordKind`] defines the meaning of the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    strategy: StrategyName,
    numbers: Vec<u64>,
}

/// Number of values before the shares in a record of [`RecordKind::Turns`]: initial host steps,
/// t_c, t_g, t_s of all devices together, slack.
const TURNS_NUMBERS: usize = 5;

/// The text is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a record of an epoch; one looks like \"mte:812\"")]
pub struct NoRecord {
    /// The given value.
    pub text: String,
}

impl Record {
    pub(crate) fn new(strategy: StrategyName, numbers: Vec<u64>) -> Self {
        Self { strategy, numbers }
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Number of values before the shares.
    pub(crate) fn numbers_before_shares(&self) -> usize {
        match self.strategy.record() {
            RecordKind::None | RecordKind::Shares => 0,
            RecordKind::Turns => TURNS_NUMBERS,
        }
    }

    /// The devices' share if the record contains only one common share; `None` for any other
    /// record.
    pub fn share(&self) -> Option<u64> {
        match (self.strategy.record(), &self.numbers[..]) {
            (RecordKind::Shares, [share]) => Some(*share),
            (RecordKind::None | RecordKind::Shares | RecordKind::Turns, _) => None,
        }
    }

    /// The record that replays the rest of an epoch of `batches` batches after the first `consumed`
    /// of its order; `None` unless this record contains only one common share.
    pub fn rest(&self, batches: u32, consumed: u32) -> Option<Self> {
        let left = batches.saturating_sub(consumed);
        Some(Self::new(self.strategy, vec![self.share()?.min(left.into())]))
    }

    /// The strategy that the record belongs to.
    pub fn strategy(&self) -> StrategyName {
        self.strategy
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.strategy)?;
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
        let strategy: StrategyName = name.parse().map_err(|_| wrong())?;
        if strategy.record() == RecordKind::None {
            return Err(wrong());
        }
        let numbers: Result<Vec<u64>, _> = numbers.split(',').map(str::parse).collect();
        Ok(Self { strategy, numbers: numbers.map_err(|_| wrong())? })
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
    fn records_round_trip_through_text() {
        for text in ["mte:812", "mte:812,0,7", "mte-feedback:4100", "wrr-frozen:3,10,4,20,2,812"] {
            assert_eq!(text.parse::<Record>().unwrap().to_string(), text);
        }
        for text in ["", "mte", "mte:", "mte:1,", "wrr:3", "mte:-1", "mte: 1"] {
            assert_eq!(text.parse::<Record>(), Err(NoRecord { text: text.to_owned() }));
        }
    }
}
