//! Which hosts a device admits: certificates and tokens.

use super::{Keys, TOKEN, host, loopback, network, remote, with_tls};
use crate::support::{jpeg, talk, write_dataset};
use meetpoint_device::{Error, Listen, Root, ServeOptions, probe};
use meetpoint_diagnose::Diagnose;
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::tls::keys::{Subject, Validity};
use meetpoint_link::{RemoteDevice, Target, TcpAddress, connect};
use std::path::Path;
use std::time::{Duration, SystemTime};

fn past() -> Validity {
    let day = Duration::from_secs(86_400);
    Validity { begin: SystemTime::now() - 3 * day, end: SystemTime::now() - 2 * day }
}

fn future() -> Validity {
    let day = Duration::from_secs(86_400);
    Validity { begin: SystemTime::now() + 2 * day, end: SystemTime::now() + 3 * day }
}

/// The message and remedy of a failed connection, and of a failed probe.
fn refused(device: RemoteDevice<TcpAddress>) -> String {
    let target = Target::Remote(Box::new(device));
    let error = talk(async { connect(&target).await.unwrap_err() });
    let remedy = error
        .remedy()
        .expect("there is something to do")
        .spelled(meetpoint_diagnose::Surface::CommandLine);
    let said = format!("{error}; {remedy}");
    assert!(!said.contains('\n'), "one line: {said}");
    let probed = probe(target).unwrap_err();
    assert!(matches!(probed, Error::Refused { .. } | Error::NoDevice { .. }), "{probed}");
    said
}

#[test]
fn ends_of_one_authority_trust_each_other_and_no_others() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let connects = |files| {
        let target = Target::Remote(Box::new(with_tls(&device, files)));
        talk(async { connect(&target).await.map(|_| ()) })
    };
    connects(keys.files("client")).unwrap();
    assert_eq!(
        probe(Target::Remote(Box::new(with_tls(&device, keys.files("client"))))).unwrap().roots,
        [Path::new("photos")]
    );
    let strangers = Keys::make();
    // The host does not trust the device, and the device not the host.
    let said = refused(with_tls(&device, strangers.files("client")));
    assert!(said.contains("its certificate is not signed by a CA that is trusted here"), "{said}");
    let mixed = TlsFiles { ca: keys.files("client").ca, ..strangers.files("client") };
    let said = refused(with_tls(&device, TlsFiles { crl: None, ..mixed }));
    assert!(said.contains("it did not accept the certificate"), "{said}");
    // A certificate for the other end of a connection.
    let said = refused(with_tls(&device, keys.files("server")));
    assert!(said.contains("it did not accept the certificate"), "{said}");
    // Without certificates, the remedy names them.
    let said = refused(remote(&device));
    assert!(said.contains("--device-keys"), "{said}");
    let probed = probe(Target::Remote(Box::new(remote(&device)))).unwrap_err();
    assert!(matches!(probed, Error::Refused { remedy: Some(_), .. }), "{probed:?}");
    let wrong = keys.serve("client");
    let said = refused(with_tls(&wrong, keys.files("client")));
    assert!(said.contains("its certificate"), "{said}");
    assert!(connects(keys.files("client")).is_ok(), "it still serves");
}

#[test]
fn certificates_out_of_their_time_are_refused_by_name() {
    let keys = Keys::make();
    let device = keys.serve("server");
    for (name, validity, what) in
        [("late", past(), "has expired"), ("early", future(), "it did not accept")]
    {
        keys.issue(&host(name), validity);
        let said = refused(with_tls(&device, keys.files(name)));
        assert!(said.contains(what) && said.contains("meetpoint device keys"), "{said}");
    }
    drop(device);
    for (validity, what) in [(past(), "has expired"), (future(), "is not valid yet")] {
        keys.issue(&keys.device(), validity);
        let device = keys.serve("server");
        let said = refused(with_tls(&device, keys.files("client")));
        assert!(said.contains(what) && said.contains("meetpoint device keys"), "{said}");
    }
}

#[test]
fn a_device_is_known_by_every_name_of_its_certificate() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let named = |name: &str| RemoteDevice {
        server_name: Some(name.to_owned()),
        ..with_tls(&device, keys.files("client"))
    };
    let target = Target::Remote(Box::new(named("csd.example")));
    talk(async { connect(&target).await.map(|_| ()) }).unwrap();
    for name in ["csd2.example", "127.0.0.2", "not a name"] {
        let said = refused(named(name));
        assert!(said.contains("is for another name"), "{said}");
    }
}

#[test]
fn ends_that_do_not_both_encrypt_are_refused() {
    let keys = Keys::make();
    // The host has no certificate, and does not encrypt.
    let device = keys.serve("server");
    let said = refused(remote(&device));
    assert!(said.contains("only TLS"), "{said}");
    // The device does not encrypt.
    let plain = network(|_| ());
    let said = refused(with_tls(&plain, keys.files("client")));
    assert!(said.contains("does not speak TLS"), "{said}");
}

#[test]
fn new_certificates_are_used_without_a_restart_and_revoked_ones_refused() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let client = || with_tls(&device, keys.files("client"));
    let connects = || {
        let target = Target::Remote(Box::new(client()));
        talk(async { connect(&target).await.map(|_| ()) })
    };
    connects().unwrap();
    let [old, _] = keys.issue(&host("old"), Validity::days(1));
    keys.authority.revoke(&[old]).unwrap();
    connects().unwrap();
    let said = refused(with_tls(&device, keys.files("old")));
    assert!(said.contains("revoked"), "{said}");
    // The device's certificate is replaced: by one for another name, then by a valid one.
    keys.issue(&Subject::Device { hosts: vec!["elsewhere".to_owned()] }, Validity::days(1));
    assert!(refused(client()).contains("another name"));
    keys.issue(&keys.device(), Validity::days(1));
    connects().unwrap();
    // With a damaged file, the device refuses every host until the file is repaired.
    let path = keys.files("server").cert;
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, "damaged").unwrap();
    assert!(connects().is_err());
    std::fs::write(&path, whole).unwrap();
    connects().unwrap();
    // A host refuses a device that was revoked.
    keys.authority.revoke(&[path]).unwrap();
    assert!(refused(client()).contains("has been revoked"));
}

#[test]
fn files_that_cannot_be_used_are_errors_that_name_them() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let good = keys.files("client");
    let empty = keys.folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let other = keys.files("server").key;
    for (files, named) in [
        (TlsFiles { ca: empty.clone(), ..good.clone() }, "empty.pem"),
        (TlsFiles { cert: "/no/such/file".into(), ..good.clone() }, "/no/such/file"),
        (TlsFiles { key: good.cert.clone(), ..good.clone() }, "client.pem"),
        (TlsFiles { key: other, ..good.clone() }, "server.key"),
        (TlsFiles { crl: Some(empty), ..good }, "empty.pem"),
    ] {
        let said = refused(with_tls(&device, files.clone()));
        assert!(said.contains(named), "{said}");
        let options = |options: &mut ServeOptions| {
            options.listen = Listen::Tcp { address: loopback(), tls: Some(files) };
            options.roots[0].name = Some("a".to_owned());
        };
        let folder = tempfile::tempdir().unwrap();
        write_dataset(&folder.path().join("set"), vec![jpeg(0, 16)]);
        let mut given = ServeOptions::new("", vec![folder.path().to_path_buf()]);
        options(&mut given);
        let served = meetpoint_device::serve(given, |_| (), std::sync::Arc::default());
        assert!(matches!(served, Err(Error::Tls(_))), "{served:?}");
    }
}

#[test]
fn an_address_is_served_only_with_encryption_or_a_token_on_the_loopback_interface() {
    let folder = tempfile::tempdir().unwrap();
    write_dataset(&folder.path().join("set"), vec![jpeg(0, 16)]);
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let serve = |address: &str, token_file: Option<&Path>, name: Option<&str>| {
        let mut options = ServeOptions::new("", Vec::new());
        let name = name.map(str::to_owned);
        options.roots = vec![Root { name, folder: folder.path().to_path_buf() }];
        options.listen = Listen::Tcp { address: address.parse().unwrap(), tls: None };
        options.token_file = token_file.map(Path::to_path_buf);
        let error = meetpoint_device::serve(options, |_| (), std::sync::Arc::default());
        let error = error.unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
        error
    };
    for address in ["tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:0"] {
        let error = serve(address, Some(&token), Some("a"));
        assert!(matches!(error, Error::Cleartext { .. }), "{error}");
    }
    let error = serve("tcp://127.0.0.1:0", None, Some("a"));
    assert!(matches!(error, Error::NoToken { .. }), "{error}");
    let error = serve("tcp://127.0.0.1:0", Some(&token), None);
    assert!(matches!(error, Error::UnnamedRoot { .. }), "{error}");
    let error = serve("tcp://127.0.0.1:0", Some(&folder.path().join("none")), Some("a"));
    assert!(matches!(error, Error::Token(_)), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", taken.local_addr().unwrap());
    let error = serve(&address, Some(&token), Some("a"));
    assert!(matches!(error, Error::Listen { .. }), "{error}");
}

#[test]
fn calls_without_the_token_are_refused() {
    let device = network(|_| ());
    let other = device.folder.path().join("other");
    std::fs::write(&other, "another token of sixteen".replace(' ', "-")).unwrap();
    let with = |token_file| {
        probe(Target::Remote(Box::new(RemoteDevice { token_file, ..remote(&device) })))
    };
    assert!(with(Some(device.folder.path().join("token"))).is_ok());
    for (token_file, what) in [(None, "the call has none"), (Some(other), "another token")] {
        let error = with(token_file).unwrap_err();
        let Error::Refused { reason, remedy, .. } = &error else { panic!("{error}") };
        assert!(reason.contains(what) && remedy.is_some(), "{error}");
    }
    assert_eq!(device.stop().jobs, 0);
}
