//! Ranks over TCP: secrets, attempts, and connections that break or fall silent.

use super::relay::Relay;
use super::*;
use crate::collective::processes::link::Broken;
use crate::collective::processes::message::VERSION;
use crate::collective::processes::secret::{
    ANSWER_BYTES, CODE_BYTES, Exchange, GREETING_BYTES, Greeting, REFUSED,
};

/// A silence that breaks a connection in these tests.
const SILENCE: Duration = Duration::from_secs(2);

/// Rank 0 of two, which listens already.
fn rank_0(listener: Listener, place: &RendezvousAddress, limit: Duration) -> RendezvousConfig {
    RendezvousConfig { listener: Some(listener), ..config(place, 0, 2, limit) }
}

fn rank_1(place: &RendezvousAddress) -> RendezvousConfig {
    config(place, 1, 2, LONG)
}

fn at_port(port: u16) -> RendezvousAddress {
    RendezvousAddress::parse(&format!("tcp://127.0.0.1:{port}")).unwrap()
}

/// All ranks of a group over TCP; those named connect through the relay.
fn over_tcp(ranks: u32, through: &[u32]) -> (Vec<Processes>, Relay) {
    let (listener, place) = tcp();
    let relay = Relay::start(port_of(&place));
    let silence = Some(SILENCE);
    let met = scope(|scope| {
        let own = RendezvousConfig {
            listener: Some(listener),
            silence,
            ..config(&place, 0, ranks, LONG)
        };
        let others = (1..ranks).map(|rank| {
            let is_relayed = through.contains(&rank);
            let at = if is_relayed { at_port(relay.port) } else { place.clone() };
            RendezvousConfig { silence, ..config(&at, rank, ranks, LONG) }
        });
        let all: Vec<RendezvousConfig> = std::iter::once(own).chain(others).collect();
        let come = |config| scope.spawn(move || meet(config).unwrap());
        let threads: Vec<_> = all.into_iter().map(come).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (met, relay)
}

/// The first turn of every rank, at the same time.
fn turn_of_all(met: &[Processes], number: u64) -> Vec<Result<Agreement, CollectiveError>> {
    scope(|scope| {
        let wait = |(rank, of)| scope.spawn(move || take(of, rank, number));
        let threads: Vec<ScopedJoinHandle<'_, _>> = (0..).zip(met).map(wait).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_rank_with_another_token_is_refused_and_the_others_meet() {
    let (listener, place) = tcp();
    scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).map(drop));
        let token = Some(Token::from_text("another"));
        let refused = meet(RendezvousConfig { token, ..rank_1(&place) }).unwrap_err();
        assert_eq!(refused, CollectiveError::OtherToken { place: place.to_string() });
        meet(rank_1(&place)).unwrap();
        hub.join().unwrap().unwrap();
    });
    let (listener, place) = tcp();
    let missing = scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, SHORT)).unwrap_err());
        let token = Some(Token::from_text("another"));
        // Rank 0 may have ended its wait first on a busy machine.
        let limit = SHORT;
        meet(RendezvousConfig { token, limit, ..rank_1(&place) }).unwrap_err();
        hub.join().unwrap()
    });
    assert!(
        matches!(&missing, CollectiveError::NotMet { ranks, .. } if *ranks == [1]),
        "{missing}"
    );
}

#[test]
fn ranks_over_tcp_without_a_token_are_refused() {
    let (listener, place) = tcp();
    for config in [rank_0(listener, &place, LONG), rank_1(&place)] {
        let error = meet(RendezvousConfig { token: None, ..config }).unwrap_err();
        assert_eq!(error, CollectiveError::NoToken { place: place.to_string() });
    }
}

#[test]
fn garbage_at_the_port_changes_nothing() {
    let (listener, place) = tcp();
    let connect = || TcpStream::connect(("127.0.0.1", port_of(&place))).unwrap();
    let mut strangers = [connect(), connect(), connect()];
    strangers[0].write_all(&[0xff; 4096]).unwrap();
    strangers[1].write_all(b"GET / HTTP/1.1\r\nHost: ranks\r\n\r\n").unwrap();
    strangers[2].write_all(&Greeting::new(VERSION).unwrap().to_bytes()).unwrap();
    scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).map(drop));
        meet(rank_1(&place)).unwrap();
        hub.join().unwrap().unwrap();
    });
}

#[test]
fn a_listener_that_is_not_a_rank_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = at_port(listener.local_addr().unwrap().port());
    let error = scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[b'x'; GREETING_BYTES]).unwrap();
        });
        meet(rank_1(&place)).unwrap_err()
    });
    assert!(matches!(error, CollectiveError::Place { .. }), "{error}");
}

/// A listener without the secret learns nothing that it could use, and is not trusted.
#[test]
fn a_listener_without_the_secret_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = at_port(listener.local_addr().unwrap().port());
    let error = scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&Greeting::new(VERSION).unwrap().to_bytes()).unwrap();
            let mut answer = [0; ANSWER_BYTES];
            stream.read_exact(&mut answer).unwrap();
            // The proof of the rank in place of one's own.
            stream.write_all(&answer[GREETING_BYTES..]).unwrap();
        });
        meet(rank_1(&place)).unwrap_err()
    });
    assert_eq!(error, CollectiveError::OtherToken { place: place.to_string() });
}

#[test]
fn a_recorded_handshake_is_refused_and_shows_no_secret() {
    let (met, relay) = over_tcp(2, &[1]);
    assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
    let [to_rank_0, from_rank_0] = relay.passed();
    drop(met);
    let secret = Token::from_text("secret").0;
    for bytes in [&to_rank_0, &from_rank_0] {
        assert!(!bytes.windows(8).any(|window| window == &secret[..8] || window == b"secret\0\0"));
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
    }
    let (listener, place) = tcp();
    scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).map(drop));
        let mut replayed = TcpStream::connect(("127.0.0.1", port_of(&place))).unwrap();
        replayed.write_all(&to_rank_0).unwrap();
        let mut said = [0; GREETING_BYTES + CODE_BYTES];
        replayed.read_exact(&mut said).unwrap();
        assert_eq!(said[GREETING_BYTES..], REFUSED);
        meet(rank_1(&place)).unwrap();
        hub.join().unwrap().unwrap();
    });
}

#[test]
fn a_changed_message_ends_the_group() {
    let (met, relay) = over_tcp(3, &[2]);
    assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
    relay.garble();
    let results = turn_of_all(&met, 1);
    let error = results[2].clone().unwrap_err();
    let why = Broken::Forged.to_string();
    assert_eq!(error, CollectiveError::Left { rank: 0, epoch: 3, why });
    drop(met);
}

#[test]
fn a_cut_connection_is_noticed_at_both_ends() {
    let (met, relay) = over_tcp(3, &[2]);
    assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
    relay.go_silent();
    // Ranks 0 and 1 still reach each other.
    let results = turn_of_all(&met, 1);
    let why = Broken::Silent(SILENCE).to_string();
    for (rank, lost) in [(0, 2), (1, 2), (2, 0)] {
        let error = results[rank].clone().unwrap_err();
        let expected = CollectiveError::Left { rank: lost, epoch: 3, why: why.clone() };
        assert_eq!(error, expected, "rank {rank}");
    }
}

/// The connection is cut while no rank takes a turn, as in a long training step.
#[test]
fn a_connection_that_is_cut_between_turns_is_noticed() {
    let (met, relay) = over_tcp(2, &[1]);
    assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
    relay.go_silent();
    let lost = take(&met[0], 0, 1).unwrap_err();
    assert!(matches!(lost, CollectiveError::Left { rank: 1, .. }), "{lost}");
    let lost = take(&met[1], 1, 1).unwrap_err();
    assert!(matches!(lost, CollectiveError::Left { rank: 0, .. }), "{lost}");
}

#[test]
fn a_connection_without_turns_stays_alive() {
    let (met, _relay) = over_tcp(2, &[1]);
    let begun = Instant::now();
    while begun.elapsed() < 2 * SILENCE {
        std::thread::sleep(SILENCE / 10);
    }
    assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
}

#[test]
fn messages_in_single_bytes_are_understood() {
    let (listener, place) = tcp();
    let relay = Relay::start(port_of(&place));
    relay.cut_in_pieces_of(1);
    scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).unwrap());
        let member = meet(rank_1(&at_port(relay.port))).unwrap();
        let met = [hub.join().unwrap(), member];
        assert!(turn_of_all(&met, 0).iter().all(Result::is_ok));
    });
}

#[test]
fn a_rank_of_an_earlier_attempt_or_another_run_is_refused_by_name() {
    let (listener, place) = tcp();
    scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).map(drop));
        for theirs in [attempt(2), Attempt { run: "night".to_owned(), number: 3 }] {
            let late = RendezvousConfig { attempt: theirs.clone(), ..rank_1(&place) };
            let ours = attempt(3);
            let expected = CollectiveError::OtherAttempt { rank: 1, theirs, ours };
            assert_eq!(meet(late).unwrap_err(), expected);
        }
        meet(rank_1(&place)).unwrap();
        hub.join().unwrap().unwrap();
    });
}

/// Rank 0 of the earlier attempt still listens at the address that both attempts use.
#[test]
fn a_later_attempt_takes_over_the_address() {
    let (listener, place) = tcp();
    scope(|scope| {
        let old = scope.spawn(|| meet(rank_0(listener, &place, LONG)).map(drop));
        let later =
            |rank| RendezvousConfig { attempt: attempt(4), ..config(&place, rank, 2, LONG) };
        let new = [0, 1].map(|rank| {
            let config = later(rank);
            scope.spawn(move || meet(config).map(drop))
        });
        let (ours, theirs) = (attempt(3), attempt(4));
        let expected = CollectiveError::Superseded { ours, theirs };
        assert_eq!(old.join().unwrap().unwrap_err(), expected);
        new.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
}

#[test]
fn two_processes_with_the_same_rank_are_refused() {
    for silence in [None, Some(SILENCE)] {
        let (listener, place) = tcp();
        let own =
            RendezvousConfig { listener: Some(listener), silence, ..config(&place, 0, 3, LONG) };
        let same = || RendezvousConfig { silence, ..config(&place, 1, 3, LONG) };
        let errors = scope(|scope| {
            let threads =
                [own, same(), same()].map(|config| scope.spawn(|| meet(config).map(drop)));
            threads.map(|thread| thread.join().unwrap().unwrap_err())
        });
        assert_eq!(errors, [(); 3].map(|()| CollectiveError::Claimed { rank: 1 }));
    }
}

#[test]
fn a_rank_that_was_restarted_while_others_are_missing_is_accepted() {
    let (listener, place) = tcp();
    let stop = StopHandle::new();
    scope(|scope| {
        let own = RendezvousConfig { listener: Some(listener), ..config(&place, 0, 3, LONG) };
        let hub = scope.spawn(|| meet(own).map(drop));
        let killed = scope.spawn(|| Processes::meet(config(&place, 1, 3, LONG), &stop).map(drop));
        stop.stop();
        assert_eq!(killed.join().unwrap().unwrap_err(), CollectiveError::Interrupted);
        let ranks = [1, 2].map(|rank| {
            let config = config(&place, rank, 3, LONG);
            scope.spawn(move || meet(config).map(drop))
        });
        ranks.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        hub.join().unwrap().unwrap();
    });
}

/// A rank of another version that has the secret.
#[test]
fn a_rank_of_another_version_is_named_at_both_ends() {
    let (listener, place) = tcp();
    let error = scope(|scope| {
        let hub = scope.spawn(|| meet(rank_0(listener, &place, LONG)).unwrap_err());
        let mut other = TcpStream::connect(("127.0.0.1", port_of(&place))).unwrap();
        let mut greeting = [0; GREETING_BYTES];
        other.read_exact(&mut greeting).unwrap();
        let token = Token::from_text("secret");
        let rank_0 = Greeting::from_bytes(&greeting).unwrap();
        let answer =
            Exchange { token: &token, rank_0, other: Greeting::new(VERSION + 1).unwrap() }.answer();
        other.write_all(&answer).unwrap();
        hub.join().unwrap()
    });
    assert_eq!(error, CollectiveError::Version { theirs: VERSION + 1, ours: VERSION });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = at_port(listener.local_addr().unwrap().port());
    let error = scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&Greeting::new(VERSION + 1).unwrap().to_bytes()).unwrap();
            let mut answer = [0; ANSWER_BYTES];
            stream.read_exact(&mut answer).unwrap();
        });
        meet(rank_1(&place)).unwrap_err()
    });
    assert_eq!(error, CollectiveError::Version { theirs: VERSION, ours: VERSION + 1 });
}

#[test]
fn ranks_of_different_jobs_or_numbers_of_ranks_are_refused() {
    let (theirs, ours) = ("wrr".to_owned(), "job".to_owned());
    let differs = CollectiveError::Differs { rank: 1, theirs, ours };
    let other_world = CollectiveError::OtherWorld { rank: 1, theirs: 3, ranks: 2 };
    for (job, ranks, expected) in [("wrr", 2, differs), ("job", 3, other_world)] {
        let (listener, place) = tcp();
        let second = RendezvousConfig { job: job.to_owned(), ranks, ..rank_1(&place) };
        let errors = scope(|scope| {
            let waits = scope.spawn(|| meet(rank_0(listener, &place, LONG)).unwrap_err());
            [meet(second).unwrap_err(), waits.join().unwrap()]
        });
        assert_eq!(errors, [expected.clone(), expected]);
    }
}
