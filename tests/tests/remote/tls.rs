//! Certificates: a server whose issuer the system trusts is read, another one is not.

use crate::support::{CACHE, assert_same, golden, pack_here, program, run};
use crate::web::Web;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;

/// A server for `localhost` with a certificate of an issuer of its own, and that in PEM.
fn server() -> (Web, String) {
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer_key = KeyPair::generate().unwrap();
    let trusted = issuer.self_signed(&issuer_key).unwrap().pem();
    let issuer = Issuer::new(issuer, issuer_key);

    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (Web::start_tls(Arc::new(config)), trusted)
}

#[test]
fn a_server_is_read_by_https_where_its_issuer_is_trusted_and_refused_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (web, trusted) = server();
    web.put("/d/a.tar", std::fs::read(golden("wds-000.tar")).unwrap());
    std::fs::write(folder.path().join("issuer.pem"), trusted).unwrap();
    pack_here(folder.path(), &golden("wds-000.tar"), "here.set", &[]);
    let url = format!("{}/d/a.tar", web.url);
    let pack = |to: &str, issuers: &str| {
        let arguments = [&["pack", &url, to], CACHE.as_slice()].concat();
        let mut command = program(folder.path(), &arguments);
        command.env("SSL_CERT_FILE", folder.path().join(issuers)).env_remove("SSL_CERT_DIR");
        run(command)
    };
    pack("there.set", "issuer.pem").success();
    assert_same(folder.path(), "here.set", "there.set");

    let (_, other) = server();
    std::fs::write(folder.path().join("other.pem"), other).unwrap();
    pack("no.set", "other.pem").refused(&["/d/a.tar", "certificate"]);
    assert!(!folder.path().join("no.set").exists());
    web.state().requests.clear();
    // Without TLS, the same port answers no request.
    let plain = url.replace("https://", "http://");
    let arguments = [&["pack", plain.as_str(), "no.set"], CACHE.as_slice()].concat();
    run(program(folder.path(), &arguments)).refused(&["/d/a.tar"]);
    assert!(web.state().requests.is_empty());
}
