//! Selects the worker's core: it needs its own, or emulated measurements would be meaningless.

use crate::{Error, ServeNotice};
use meetpoint_link::Emulation;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The core for the worker, and a notice for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// `None`: not pinned.
    pub(crate) core: Option<usize>,
    pub(crate) notice: Option<ServeNotice>,
}

/// Chooses for this process.
pub(crate) fn choose(emulation: &Emulation) -> Result<Choice, Error> {
    let set = sched_getaffinity(None).map_err(|error| Error::Process {
        action: "ask which cores may be used",
        source: error.into(),
    })?;
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    choose_among(emulation, &usable)
}

/// The last core if anything is emulated: hosts use the first ones.
fn choose_among(emulation: &Emulation, usable: &[usize]) -> Result<Choice, Error> {
    let last = *usable.last().expect("a process may use at least one core");
    let wanted = emulation.targets.core.map(|core| core as usize);
    if let Some(core) = wanted
        && !usable.contains(&core)
    {
        let usable: Vec<String> = usable.iter().map(usize::to_string).collect();
        return Err(Error::Core { core, usable: usable.join(", ") });
    }
    if !emulation.is_on() {
        return Ok(Choice { core: wanted, notice: None });
    }
    if usable.len() > 1 {
        return Ok(Choice { core: wanted.or(Some(last)), notice: None });
    }
    if !emulation.allow_shared {
        return Err(Error::OneCore { core: last });
    }
    Ok(Choice { core: wanted, notice: Some(ServeNotice::SharedCore { core: last }) })
}

/// Keeps the calling thread on a core.
pub(crate) fn pin(core: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_link::Targets;

    fn with(targets: Targets) -> Emulation {
        Emulation { targets, ..Emulation::default() }
    }

    #[test]
    fn an_emulated_device_gets_the_last_core_and_a_real_one_any() {
        let slow = with(Targets { cpu_ratio: Some(0.5), ..Targets::default() });
        let core = |emulation: &Emulation, usable: &[usize]| {
            choose_among(emulation, usable).map(|choice| choice.core)
        };
        assert_eq!(core(&slow, &[0, 2, 5]).unwrap(), Some(5));
        let first = with(Targets { core: Some(2), ..slow.targets });
        assert_eq!(core(&first, &[0, 2, 5]).unwrap(), Some(2));
        assert_eq!(core(&Emulation::default(), &[0]).unwrap(), None);
    }

    #[test]
    fn sharing_the_only_core_must_be_allowed_and_is_reported() {
        let slow = with(Targets { cpu_ratio: Some(0.5), ..Targets::default() });
        let error = choose_among(&slow, &[3]).unwrap_err();
        assert!(matches!(error, Error::OneCore { core: 3 }), "{error}");
        let shared = Emulation { allow_shared: true, ..slow };
        let choice = choose_among(&shared, &[3]).unwrap();
        let notice = Some(ServeNotice::SharedCore { core: 3 });
        assert_eq!(choice, Choice { core: None, notice });
    }

    #[test]
    fn an_unavailable_core_is_refused_with_the_available_ones() {
        let slow = with(Targets { core: Some(7), ..Targets::default() });
        let error = choose_among(&slow, &[0, 1]).unwrap_err().to_string();
        assert!(error.contains("core 7") && error.contains("(0, 1)"), "{error}");
    }
}
