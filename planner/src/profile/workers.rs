//! Threads that share a range of samples; the next free thread takes the next sample.

use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Calls `work` for each index below `count` on a given number of threads, each with a state from
/// `begin`. Returns what `end` makes of the states; both run on the thread.
///
/// The first error ends all threads after their current sample, as does `stop`, which returns
/// [`Error::Stopped`].
pub(super) fn each<T, E: Send>(
    threads: usize,
    count: usize,
    stop: &AtomicBool,
    begin: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize) -> Result<(), Error> + Sync,
    end: impl Fn(T) -> E + Sync,
) -> Result<Vec<E>, Error> {
    let (next, is_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || {
        let mut state = begin();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || is_failed.load(Ordering::Relaxed) {
                return Ok(end(state));
            }
            if let Err(error) = work(&mut state, index) {
                is_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        // Every thread ends before the first result is examined.
        let ended: Vec<_> = ended.collect();
        ended
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::each;
    use crate::Error;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_index_is_worked_on_once_and_a_stop_or_an_error_ends_the_work() {
        let stop = AtomicBool::new(false);
        let push = |list: &mut Vec<usize>, index| {
            list.push(index);
            Ok(())
        };
        let lists = each(3, 100, &stop, Vec::new, push, |list| list);
        let mut indices = lists.unwrap().concat();
        indices.sort_unstable();
        assert_eq!(indices, (0..100).collect::<Vec<_>>());

        let fail = |(): &mut (), index| match index {
            5 => Err(Error::NoSettings {
                name: "codecs",
                setting: meetpoint_diagnose::Setting::Codecs,
            }),
            _ => Ok(()),
        };
        let failed = each(2, 100, &stop, || (), fail, |()| ());
        assert!(matches!(failed, Err(Error::NoSettings { name: "codecs", .. })));

        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let never = |(): &mut (), _| panic!("it was stopped before");
        let stopped = each(2, 100, &stop, || (), never, |()| ());
        assert!(matches!(stopped, Err(Error::Stopped)));
    }
}
