//! The contract of stores, on objects of a server of this machine.

use crate::web::Web;
use meetpoint_datasets::source::find;
use meetpoint_datasets::store::RemoteOptions;

#[path = "../../../datasets/tests/stores/contract.rs"]
mod stores;

#[test]
fn objects_fulfil_the_contract_of_stores() {
    let web = Web::start();
    for (name, bytes) in stores::files() {
        web.put(&format!("/far/down/{name}"), bytes);
    }
    let cache = tempfile::tempdir().unwrap();
    let all: usize = stores::files().iter().map(|(_, bytes)| bytes.len()).sum();
    let options = RemoteOptions {
        cache: Some(cache.path().to_path_buf()),
        cache_bytes: all as u64,
        ..RemoteOptions::default()
    };
    let url = format!("{}/far/down/", web.url);
    stores::check(&find(url.as_ref(), &options).unwrap());
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0, "it goes with the store");
}
