//! Verifies the checksums of a datadings file and its side files.

use super::index::{Index, Keys, Words, beside};
use crate::Error;
use crate::source::arrow::plain_name;
use crate::source::rows::malformed;
use crate::source::rows::table::{open_file, unreadable};
use crate::store::StorePath;
use blake2::digest::consts::U32;
use blake2::{Blake2sMac, digest::Mac};
use md5::{Digest, Md5};
use std::io::Read;

/// Longest `.md5` file.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// The numbers of verified checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Files whose MD5 was compared.
    pub files: u64,
    /// Keys whose hash was compared.
    pub keys: u64,
}

/// Compares the MD5 of each file that `X.msgpack.md5` lists, and the hash of each key with
/// `X.msgpack.key_hashes`; a missing side file is skipped, as the counts in the result show.
pub fn verify(path: &StorePath) -> Result<Verified, Error> {
    let (_, bytes) = open_file(path)?;
    // Offsets that do not ascend within the file are errors of the index.
    let mut index = Index::open(path, bytes)?;
    while index.next()?.is_some() {}
    let files = verify_md5(path)?;
    let keys = verify_keys(path)?;
    Ok(Verified { files, keys })
}

fn verify_md5(path: &StorePath) -> Result<u64, Error> {
    let list_path = beside(path, "md5");
    if !list_path.exists() {
        return Ok(0);
    }
    let failed = |error| unreadable(&list_path, error);
    let file = list_path.open().map_err(failed)?;
    let mut list = String::new();
    file.take(LIST_BYTES_MAX).read_to_string(&mut list).map_err(failed)?;
    let folder = path.folder();
    let mut files = 0;
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let (stored, name) = line.split_once("  ").ok_or_else(|| {
            malformed(&list_path, None, format!("has {line:?} where `md5  name` is expected"))
        })?;
        let file_path = folder.join(plain_name(&list_path, name.trim())?);
        let mut file = file_path.open().map_err(|error| unreadable(&file_path, error))?;
        let mut digest = Md5::new();
        let mut chunk = vec![0; 1 << 20];
        loop {
            let count = file.read(&mut chunk).map_err(|error| unreadable(&file_path, error))?;
            if count == 0 {
                break;
            }
            digest.update(&chunk[..count]);
        }
        let got: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if !got.eq_ignore_ascii_case(stored) {
            let problem = format!("MD5 {stored} is listed, the file gives {got}; it is damaged");
            return Err(malformed(&file_path, None, problem));
        }
        files += 1;
    }
    Ok(files)
}

/// `.key_hashes`: a salt of 8 bytes, then for each key the first 8 bytes of its salted BLAKE2s.
fn verify_keys(path: &StorePath) -> Result<u64, Error> {
    let (hashes_path, keys_path) = (beside(path, "key_hashes"), beside(path, "keys"));
    if !hashes_path.exists() || !keys_path.exists() {
        return Ok(0);
    }
    let (_, bytes) = open_file(&hashes_path)?;
    let mut keys = Keys::open(&keys_path)?;
    let count = keys.left;
    if bytes != 8 + count * 8 {
        let problem = format!("has {bytes} bytes, and {count} keys need {}", 8 + count * 8);
        return Err(malformed(&hashes_path, None, problem));
    }
    let mut words = Words::open(&hashes_path)?;
    let salt = words.next()?.to_be_bytes();
    for number in 0..count {
        let key = keys.next()?;
        let got = key_hash(&salt, &key);
        let stored = words.next()?;
        if got != stored {
            let problem = format!("hash {stored:016x} of key {number}, {key:?} gives {got:016x}");
            return Err(malformed(&hashes_path, Some(8 + number * 8), problem));
        }
    }
    Ok(count)
}

/// The first 8 bytes of the salted BLAKE2s of a key.
fn key_hash(salt: &[u8; 8], key: &str) -> u64 {
    let mac = Blake2sMac::<U32>::new_with_salt_and_personal(None, salt, &[]);
    let mut mac = mac.expect("a salt of eight bytes and no key are allowed");
    mac.update(key.as_bytes());
    let hash = mac.finalize().into_bytes();
    u64::from_be_bytes(hash[..8].try_into().expect("a hash has 32 bytes"))
}
