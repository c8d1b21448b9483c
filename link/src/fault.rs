//! Faults that a device can inject, to test hosts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A fault at the n-th batch that the device begins. Batches are counted from 1 over all its
/// concurrent jobs; the count restarts when it gets a job after having had none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// `die@3`: half-way through the batch it kills itself with SIGKILL.
    DieAt(u64),
    /// `stall@3`, `stall@3:2s`: half-way through the batch, the device stops responding, for a time
    /// or until the batch's job ends. It neither reports progress nor obeys a revoke.
    StallAt {
        /// Batch.
        n: u64,
        /// How long; `None` is until the job ends.
        duration: Option<Duration>,
    },
    /// `slow@3:x4`: from this batch on, everything except waiting for a free slot takes `factor`
    /// times as long.
    SlowAt {
        /// Batch.
        n: u64,
        /// How many times as long, at least 1.
        factor: f64,
    },
    /// `corrupt@3`: one bit of the payload is flipped after its checksum was taken.
    CorruptAt(u64),
    /// `tear@3`: the header is written after only half of the payload was.
    TearAt(u64),
    /// `enospc@3`: from this batch on, every write to the spool fails because the spool is full.
    SpoolFullAt(u64),
    /// `drop-link@3`: half-way through the batch the connection of its host is cut.
    DropLinkAt(u64),
}

/// The text does not name a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a fault: {problem} ({})", Self::KNOWN)]
pub struct FaultSyntax {
    /// The given value.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl FaultSyntax {
    /// The valid faults, for error messages.
    pub const KNOWN: &str = "faults are die@N, stall@N, stall@N:2s, slow@N:x4, corrupt@N, tear@N, \
                             enospc@N, drop-link@N; N counts the batches of all jobs from 1";
}

/// The longest duration of a stall.
const STALL_MAX: Duration = Duration::from_secs(3600);

/// The largest factor of a slow-down.
const FACTOR_MAX: f64 = 1000.0;

impl FromStr for Fault {
    type Err = FaultSyntax;

    fn from_str(text: &str) -> Result<Self, FaultSyntax> {
        parse(text).map_err(|problem| FaultSyntax { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Fault, &'static str> {
    let (name, rest) = text.split_once('@').ok_or("there is no @")?;
    let (n, detail) = match rest.split_once(':') {
        Some((n, detail)) => (n, Some(detail)),
        None => (rest, None),
    };
    let n = match n.parse() {
        Ok(0) => return Err("batches are counted from 1"),
        Ok(n) if n < u64::MAX => n,
        _ => return Err("the text after @ is not a whole number"),
    };
    match (name, detail) {
        ("die", None) => Ok(Fault::DieAt(n)),
        ("stall", None) => Ok(Fault::StallAt { n, duration: None }),
        ("stall", Some(detail)) => {
            Ok(Fault::StallAt { n, duration: Some(parse_duration(detail)?) })
        }
        ("slow", Some(detail)) => Ok(Fault::SlowAt { n, factor: parse_factor(detail)? }),
        ("slow", None) => Err("it lacks the factor, as in slow@3:x4"),
        ("corrupt", None) => Ok(Fault::CorruptAt(n)),
        ("tear", None) => Ok(Fault::TearAt(n)),
        ("enospc", None) => Ok(Fault::SpoolFullAt(n)),
        ("drop-link", None) => Ok(Fault::DropLinkAt(n)),
        ("die" | "corrupt" | "tear" | "enospc" | "drop-link", Some(_)) => {
            Err("nothing may follow the batch")
        }
        _ => Err("the name is unknown"),
    }
}

fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    match meetpoint_format::units::parse_duration(text) {
        Some(duration) if duration <= STALL_MAX => Ok(duration),
        Some(_) => Err("its duration is not between 0 and 3600s"),
        None => Err("its duration is not a time such as 2s or 300ms"),
    }
}

fn parse_factor(text: &str) -> Result<f64, &'static str> {
    let number = text.strip_prefix('x').ok_or("a factor begins with x")?;
    match number.parse::<f64>() {
        Ok(factor) if (1.0..=FACTOR_MAX).contains(&factor) => Ok(factor),
        Ok(_) => Err("its factor is not between 1 and 1000"),
        Err(_) => Err("its factor is not a number"),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DieAt(n) => write!(f, "die@{n}"),
            Self::StallAt { n, duration: None } => write!(f, "stall@{n}"),
            Self::StallAt { n, duration: Some(duration) } => {
                write!(f, "stall@{n}:{}ms", duration.as_secs_f64() * 1e3)
            }
            Self::SlowAt { n, factor } => write!(f, "slow@{n}:x{factor}"),
            Self::CorruptAt(n) => write!(f, "corrupt@{n}"),
            Self::TearAt(n) => write!(f, "tear@{n}"),
            Self::SpoolFullAt(n) => write!(f, "enospc@{n}"),
            Self::DropLinkAt(n) => write!(f, "drop-link@{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_and_written_back() {
        let second = |n| Some(Duration::from_secs(n));
        for (text, fault) in [
            ("die@3", Fault::DieAt(3)),
            ("stall@1", Fault::StallAt { n: 1, duration: None }),
            ("stall@3:2s", Fault::StallAt { n: 3, duration: second(2) }),
            ("stall@3:2000ms", Fault::StallAt { n: 3, duration: second(2) }),
            ("slow@3:x4", Fault::SlowAt { n: 3, factor: 4.0 }),
            ("slow@3:x1.5", Fault::SlowAt { n: 3, factor: 1.5 }),
            ("corrupt@3", Fault::CorruptAt(3)),
            ("tear@3", Fault::TearAt(3)),
            ("enospc@3", Fault::SpoolFullAt(3)),
            ("drop-link@3", Fault::DropLinkAt(3)),
        ] {
            assert_eq!(text.parse::<Fault>(), Ok(fault), "{text}");
            assert_eq!(fault.to_string().parse::<Fault>(), Ok(fault), "{fault}");
        }
    }

    #[test]
    fn a_text_that_is_no_fault_is_refused_with_the_reason() {
        for (text, problem) in [
            ("", "there is no @"),
            ("die", "there is no @"),
            ("die@", "not a whole number"),
            ("die@0", "counted from 1"),
            ("die@-1", "not a whole number"),
            ("die@99999999999999999999", "not a whole number"),
            ("die@3:2s", "nothing may follow"),
            ("stall@3:2", "not a time such as"),
            ("stall@3:-2s", "not a time such as"),
            ("stall@3:infs", "not a time such as"),
            ("stall@3:4000s", "not between"),
            ("stall@3:xs", "not a time such as"),
            ("slow@3", "lacks the factor"),
            ("slow@3:4", "begins with x"),
            ("slow@3:x0.5", "not between"),
            ("slow@3:xNaN", "not between"),
            ("melt@3", "name is unknown"),
        ] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("drop-link@N"), "{text}: {error}");
        }
    }
}
