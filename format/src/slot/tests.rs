//! A header reads back, and nothing else than a whole header is taken for one.

use super::{HEADER_BYTES, SlotError, SlotExpectation, SlotHeader, VERSION, slot_bytes};
use crate::checksum::crc32c;
use crate::golden;
use crate::recipe::{Dtype, RecipeHash};
use proptest::prelude::*;

/// The header of tests/golden/formats.py.
fn header() -> SlotHeader {
    SlotHeader {
        epoch: 5,
        batch: 4711,
        generation: 2,
        seed: 0x0123_4567_89ab_cdef,
        recipe: RecipeHash(std::array::from_fn(|at| at as u8)),
        dtype: Dtype::Float32,
        shape: [2, 3, 224, 192],
        payload_bytes: 2 * 3 * 224 * 192 * 4,
        payload_crc32c: 0xdead_beef,
    }
}

fn expectation() -> SlotExpectation {
    let SlotHeader { epoch, batch, generation, seed, recipe, dtype, shape, .. } = header();
    SlotExpectation { epoch, batch, generation, seed, recipe, dtype, shape }
}

/// A header with one 32-bit field replaced and its checksum made right again.
fn forged(at: usize, value: u32) -> Box<[u8; HEADER_BYTES]> {
    let mut bytes = header().encode();
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let checksum = crc32c(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn the_bytes_equal_those_computed_from_the_documentation() {
    let bytes = header().encode();
    let (_, words) = &golden::lines("slot")[0];
    assert_eq!(bytes[..96], golden::bytes(words[0]));
    assert!(bytes[96..HEADER_BYTES - 4].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[HEADER_BYTES - 4..], golden::bytes(words[1]));
}

#[test]
fn every_flipped_bit_of_a_header_is_found() {
    let mut bytes = header().encode();
    for bit in 0..HEADER_BYTES * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(SlotHeader::decode(&bytes[..]).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(SlotHeader::decode(&bytes[..]), Ok(header()));
}

#[test]
fn a_header_torn_between_any_two_sectors_is_found() {
    let old = SlotHeader { epoch: 4, ..header() }.encode();
    let new = header().encode();
    for sector in 1..HEADER_BYTES / 512 {
        let tear = sector * 512;
        for (first, second) in [(&old, &new), (&new, &old)] {
            let torn = [&first[..tear], &second[tear..]].concat();
            let error = SlotHeader::decode(&torn).unwrap_err();
            assert!(matches!(error, SlotError::HeaderChecksum { .. }), "{tear}: {error}");
        }
    }
}

#[test]
fn a_header_cut_short_says_so() {
    let bytes = header().encode();
    for got in [0, 1, 8, HEADER_BYTES - 1] {
        assert_eq!(SlotHeader::decode(&bytes[..got]), Err(SlotError::Short { got }));
    }
}

#[test]
fn an_empty_place_is_no_header() {
    assert_eq!(SlotHeader::decode(&[0; HEADER_BYTES]), Err(SlotError::Magic { got: 0 }));
}

#[test]
fn another_version_is_refused_as_such() {
    let error = SlotHeader::decode(&forged(8, VERSION + 1)[..]).unwrap_err();
    assert_eq!(error, SlotError::Version { got: VERSION + 1, expected: VERSION });
}

#[test]
fn an_unknown_dtype_and_a_used_reserve_are_refused_though_the_checksum_holds() {
    let name = |bytes: Box<[u8; HEADER_BYTES]>| match SlotHeader::decode(&bytes[..]) {
        Err(SlotError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(forged(12, 0)), "dtype");
    assert_eq!(name(forged(12, 4)), "dtype");
    assert_eq!(name(forged(96, 1)), "reserved area");
    assert_eq!(name(forged(HEADER_BYTES - 8, 1)), "reserved area");
}

#[test]
fn every_field_is_held_against_the_grant() {
    header().check(&expectation()).unwrap();
    let wrong = [
        ("epoch", SlotHeader { epoch: 6, ..header() }),
        ("batch", SlotHeader { batch: 4712, ..header() }),
        ("generation", SlotHeader { generation: 1, ..header() }),
        ("seed", SlotHeader { seed: 0, ..header() }),
        ("recipe", SlotHeader { recipe: RecipeHash([0; 32]), ..header() }),
        ("dtype", SlotHeader { dtype: Dtype::Float16, ..header() }),
        ("shape", SlotHeader { shape: [2, 3, 192, 224], ..header() }),
        ("payload_bytes", SlotHeader { payload_bytes: 0, ..header() }),
    ];
    for (name, header) in wrong {
        match header.check(&expectation()) {
            Err(SlotError::Field { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn an_absurd_shape_is_refused_without_overflow() {
    let shape = [u32::MAX; 4];
    let expected = SlotExpectation { shape, ..expectation() };
    assert_eq!(expected.payload_bytes(), None);
    let error = SlotHeader { shape, ..header() }.check(&expected).unwrap_err();
    assert!(matches!(error, SlotError::Field { field: "payload_bytes", .. }), "{error}");
    let empty = SlotExpectation { shape: [u32::MAX, u32::MAX, u32::MAX, 0], ..expectation() };
    assert_eq!(empty.payload_bytes(), Some(0));
}

#[test]
fn the_payload_is_held_against_length_and_checksum() {
    let payload = b"123456789";
    let header = SlotHeader { payload_bytes: 9, payload_crc32c: 0xe306_9283, ..header() };
    header.check_payload(payload).unwrap();
    let flipped = header.check_payload(b"123456788").unwrap_err();
    assert!(matches!(flipped, SlotError::PayloadChecksum { expected: 0xe306_9283, .. }));
    let short = header.check_payload(&payload[..8]).unwrap_err();
    assert_eq!(short.to_string(), "slot payload_bytes is 8, expected 9");
}

#[test]
fn a_slot_is_a_header_and_whole_blocks() {
    assert_eq!(slot_bytes(0), 4096);
    assert_eq!(slot_bytes(1), 8192);
    assert_eq!(slot_bytes(4096), 8192);
    assert_eq!(slot_bytes(4097), 12288);
    assert_eq!(slot_bytes(u64::MAX), u64::MAX);
    assert_eq!(slot_bytes(u64::MAX - 4095), u64::MAX);
}

fn any_header() -> impl Strategy<Value = SlotHeader> {
    let dtypes = vec![Dtype::Uint8, Dtype::Float16, Dtype::Float32];
    let numbers = (any::<[u32; 4]>(), any::<[u32; 4]>(), any::<[u64; 2]>());
    (numbers, any::<[u8; 32]>(), proptest::sample::select(dtypes)).prop_map(
        |((small, shape, [seed, payload_bytes]), recipe, dtype)| {
            let [epoch, batch, generation, payload_crc32c] = small;
            SlotHeader {
                epoch,
                batch,
                generation,
                seed,
                recipe: RecipeHash(recipe),
                dtype,
                shape,
                payload_bytes,
                payload_crc32c,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_header_reads_back(header in any_header()) {
        prop_assert_eq!(SlotHeader::decode(&header.encode()[..]), Ok(header));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..2 * HEADER_BYTES),
    ) {
        prop_assert!(SlotHeader::decode(&bytes).is_err());
    }

    /// Random bytes behind a right magic, version and checksum: the fields themselves are hostile.
    #[test]
    fn hostile_fields_never_panic(
        body in proptest::collection::vec(any::<u8>(), 84), code in 0u32..5,
    ) {
        let mut bytes = header().encode();
        bytes[12..96].copy_from_slice(&body);
        bytes[12..16].copy_from_slice(&code.to_le_bytes());
        let checksum = crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        let decoded = SlotHeader::decode(&bytes[..]);
        prop_assert_eq!(decoded.is_ok(), (1..=3).contains(&code));
        if let Ok(header) = decoded {
            prop_assert!(header.check(&expectation()).is_err());
            prop_assert!(header.check_payload(b"123456789").is_err());
        }
    }
}
