//! Fair shares of the preparing threads: whose batch is next, by the time that earlier ones took.
//!
//! Clients get equal time, and so do the loaders of each client, whatever the size of their
//! batches. This is start-time fair queuing with two levels: a claimant that was idle joins at the
//! current virtual time, so idle time gives no claim to more time later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Who asks for a thread: the name of a client, and the number of one of its loaders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claimant {
    pub(crate) client: Arc<str>,
    pub(crate) loader: u64,
}

/// Time used, in virtual time: only differences have a meaning.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    used: Duration,
}

impl Account {
    fn join(&mut self, now: Duration) {
        self.used = self.used.max(now);
    }
}

#[derive(Debug, Default)]
struct Client {
    account: Account,
    /// Virtual time among its loaders.
    now: Duration,
    loaders: BTreeMap<u64, Loader>,
}

#[derive(Debug, Default)]
struct Loader {
    account: Account,
    /// Workers, which have the same share together.
    members: u32,
    /// How long its last batch took: what the next is charged until it has ended.
    expected: Duration,
}

/// The accounts of all claimants.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    now: Duration,
    clients: BTreeMap<Arc<str>, Client>,
}

impl Shares {
    /// Adds a worker of a loader.
    pub(crate) fn join(&mut self, who: &Claimant) {
        let client = self.clients.entry(Arc::clone(&who.client)).or_default();
        client.loaders.entry(who.loader).or_default().members += 1;
    }

    /// Removes a worker; accounts without workers are forgotten.
    pub(crate) fn leave(&mut self, who: &Claimant) {
        let Some(client) = self.clients.get_mut(&who.client) else { return };
        if let Some(loader) = client.loaders.get_mut(&who.loader) {
            loader.members -= 1;
            if loader.members == 0 {
                client.loaders.remove(&who.loader);
            }
        }
        if client.loaders.is_empty() {
            self.clients.remove(&who.client);
        }
    }

    /// A worker begins to wait for a thread.
    pub(crate) fn arrive(&mut self, who: &Claimant) {
        let now = self.now;
        self.with(who, |client, loader| {
            client.account.join(now);
            loader.account.join(client.now);
        });
    }

    /// The order among those who wait; the least is next.
    pub(crate) fn rank(&self, who: &Claimant) -> (Duration, Duration) {
        let client = self.clients.get(&who.client);
        let loader = client.and_then(|client| client.loaders.get(&who.loader));
        let used = |account: Option<Account>| account.unwrap_or_default().used;
        (used(client.map(|it| it.account)), used(loader.map(|it| it.account)))
    }

    /// A worker gets a thread. Returns what it is charged in advance.
    pub(crate) fn begin(&mut self, who: &Claimant) -> Duration {
        let mut now = self.now;
        let mut charged = Duration::ZERO;
        self.with(who, |client, loader| {
            now = now.max(client.account.used);
            client.now = client.now.max(loader.account.used);
            charged = loader.expected;
            client.account.used += charged;
            loader.account.used += charged;
        });
        self.now = now;
        charged
    }

    /// The worker gives the thread back after `took`; `charged` is what it was charged.
    pub(crate) fn end(&mut self, who: &Claimant, charged: Duration, took: Duration) {
        self.with(who, |client, loader| {
            loader.expected = took;
            for account in [&mut client.account, &mut loader.account] {
                account.used = (account.used + took).saturating_sub(charged);
            }
        });
    }

    fn with(&mut self, who: &Claimant, change: impl FnOnce(&mut Client, &mut Loader)) {
        let Some(client) = self.clients.get_mut(&who.client) else { return };
        let Some(mut loader) = client.loaders.remove(&who.loader) else { return };
        change(client, &mut loader);
        client.loaders.insert(who.loader, loader);
    }
}

#[cfg(test)]
mod tests {
    use super::{Claimant, Shares};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn claimant(client: &str, loader: u64) -> Claimant {
        Claimant { client: client.into(), loader }
    }

    /// A loader that always has work: its batches take this long, from a time until another.
    struct Load {
        who: Claimant,
        batch: Duration,
        from: Duration,
        until: Duration,
    }

    /// Runs loaders on a number of threads until `end`; returns the thread time of each.
    fn run(loads: &[Load], threads: usize, end: Duration) -> Vec<Duration> {
        let mut shares = Shares::default();
        loads.iter().for_each(|load| shares.join(&load.who));
        let mut used = vec![Duration::ZERO; loads.len()];
        let mut waiting = vec![false; loads.len()];
        // Ends of the batches in progress: the loader, and what it was charged.
        let mut busy: BTreeMap<(Duration, usize), (usize, Duration)> = BTreeMap::new();
        let (mut now, mut number) = (Duration::ZERO, 0);
        while now < end {
            for (at, load) in loads.iter().enumerate() {
                let has_work = (load.from..load.until).contains(&now);
                if has_work && !waiting[at] {
                    shares.arrive(&load.who);
                }
                waiting[at] = has_work;
            }
            while busy.len() < threads {
                let next = (0..loads.len()).filter(|at| waiting[*at]);
                let Some(at) = next.min_by_key(|at| shares.rank(&loads[*at].who)) else { break };
                let charged = shares.begin(&loads[at].who);
                busy.insert((now + loads[at].batch, number), (at, charged));
                number += 1;
                // It has another batch at once.
                shares.arrive(&loads[at].who);
            }
            let Some(((ends, _), (at, charged))) = busy.pop_first() else {
                now += Duration::from_millis(1);
                continue;
            };
            now = ends;
            used[at] += loads[at].batch;
            shares.end(&loads[at].who, charged, loads[at].batch);
        }
        used
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn always(who: Claimant, batch: Duration) -> Load {
        Load { who, batch, from: Duration::ZERO, until: Duration::MAX }
    }

    #[test]
    fn loaders_get_equal_time_whatever_the_size_of_their_batches() {
        for threads in [1, 2, 7] {
            let loads = [always(claimant("a", 1), ms(100)), always(claimant("b", 2), ms(1))];
            let used = run(&loads, threads, ms(100_000));
            let difference = used[0].abs_diff(used[1]);
            assert!(difference <= ms(100) * threads as u32 * 2, "{threads}: {used:?}");
        }
    }

    #[test]
    fn a_client_with_many_loaders_has_one_share_which_they_divide() {
        let mut loads: Vec<Load> =
            (0..8).map(|loader| always(claimant("many", loader), ms(10))).collect();
        loads.push(always(claimant("one", 99), ms(20)));
        let used = run(&loads, 4, ms(100_000));
        let (many, one): (Duration, Duration) = (used[..8].iter().sum(), used[8]);
        assert!(many.abs_diff(one) <= ms(200), "{many:?} {one:?}");
        for own in &used[..8] {
            assert!(own.abs_diff(many / 8) <= ms(100), "{used:?}");
        }
    }

    #[test]
    fn idle_time_gives_no_claim_to_more_time() {
        let late = Load { from: ms(50_000), ..always(claimant("late", 2), ms(10)) };
        let loads = [always(claimant("early", 1), ms(10)), late];
        let used = run(&loads, 1, ms(60_000));
        assert!(used[1].abs_diff(ms(5_000)) <= ms(50), "{used:?}");
    }

    #[test]
    fn a_loader_that_is_alone_gets_everything() {
        let used = run(&[always(claimant("a", 1), ms(3))], 4, ms(3_000));
        assert!(used[0] >= ms(4 * 3_000 - 12), "{used:?}");
    }

    #[test]
    fn who_left_is_forgotten() {
        let mut shares = Shares::default();
        let who = claimant("a", 1);
        shares.join(&who);
        shares.join(&who);
        shares.leave(&who);
        shares.arrive(&who);
        let charged = shares.begin(&who);
        shares.end(&who, charged, ms(5));
        assert_eq!(shares.rank(&who), (ms(5), ms(5)));
        shares.leave(&who);
        assert!(shares.clients.is_empty());
        shares.end(&who, ms(5), ms(5));
    }
}
