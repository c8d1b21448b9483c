//! Tests of ranks that meet over sockets, each in its own thread.

mod network;
mod relay;

use super::gather::{HELLO_LIMIT, Handshake, Refused, State};
use super::secret::ANSWER_BYTES;
use super::*;
use crate::collective::CollectiveError;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn config(place: &RendezvousAddress, rank: u32, ranks: u32, limit: Duration) -> RendezvousConfig {
    RendezvousConfig {
        place: place.clone(),
        listener: None,
        token: Some(Token::from_text("secret")),
        rank,
        ranks,
        attempt: attempt(3),
        job: "job".to_owned(),
        limit,
        silence: None,
    }
}

fn attempt(number: u64) -> Attempt {
    Attempt { run: "run".to_owned(), number }
}

/// A listener on a free port, and its address.
fn tcp() -> (Listener, RendezvousAddress) {
    let listener = Listener::bind(&RendezvousAddress::parse("tcp://127.0.0.1:0").unwrap()).unwrap();
    let place = format!("tcp://127.0.0.1:{}", listener.port().unwrap());
    (listener, RendezvousAddress::parse(&place).unwrap())
}

fn port_of(place: &RendezvousAddress) -> u16 {
    match place {
        RendezvousAddress::Tcp(address) => address.port,
        RendezvousAddress::Unix(_) => unreachable!(),
    }
}

fn unix(folder: &Path) -> RendezvousAddress {
    RendezvousAddress::Unix(folder.join("ranks"))
}

fn meet(config: RendezvousConfig) -> Result<Processes, CollectiveError> {
    Processes::meet(config, &StopHandle::new())
}

/// All ranks, once they met.
fn all(place: &RendezvousAddress, ranks: u32) -> Vec<Processes> {
    scope(|scope| {
        let come = |rank| scope.spawn(move || meet(config(place, rank, ranks, LONG)).unwrap());
        // Rank 0 last: the others wait for it.
        let threads: Vec<_> = (0..ranks).rev().map(come).collect();
        threads.into_iter().rev().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A proposal with distinct times.
fn proposal(time_ns: u64) -> Proposal {
    let mut words = [0; Proposal::WORDS];
    words[3] = time_ns;
    Proposal::from_words(words)
}

fn take(of: &Processes, rank: u32, number: u64) -> Result<Agreement, CollectiveError> {
    let stop = StopHandle::new();
    let turn = Turn { rank, epoch: 3, number, limit: LONG, stop: &stop };
    of.agree(&turn, proposal(u64::from(rank) * 1000 + number))
}

#[test]
fn all_ranks_get_the_combined_proposals() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in [1, 2, 4] {
        let met = all(&unix(folder.path()), ranks);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no name is left");
        let taken: Vec<Vec<Agreement>> = scope(|scope| {
            let turns = |(rank, of)| {
                let all = move || (0..50).map(|number| take(of, rank, number).unwrap()).collect();
                scope.spawn(all)
            };
            let threads: Vec<ScopedJoinHandle<'_, _>> = (0..).zip(&met).map(turns).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let longest = |number| proposal(u64::from(ranks - 1) * 1000 + number).agreement();
        let expected: Vec<Agreement> = (0..50).map(longest).collect();
        assert!(taken.iter().all(|agreements| *agreements == expected));
    }
}

#[test]
fn a_rank_whose_process_ends_is_named_by_all_others() {
    let folder = tempfile::tempdir().unwrap();
    for gone in [0, 2] {
        let mut met = all(&unix(folder.path()), 3);
        let dead = met.remove(gone);
        let left: Vec<u32> = (0..3).filter(|&rank| rank as usize != gone).collect();
        let errors: Vec<String> = scope(|scope| {
            let wait = |(&rank, of)| scope.spawn(move || take(of, rank, 0).unwrap_err());
            let waiting: Vec<_> = left.iter().zip(&met).map(wait).collect();
            // As the system does for a process that is killed.
            match &dead.end {
                End::Member(member) => member.break_off(),
                End::Hub(_) => {}
            }
            drop(dead);
            waiting.into_iter().map(|it| it.join().unwrap().to_string()).collect()
        });
        for error in errors {
            assert!(error.starts_with(&format!("rank {gone} left epoch 3: ")), "{error}");
        }
        for (&rank, of) in left.iter().zip(&met) {
            let again = take(of, rank, 1).unwrap_err().to_string();
            assert!(again.contains(&format!("rank {gone} left")), "{again}");
        }
    }
}

/// The limit passes many times over while rank 1 is at work; each of its heartbeats comes before
/// rank 0 can have waited so long.
#[test]
fn heartbeats_extend_the_wait_over_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let met = all(&unix(folder.path()), 2);
    let stop = StopHandle::new();
    let limit = Duration::from_secs(2);
    let turn = |rank| Turn { rank, epoch: 3, number: 0, limit, stop: &stop };
    scope(|scope| {
        let waits = scope.spawn(|| met[0].agree(&turn(0), proposal(1)));
        let works_until = Instant::now() + 2 * limit;
        while Instant::now() < works_until {
            met[1].at_work(1);
            std::thread::sleep(limit / 100);
        }
        let agreed = met[1].agree(&turn(1), proposal(2));
        assert_eq!([agreed, waits.join().unwrap()], [(); 2].map(|()| Ok(proposal(2).agreement())));
    });
}

#[test]
fn a_lost_rank_is_named_even_after_rank_0_has_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut met = all(&unix(folder.path()), 3);
    let (dead, late) = (met.pop().unwrap(), met.pop().unwrap());
    let first = met.pop().unwrap();
    let End::Member(member) = &dead.end else { unreachable!() };
    member.break_off();
    let error = take(&first, 0, 0).unwrap_err();
    // Rank 1 comes when rank 0 is gone.
    drop(first);
    assert_eq!(take(&late, 1, 0).unwrap_err(), error);
    assert!(error.to_string().starts_with("rank 2 left epoch 3: "), "{error}");
}

#[test]
fn a_rank_that_leaves_an_epoch_is_there_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let met = all(&unix(folder.path()), 2);
    met[1].leave(1, 3, "it ended its epoch early");
    let error = take(&met[0], 0, 0).unwrap_err();
    assert_eq!(error.to_string(), "rank 1 left epoch 3: it ended its epoch early");
    let next = |of: &Processes, rank| {
        let stop = StopHandle::new();
        of.agree(&Turn { rank, epoch: 4, number: 0, limit: LONG, stop: &stop }, proposal(9))
    };
    scope(|scope| {
        let other = scope.spawn(|| next(&met[1], 1));
        assert_eq!(next(&met[0], 0), Ok(proposal(9).agreement()));
        assert_eq!(other.join().unwrap(), Ok(proposal(9).agreement()));
    });
}

#[test]
fn a_decision_stands_for_all_when_a_rank_closes_right_after_it() {
    let folder = tempfile::tempdir().unwrap();
    for closes in [0_usize, 1] {
        let met = all(&unix(folder.path()), 3);
        scope(|scope| {
            let turn = |(rank, of): (usize, Processes)| {
                scope.spawn(move || {
                    let taken = take(&of, u32::try_from(rank).unwrap(), 0);
                    let kept = (rank != closes).then_some(of);
                    (taken, kept)
                })
            };
            let threads: Vec<ScopedJoinHandle<'_, _>> =
                met.into_iter().enumerate().map(turn).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap().0, Ok(proposal(2000).agreement()));
            }
        });
    }
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = unix(folder.path());
    let [first, second] = scope(|scope| {
        let come = |rank| {
            let place = &place;
            scope.spawn(move || meet(config(place, rank, 4, SHORT)).unwrap_err().to_string())
        };
        [come(0), come(2)].map(|thread| thread.join().unwrap())
    });
    assert!(first.starts_with("ranks 1 and 3 did not connect to unix:"), "{first}");
    assert_eq!(first, second);
    let alone = meet(config(&place, 1, 2, SHORT)).unwrap_err().to_string();
    assert!(alone.starts_with("rank 0 did not connect"), "{alone}");
}

#[test]
fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let place = unix(folder.path());
    let RendezvousAddress::Unix(path) = &place else { unreachable!() };
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    assert!(path.exists() && UnixStream::connect(path).is_err());
    let listener = Listener::bind(&place).unwrap();
    let error = Listener::bind(&place).unwrap_err().to_string();
    assert!(error.contains("rank 0 cannot listen there"), "{error}");
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_stop_ends_every_wait() {
    let folder = tempfile::tempdir().unwrap();
    let place = unix(folder.path());
    for rank in [0, 1] {
        let stop = StopHandle::new();
        let error = scope(|scope| {
            let waits = scope.spawn(|| Processes::meet(config(&place, rank, 2, LONG), &stop));
            stop.stop();
            waits.join().unwrap().unwrap_err()
        });
        assert_eq!(error, CollectiveError::Interrupted);
    }
    let met = all(&place, 2);
    let stop = StopHandle::new();
    stop.stop();
    let turn = Turn { rank: 1, epoch: 0, number: 0, limit: LONG, stop: &stop };
    assert_eq!(met[1].agree(&turn, proposal(1)), Err(CollectiveError::Interrupted));
}

#[test]
fn addresses_round_trip_through_text() {
    for text in ["unix:/run/ranks", "tcp://10.0.0.1:4000", "tcp://[::1]:0"] {
        assert_eq!(RendezvousAddress::parse(text).unwrap().to_string(), text);
    }
    for text in ["", "unix:", "tcp:host:1", "tcp://host", "http://host:1"] {
        let error = RendezvousAddress::parse(text).unwrap_err();
        assert!(matches!(error, CollectiveError::Place { remedy: Some(_), .. }), "{error}");
    }
}

/// More than are heard at a time, and fewer than may wait to be accepted.
#[test]
fn ranks_connect_while_idle_unidentified_connections_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks");
    let place = RendezvousAddress::Unix(path.clone());
    let listener = Some(Listener::bind(&place).unwrap());
    let strangers: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut stranger = UnixStream::connect(&path).unwrap();
            stranger.write_all(&[0]).unwrap();
            stranger
        })
        .collect();
    scope(|scope| {
        let other = scope.spawn(|| meet(config(&place, 1, 2, LONG)).unwrap());
        let first = meet(RendezvousConfig { listener, ..config(&place, 0, 2, LONG) }).unwrap();
        drop((first, other.join().unwrap()));
    });
    drop(strangers);
}

/// A byte now and then does not extend the time of a handshake.
#[test]
fn a_connection_that_sends_slowly_is_closed_at_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks");
    let listener = Listener::bind(&RendezvousAddress::Unix(path.clone())).unwrap();
    let mut stranger = UnixStream::connect(&path).unwrap();
    let token = Token::from_text("secret");
    let begun = Instant::now();
    let accepted = listener.accept().unwrap().unwrap();
    let mut handshake = Handshake::begin(accepted, begun).unwrap();
    for step in 0..u32::try_from(ANSWER_BYTES - 1).unwrap() {
        let elapsed = Duration::from_millis(100) * step;
        stranger.write_all(&[0]).unwrap();
        handshake = match handshake.advance(&token, None, begun + elapsed) {
            State::Incomplete(handshake) if elapsed < HELLO_LIMIT => handshake,
            State::Refused(Refused::Invalid) if elapsed >= HELLO_LIMIT => return,
            other => panic!("after {elapsed:?}: {other:?}"),
        };
    }
    panic!("{ANSWER_BYTES} bytes do not take {HELLO_LIMIT:?}");
}

#[test]
fn a_live_socket_of_another_rendezvous_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let place = unix(folder.path());
    let first = Listener::bind(&place).unwrap();
    assert!(matches!(Listener::bind(&place), Err(CollectiveError::Place { .. })));
    assert!(folder.path().join("ranks").exists());
    drop(first);
    assert!(Listener::bind(&place).is_ok());
}
