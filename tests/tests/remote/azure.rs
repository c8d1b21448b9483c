//! An Azure server (Azurite) on this machine, where `MEETPOINT_TEST_AZURITE` names the folder that
//! npm installed it in; scripts/remote.sh does.

use crate::support::{CACHE, assert_same, pack_here, pictures, program, run};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The account that every Azurite has, and its key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Creates a container with the files of a folder.
const UPLOAD: &str = r#"
const [endpoint, account, key, folder] = process.argv.slice(1);
const blob = require("@azure/storage-blob"), fs = require("fs"), path = require("path");
const credential = new blob.StorageSharedKeyCredential(account, key);
const service = new blob.BlobServiceClient(endpoint, credential);
(async () => {
  const container = service.getContainerClient("photos");
  await container.create();
  for (const name of fs.readdirSync(folder, { recursive: true })) {
    const file = path.join(folder, name);
    if (fs.statSync(file).isFile())
      await container.getBlockBlobClient("all/" + name).uploadData(fs.readFileSync(file));
  }
})().catch((error) => { console.error(error); process.exit(1); });
"#;

struct Azurite {
    process: Child,
    endpoint: String,
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Azurite {
    fn start(installed: &Path, place: &Path) -> Self {
        let script = installed.join("node_modules/azurite/dist/src/blob/main.js");
        let mut command = Command::new("node");
        command.arg(script).args(["--blobPort", "0", "--skipApiVersionCheck"]);
        // Otherwise it reports its use to its vendor.
        command.arg("--disableTelemetry").arg("--location").arg(place).stdout(Stdio::piped());
        let mut process = command.spawn().expect("node starts");
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut lines = said.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("successfully listen"));
        let line = line.expect("Azurite listens");
        let at = line.find("http://").expect("it says where");
        let endpoint = format!("{}/{ACCOUNT}", line[at..].trim());
        // Its later output is ignored, but must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, endpoint }
    }
}

#[test]
fn a_container_packs_to_the_same_bytes_as_the_folder_that_it_was_made_of() {
    let Some(installed) = std::env::var_os("MEETPOINT_TEST_AZURITE").map(PathBuf::from) else {
        println!("skipped: MEETPOINT_TEST_AZURITE names no Azurite");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let here = pictures(&folder.path().join("all"), 12);
    pack_here(folder.path(), &here, "here.set", &[]);
    let server = Azurite::start(&installed, &folder.path().join("azurite"));
    let upload = Command::new("node")
        .current_dir(&installed)
        .args(["-e", UPLOAD, "--", &server.endpoint, ACCOUNT, KEY])
        .arg(&here)
        .status();
    assert!(upload.unwrap().success());
    let pack = |to: &str, key: &str| {
        let arguments = [&["pack", "az://photos/all", to], CACHE.as_slice()].concat();
        let mut command = program(folder.path(), &arguments);
        command.env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT);
        command.env("AZURE_STORAGE_ACCOUNT_KEY", key);
        command.env("AZURE_STORAGE_ENDPOINT", &server.endpoint);
        run(command)
    };
    pack("there.set", KEY).success();
    assert_same(folder.path(), "here.set", "there.set");
    let wrong = KEY.replace("Eby8", "Ebz8");
    pack("no.set", &wrong).refused(&["az://photos/all", "HTTP status 403", "AZURE_STORAGE"]);
}
