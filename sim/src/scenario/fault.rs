//! Faults and when they occur: `die@100`, `stall@5s:2s`, `slow@40:x4`, as in job files.
//!
//! WHEN is a batch of the device, from 1, or a virtual time with a unit.

use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::quantity::Span;

/// When a fault begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// With this batch of the device, from 1, over all epochs.
    Batch(u64),
    /// At this virtual time.
    Time(Span),
}

/// A fault of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// It ends without a message.
    Die,
    /// Its link breaks: the host learns at once.
    DropLink,
    /// It stops responding for a time, then resumes; `None`: it never resumes.
    Stall(Option<Span>),
    /// Everything takes this many times as long from here on.
    Slow(f64),
    /// This batch is published damaged.
    Corrupt,
    /// It reports progress but no longer publishes anything.
    Lie,
}

/// A fault of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// When.
    pub when: When,
}

/// A fault of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankFaultKind {
    /// It begins its first step this much later than the others.
    Late(Span),
    /// It takes no steps from this one on (counted from 1).
    Die(u64),
}

/// A fault of a rank: `late@RANK:TIME` or `die@RANK:STEP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankFault {
    /// The rank, from 0.
    pub rank: u32,
    /// What.
    pub kind: RankFaultKind,
}

/// The text does not name a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a fault: {wanted}")]
pub struct NotAFault {
    text: String,
    wanted: &'static str,
}

const DEVICE_FAULTS: &str = "it takes die@WHEN, drop-link@WHEN, stall@WHEN, stall@WHEN:TIME, \
     slow@WHEN:xK, corrupt@N or lie@WHEN, where WHEN is a batch from 1 or a time such as 5s";
const RANK_FAULTS: &str = "it takes late@RANK:TIME or die@RANK:STEP, ranks from 0, steps from 1";

impl FromStr for Fault {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let read = || {
            let (name, rest) = text.split_once('@')?;
            let (when, argument) = match rest.split_once(':') {
                Some((when, argument)) => (when, Some(argument)),
                None => (rest, None),
            };
            let when = match when.parse::<u64>() {
                Ok(batch) => When::Batch(Some(batch).filter(|batch| *batch > 0)?),
                Err(_) => When::Time(when.parse().ok()?),
            };
            let kind = match (name, argument) {
                ("die", None) => FaultKind::Die,
                ("drop-link", None) => FaultKind::DropLink,
                ("stall", None) => FaultKind::Stall(None),
                ("stall", Some(time)) => FaultKind::Stall(Some(time.parse().ok()?)),
                ("slow", Some(factor)) => {
                    let factor: f64 = factor.strip_prefix('x')?.parse().ok()?;
                    FaultKind::Slow(Some(factor).filter(|it| it.is_finite() && *it > 0.0)?)
                }
                ("corrupt", None) if matches!(when, When::Batch(_)) => FaultKind::Corrupt,
                ("lie", None) => FaultKind::Lie,
                _ => return None,
            };
            Some(Self { kind, when })
        };
        read().ok_or_else(|| NotAFault { text: text.to_owned(), wanted: DEVICE_FAULTS })
    }
}

impl FromStr for RankFault {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let read = || {
            let (name, rest) = text.split_once('@')?;
            let (rank, argument) = rest.split_once(':')?;
            let rank = rank.parse().ok()?;
            let kind = match name {
                "late" => RankFaultKind::Late(argument.parse().ok()?),
                "die" => {
                    let step: u64 = argument.parse().ok()?;
                    RankFaultKind::Die(Some(step).filter(|step| *step > 0)?)
                }
                _ => return None,
            };
            Some(Self { rank, kind })
        };
        read().ok_or_else(|| NotAFault { text: text.to_owned(), wanted: RANK_FAULTS })
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for RankFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_in_job_files() {
        let fault = |text: &str| text.parse::<Fault>().unwrap();
        assert_eq!(fault("die@7"), Fault { kind: FaultKind::Die, when: When::Batch(7) });
        let at = When::Time(Span(5_000_000_000));
        let stall = FaultKind::Stall(Some(Span(2_000_000_000)));
        assert_eq!(fault("stall@5s:2s"), Fault { kind: stall, when: at });
        assert_eq!(fault("slow@3:x1.5").kind, FaultKind::Slow(1.5));
        for text in ["die", "die@0", "slow@3", "slow@3:x0", "corrupt@5s", "lie@2:3", "burn@1"] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains("it takes die@WHEN"), "{error}");
        }
        let late = RankFaultKind::Late(Span(2_000_000_000));
        assert_eq!("late@3:2s".parse(), Ok(RankFault { rank: 3, kind: late }));
        assert!("die@3:0".parse::<RankFault>().is_err());
    }
}
