//! `meetpoint device keys`: certificates for devices and hosts of a network.

use crate::surface::Output;
use meetpoint_diagnose::shown;
use std::path::PathBuf;

/// Make certificates for devices and hosts that connect over a network.
///
/// The first call creates a certificate authority in the folder: ca.pem, ca.key, and crl.pem, the
/// list of revoked certificates. Give ca.pem, crl.pem, server.pem and server.key to the device,
/// ca.pem, crl.pem, client.pem and client.key to the host, and keep ca.key in a safe place. --force
/// replaces certificates of the same name; a running device uses new files from the next connection
/// on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device keys keys --server csd.local --server 10.0.0.7 --client client
  meetpoint device keys keys --server csd.local --days 90 --force
  meetpoint device keys keys --revoke keys/client.pem")]
pub(crate) struct Arguments {
    /// Folder of the authority and the certificates; created if it does not exist.
    folder: PathBuf,
    /// Host name or IP address under which hosts reach the device; may be given several times.
    /// Writes server.pem and server.key.
    #[arg(long = "server", value_name = "HOST")]
    servers: Vec<String>,
    /// Name of a host. Writes NAME.pem and NAME.key; may be given several times.
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<String>,
    /// Revoke this certificate, and write crl.pem; may be given several times.
    #[arg(long = "revoke", value_name = "FILE")]
    revoked: Vec<PathBuf>,
    /// Days until the certificates expire, up to 3650.
    #[arg(long, value_name = "N", default_value_t = 365,
          value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Replace certificates that exist.
    #[arg(long)]
    force: bool,
}

#[cfg(not(feature = "tls"))]
pub(super) fn run(arguments: &Arguments, _: Output) -> anyhow::Result<()> {
    let Arguments { folder, servers, clients, revoked, days, force } = arguments;
    let wanted = servers.len() + clients.len() + revoked.len();
    let message = format!(
        "this program was built without TLS (feature `tls`), so {wanted} certificates for {days} \
         days {} in {}",
        if *force { "cannot be replaced" } else { "cannot be made" },
        shown(folder)
    );
    let remedy = meetpoint_link::tls::TlsError::NotBuilt.remedy();
    Err(crate::surface::fault::Fault::new("tls_not_built", message, remedy).into())
}

#[cfg(feature = "tls")]
pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    use crate::surface::fault::Fault;
    use meetpoint_link::tls::keys::{Authority, KeysError, Subject, Validity};

    let Arguments { folder, servers, clients, revoked, days, force } = arguments;
    if servers.is_empty() && clients.is_empty() && revoked.is_empty() {
        let remedy = "add --server HOST, --client NAME or --revoke FILE";
        return Err(Fault::usage("there is nothing to make", remedy).into());
    }
    let fault = |error: KeysError| Fault::of(&error);
    let authority = Authority::open_or_make(folder).map_err(fault)?;
    let devices = (!servers.is_empty()).then(|| Subject::Device { hosts: servers.clone() });
    let hosts = clients.iter().map(|name| Subject::Host { name: name.clone() });
    let of_authority = ["ca.pem", "ca.key", "crl.pem"].map(|name| folder.join(name));
    let mut issued_files = Vec::new();
    for subject in devices.into_iter().chain(hosts) {
        let issued = authority.issue(&subject, Validity::days(*days), *force);
        issued_files.extend(issued.map_err(fault)?);
    }
    if !revoked.is_empty() {
        authority.revoke(revoked).map_err(fault)?;
    }
    let files: Vec<PathBuf> =
        of_authority.into_iter().filter(|file| file.exists()).chain(issued_files).collect();
    output.result(&serde_json::json!({ "files": files }), || {
        let names = files.iter().map(|file| shown(file).to_string());
        names.collect::<Vec<_>>().join("\n")
    })
}
