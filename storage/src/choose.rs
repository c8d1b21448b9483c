//! Selects the storage engine, and reports why it differs from the requested one.

use crate::threads::ThreadsEngine;
use crate::uring::UringEngine;
use crate::{Engine, EngineNote, Error, RingRefusal};

/// Engines that can be requested by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// io_uring if it works, otherwise threads, with the reason.
    #[default]
    Auto,
    /// io_uring; an error if it does not work.
    Uring,
    /// Blocking reads on a few threads.
    Threads,
    /// SPDK; an error if this program was built without the feature `spdk`.
    Spdk,
}

impl EngineKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Uring, Self::Threads, Self::Spdk];

    /// Its name on the command line, in jobs and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Uring => "io_uring",
            Self::Threads => "threads",
            Self::Spdk => "spdk",
        }
    }
}

/// An engine and, if [`EngineKind::Auto`] did not select io_uring, the reason.
pub struct SelectedEngine {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// The engine that does not work here, and the cause.
    pub note: Option<EngineNote>,
}

/// Creates an engine for `depth` requests in flight, at least one and at most
/// [`crate::DEPTH_MAX`].
pub fn open_engine(kind: EngineKind, depth: usize) -> Result<SelectedEngine, Error> {
    open_engine_with(kind, depth, |depth| Ok(Box::new(UringEngine::new(depth)?)))
}

/// [`open_engine`] with another constructor of io_uring, so that tests can simulate its absence.
pub fn open_engine_with(
    kind: EngineKind,
    depth: usize,
    uring: impl FnOnce(usize) -> Result<Box<dyn Engine>, RingRefusal>,
) -> Result<SelectedEngine, Error> {
    let threads = || Ok::<_, Error>(Box::new(ThreadsEngine::new(depth)?));
    match kind {
        EngineKind::Threads => Ok(SelectedEngine { engine: threads()?, note: None }),
        EngineKind::Uring => Ok(SelectedEngine { engine: uring(depth)?, note: None }),
        EngineKind::Spdk => Ok(SelectedEngine { engine: spdk(depth)?, note: None }),
        EngineKind::Auto => match uring(depth) {
            Ok(engine) => Ok(SelectedEngine { engine, note: None }),
            Err(refusal) => {
                let note = Some(EngineNote::IoUring { refusal });
                Ok(SelectedEngine { engine: threads()?, note })
            }
        },
    }
}

/// The engine over SPDK.
#[cfg(feature = "spdk")]
fn spdk(depth: usize) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(crate::spdk::SpdkEngine::new(depth)?))
}

/// The engine over SPDK, which is not part of this program.
#[cfg(not(feature = "spdk"))]
fn spdk(_depth: usize) -> Result<Box<dyn Engine>, Error> {
    let reason = "this program was built without the feature spdk".to_owned();
    let remedy = "build it where SPDK is installed: cargo build --release --features spdk, see \
                  docs/spdk.md";
    Err(Error::Unavailable { engine: "spdk", reason, remedy: Some(remedy.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(_: usize) -> Result<Box<dyn Engine>, RingRefusal> {
        Err(RingRefusal::NotPermitted)
    }

    #[test]
    fn without_io_uring_auto_falls_back_to_threads_and_says_why() {
        let chosen = open_engine_with(EngineKind::Auto, 4, absent).unwrap();
        assert_eq!(chosen.engine.name(), "threads");
        let refusal = RingRefusal::NotPermitted;
        assert_eq!(chosen.note, Some(EngineNote::IoUring { refusal }));
    }

    #[test]
    fn without_io_uring_asking_for_it_is_an_error() {
        let error = open_engine_with(EngineKind::Uring, 4, absent).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NoRing(RingRefusal::NotPermitted)), "{error}");
    }

    #[test]
    fn threads_are_had_without_a_note_and_without_trying_io_uring() {
        let chosen =
            open_engine_with(EngineKind::Threads, 4, |_| unreachable!("threads were asked for"))
                .unwrap();
        assert_eq!((chosen.engine.name(), chosen.note), ("threads", None));
    }

    #[cfg(not(feature = "spdk"))]
    #[test]
    fn without_its_feature_asking_for_spdk_is_an_error_with_a_remedy() {
        use meetpoint_diagnose::Diagnose;
        let error = open_engine(EngineKind::Spdk, 4).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Unavailable { engine: "spdk", .. }));
        assert!(error.remedy().is_some());
    }

    #[test]
    fn the_depth_is_kept_within_its_limits() {
        for (asked, got) in [(0, 1), (7, 7), (1 << 20, crate::DEPTH_MAX)] {
            let chosen = open_engine(EngineKind::Threads, asked).unwrap();
            assert_eq!(chosen.engine.limits().depth, got);
        }
    }
}
