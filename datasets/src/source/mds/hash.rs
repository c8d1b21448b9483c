//! Checksums of shards, by their names in Python's `hashlib` and `xxhash`.

use std::hash::Hasher;
use std::io::Read;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The checksum of all bytes of `from` in hexadecimal; `None` for an unknown algorithm.
pub(super) fn hash(algorithm: &str, from: &mut dyn Read) -> std::io::Result<Option<String>> {
    Ok(match algorithm {
        "md5" => Some(digest::<md5::Md5>(from)?),
        "sha1" => Some(digest::<sha1::Sha1>(from)?),
        "sha224" => Some(digest::<sha2::Sha224>(from)?),
        "sha256" => Some(digest::<sha2::Sha256>(from)?),
        "sha384" => Some(digest::<sha2::Sha384>(from)?),
        "sha512" => Some(digest::<sha2::Sha512>(from)?),
        "blake2b" => Some(digest::<blake2::Blake2b512>(from)?),
        "blake2s" => Some(digest::<blake2::Blake2s256>(from)?),
        "xxh32" => {
            let mut hasher = twox_hash::XxHash32::with_seed(0);
            feed(from, |bytes| hasher.write(bytes))?;
            Some(format!("{:08x}", hasher.finish_32()))
        }
        "xxh64" => {
            let mut hasher = twox_hash::XxHash64::with_seed(0);
            feed(from, |bytes| hasher.write(bytes))?;
            Some(format!("{:016x}", hasher.finish()))
        }
        "xxh3_64" => {
            let mut hasher = twox_hash::XxHash3_64::new();
            feed(from, |bytes| hasher.write(bytes))?;
            Some(format!("{:016x}", hasher.finish()))
        }
        "xxh128" | "xxh3_128" => {
            let mut hasher = twox_hash::XxHash3_128::new();
            feed(from, |bytes| hasher.write(bytes))?;
            Some(format!("{:032x}", hasher.finish_128()))
        }
        _ => None,
    })
}

fn digest<D: sha2::Digest>(from: &mut dyn Read) -> std::io::Result<String> {
    let mut digest = D::new();
    feed(from, |bytes| digest.update(bytes))?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn feed(from: &mut dyn Read, mut take: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// Python: `hashlib.new(name, b"abc").hexdigest()`, `xxhash.xxh64(b"abc").hexdigest()`, ….
    #[test]
    fn checksums_are_those_of_python() {
        let of = |name: &str| hash(name, &mut &b"abc"[..]).unwrap();
        assert_eq!(of("md5").unwrap(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(of("sha1").unwrap(), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(of("xxh32").unwrap(), "32d153ff");
        assert_eq!(of("xxh64").unwrap(), "44bc2cf5ad770999");
        assert_eq!(of("xxh3_64").unwrap(), "78af5f94892f3950");
        assert_eq!(of("xxh128").unwrap(), "06b05ab6733a618578af5f94892f3950");
        assert_eq!(of("sha3_256"), None);
    }
}
