//! Computes when a given device completes its commands; the time is an argument.

use std::time::Duration;

/// The speed of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// Time that each command takes in addition to its transfer; the latencies of commands in
    /// flight overlap.
    pub latency: Duration,
    /// Read bandwidth in bytes per second; `None` for no limit.
    pub read_bytes_per_second: Option<u64>,
    /// Write bandwidth in bytes per second; `None` for no limit.
    pub write_bytes_per_second: Option<u64>,
}

/// Direction of a transfer. The two do not slow each other down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// The times of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTimes {
    /// Start of its transfer.
    pub begin: Duration,
    /// End of its transfer.
    pub end: Duration,
    /// Completion: `end` plus the latency.
    pub due: Duration,
}

/// The model of one device. Each direction has one transfer at a time, in the order of the
/// commands; the next transfer begins during the latency of a command:
/// ```text
/// transfer  [--- 1 ---][--- 2 ---]      [--- 3 ---]
/// over                       1         2          3 + latency
/// ```
/// Times are durations since any fixed instant.
#[derive(Debug, Clone)]
pub struct Pacer {
    pace: Pace,
    read_free_at: Duration,
    write_free_at: Duration,
}

impl Pacer {
    /// An idle device.
    pub fn new(pace: Pace) -> Self {
        Self { pace, read_free_at: Duration::ZERO, write_free_at: Duration::ZERO }
    }

    /// The pace that it models.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Computes the times of a command that is submitted at `now` and transfers `bytes`.
    pub fn command(&mut self, now: Duration, direction: Direction, bytes: u64) -> CommandTimes {
        let (free_at, rate) = match direction {
            Direction::Read => (&mut self.read_free_at, self.pace.read_bytes_per_second),
            Direction::Write => (&mut self.write_free_at, self.pace.write_bytes_per_second),
        };
        let begin = now.max(*free_at);
        let end = match rate {
            Some(rate) => begin + transfer_time(bytes, rate),
            None => now,
        };
        *free_at = end;
        CommandTimes { begin, end, due: end + self.pace.latency }
    }
}

/// Time to transfer `bytes`; a rate of zero counts as one byte per second.
fn transfer_time(bytes: u64, bytes_per_second: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX / 4))
}

/// The commands of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Completed commands.
    pub commands: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Time of transfers: for each command from the start of its transfer to its completion, less
    /// the latency.
    pub busy: Duration,
    /// Sum over commands of the time from the end of the transfer to the completion.
    pub latency_sum: Duration,
}

impl Figures {
    /// Bytes per second of transfer time; `None` before any transfer.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let busy = self.busy.as_secs_f64();
        (busy > 0.0).then(|| self.bytes as f64 / busy)
    }

    /// Mean time that commands took in addition to their transfers; `None` before any completed.
    pub fn latency_mean(&self) -> Option<Duration> {
        let ns = self.latency_sum.as_nanos().checked_div(u128::from(self.commands))?;
        Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }
}

/// The achieved pace, for comparison with the [`Pace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Achieved {
    /// Reads.
    pub read: Figures,
    /// Writes.
    pub write: Figures,
    read_over_at: Duration,
    write_over_at: Duration,
}

impl Achieved {
    /// Records a command with its modelled times and its actual completion at `over`.
    pub fn enter(&mut self, direction: Direction, bytes: u64, times: CommandTimes, over: Duration) {
        let (figures, over_at) = match direction {
            Direction::Read => (&mut self.read, &mut self.read_over_at),
            Direction::Write => (&mut self.write, &mut self.write_over_at),
        };
        let latency = times.due - times.end;
        let end = over.saturating_sub(latency);
        figures.commands += 1;
        figures.bytes += bytes;
        figures.busy += end.saturating_sub(times.begin.max(*over_at));
        figures.latency_sum += over.saturating_sub(times.end);
        *over_at = end.max(*over_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Read, Write};

    const MS: Duration = Duration::from_millis(1);

    fn pacer() -> Pacer {
        Pacer::new(Pace {
            latency: 2 * MS,
            read_bytes_per_second: Some(1_000_000),
            write_bytes_per_second: Some(500_000),
        })
    }

    #[test]
    fn transfers_queue_up_and_latencies_overlap() {
        let mut pacer = pacer();
        let due: Vec<_> = (0..3).map(|_| pacer.command(10 * MS, Read, 1000).due).collect();
        assert_eq!(due, [13 * MS, 14 * MS, 15 * MS]);
    }

    #[test]
    fn an_idle_device_saves_up_nothing() {
        let mut pacer = pacer();
        pacer.command(Duration::ZERO, Read, 1000);
        let later = pacer.command(1000 * MS, Read, 1000);
        assert_eq!(later, CommandTimes { begin: 1000 * MS, end: 1001 * MS, due: 1003 * MS });
    }

    #[test]
    fn reads_and_writes_do_not_slow_each_other_down() {
        let mut pacer = pacer();
        assert_eq!(pacer.command(Duration::ZERO, Read, 1000).due, 3 * MS);
        assert_eq!(pacer.command(Duration::ZERO, Write, 1000).due, 4 * MS);
        assert_eq!(pacer.command(Duration::ZERO, Read, 1000).due, 4 * MS);
        assert_eq!(pacer.command(Duration::ZERO, Write, 1000).due, 6 * MS);
    }

    #[test]
    fn without_a_limit_only_the_latency_counts() {
        let mut pacer = Pacer::new(Pace { latency: MS, ..Pace::default() });
        assert_eq!(pacer.command(5 * MS, Read, u64::MAX).due, 6 * MS);
        assert_eq!(pacer.command(5 * MS, Write, u64::MAX).due, 6 * MS);
    }

    #[test]
    fn absurd_rates_and_sizes_do_not_overflow() {
        let slow = Pace { read_bytes_per_second: Some(0), ..Pace::default() };
        assert!(Pacer::new(slow).command(MS, Read, u64::MAX).due > 1000 * MS);
    }

    #[test]
    fn a_device_on_time_achieves_its_pace_and_a_late_one_does_not() {
        let mut pacer = pacer();
        let (mut on_time, mut late) = (Achieved::default(), Achieved::default());
        for _ in 0..100 {
            let times = pacer.command(MS, Read, 1000);
            on_time.enter(Read, 1000, times, times.due);
            let over = times.due + times.end - MS;
            late.enter(Read, 1000, times, over);
        }
        assert_eq!(on_time.read.bytes_per_second(), Some(1e6));
        assert_eq!(on_time.read.latency_mean(), Some(2 * MS));
        assert_eq!(late.read.bytes_per_second(), Some(5e5));
        assert_eq!(on_time.write.bytes_per_second(), None);
        assert_eq!(on_time.write.latency_mean(), None);
    }
}
