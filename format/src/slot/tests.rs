//! A header reads back, and only a whole header of the expected batch is accepted.

use super::{
    ColumnField, HEADER_BYTES, SlotColumn, SlotError, SlotExpectation, SlotField, SlotHeader,
    VERSION, slot_bytes,
};
use crate::checksum::crc32c;
use crate::column::{
    BatchColumns, BatchLayout, COLUMNS_MAX, Column, ColumnKind, ColumnSource, ContentError,
    ElementType, Extent, VARIES,
};
use crate::golden;
use crate::recipe::{Dtype, Layout, Recipe, RecipeHash, TensorSpec};
use proptest::prelude::*;

/// The columns of tests/golden/formats.py.
fn columns() -> BatchColumns {
    let spec = TensorSpec {
        height: 224,
        width: 192,
        channels: 3,
        dtype: Dtype::Float32,
        layout: Layout::Nchw,
    };
    let boxes = Column {
        name: "boxes".to_owned(),
        kind: ColumnKind::Ragged { element: ElementType::Float32, inner: vec![4] },
        source: ColumnSource::Further(0),
    };
    BatchColumns::new(vec![Column::image(&spec), Column::key(), boxes, Column::label()]).unwrap()
}

/// Rows of the columns of variable length there.
fn rows(column: usize) -> u64 {
    [2, 11, 5, 2][column]
}

/// The header of tests/golden/formats.py.
fn header() -> SlotHeader {
    let columns = columns();
    let layout = BatchLayout::new(&columns, 2, rows).unwrap();
    let checksums = [0xdead_beef, 1, 2, 3];
    let entries = columns.as_slice().iter().enumerate().zip(checksums);
    let entry = |((index, column), crc32c)| SlotColumn::new(column, index, &layout, crc32c);
    SlotHeader {
        epoch: 5,
        batch: 4711,
        generation: 2,
        samples: 2,
        seed: 0x0123_4567_89ab_cdef,
        recipe: RecipeHash(std::array::from_fn(|at| at as u8)),
        payload_bytes: layout.bytes(),
        columns: entries.map(entry).collect(),
    }
}

fn expectation(columns: &BatchColumns) -> SlotExpectation<'_> {
    let SlotHeader { epoch, batch, generation, samples, seed, recipe, .. } = header();
    let payload_bytes_max = 2 << 20;
    SlotExpectation { epoch, batch, generation, samples, seed, recipe, columns, payload_bytes_max }
}

/// A header with some bytes replaced and its checksum corrected.
fn forged(at: usize, value: &[u8]) -> Box<[u8; HEADER_BYTES]> {
    let mut bytes = header().encode();
    bytes[at..at + value.len()].copy_from_slice(value);
    let checksum = crc32c(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn the_bytes_equal_those_computed_from_the_documentation() {
    let bytes = header().encode();
    let (_, words) = &golden::lines("slot")[0];
    assert_eq!(bytes[..384], golden::bytes(words[0]));
    assert!(bytes[384..HEADER_BYTES - 4].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[HEADER_BYTES - 4..], golden::bytes(words[1]));
}

/// Columns of two padded pictures with masks of objects, and their header.
fn padded() -> (BatchColumns, SlotHeader) {
    let spec = TensorSpec {
        height: VARIES,
        width: VARIES,
        channels: 3,
        dtype: Dtype::Uint8,
        layout: Layout::Nhwc,
    };
    let ColumnKind::Tensor { element, shape: axes } = Column::image(&spec).kind else { panic!() };
    let masks = Column {
        name: "masks".to_owned(),
        kind: ColumnKind::PaddedRagged { element: ElementType::Uint8, inner: vec![VARIES; 2] },
        source: ColumnSource::Target(0),
    };
    let image = Column { kind: ColumnKind::Padded { element, axes }, ..Column::image(&spec) };
    let recipe = Recipe::from_toml("operation = [{name = 'decode'}]").unwrap();
    let images = &recipe.images()[0];
    let columns = vec![image, Column::size_of(0, images), Column::padding_of(0, images), masks];
    let columns = BatchColumns::new(columns).unwrap();
    let axes = |index: usize| match index {
        0 => [10, 9, 3, 0, 0, 0],
        1 => [2, 0, 0, 0, 0, 0],
        _ => [10, 9, 0, 0, 0, 0],
    };
    let layout = BatchLayout::with_axes(&columns, 2, |_| 3, axes).unwrap();
    let entries = (1..)
        .zip(columns.as_slice())
        .map(|(crc32c, column)| SlotColumn::new(column, crc32c as usize - 1, &layout, crc32c));
    let header =
        SlotHeader { payload_bytes: layout.bytes(), columns: entries.collect(), ..header() };
    (columns, header)
}

/// The same pictures without padding.
fn listed() -> (BatchColumns, SlotHeader) {
    let column = |name: &str, axes: &[u32], source| {
        let (name, axes) = (name.to_owned(), axes.to_vec());
        Column { name, kind: ColumnKind::Shaped { element: ElementType::Uint8, axes }, source }
    };
    let image = column("image", &[VARIES, VARIES, 3], ColumnSource::Image);
    let masks = column("masks", &[VARIES; 3], ColumnSource::Target(0));
    let columns = BatchColumns::new(vec![image, masks]).unwrap();
    let rows = |index: usize| [(60 + 63) * 3, 60 + 2 * 63][index];
    let layout = BatchLayout::new(&columns, 2, rows).unwrap();
    let entries = (1..)
        .zip(columns.as_slice())
        .map(|(crc32c, column)| SlotColumn::new(column, crc32c as usize - 1, &layout, crc32c));
    let header =
        SlotHeader { payload_bytes: layout.bytes(), columns: entries.collect(), ..header() };
    (columns, header)
}

#[test]
fn headers_of_pictures_of_different_sizes_equal_those_computed_from_the_documentation() {
    for (kind, (columns, header)) in [("slot_padded", padded()), ("slot_listed", listed())] {
        let bytes = header.encode();
        let (_, words) = &golden::lines(kind)[0];
        let start = golden::bytes(words[0]);
        assert_eq!(bytes[..start.len()], start, "{kind}");
        assert_eq!(bytes[HEADER_BYTES - 4..], golden::bytes(words[1]), "{kind}");
        header.check(&expectation(&columns)).unwrap();
    }
}

#[test]
fn lengths_of_padded_axes_are_those_of_the_slot_and_of_other_axes_those_of_the_job() {
    let (columns, header) = padded();
    let layout = header.check(&expectation(&columns)).unwrap();
    assert_eq!(layout.axes(&columns, 0), [10, 9, 3]);
    // A channel more, and one that no header has room for.
    for (index, axes) in [(0, [10, 9, 4, 0, 0, 0]), (1, [3, 0, 0, 0, 0, 0])] {
        let mut other = header.clone();
        other.columns[index].axes = axes;
        assert!(other.check(&expectation(&columns)).is_err(), "{index}");
    }
    // Larger than the bytes of the column, than the slot, and than 64 bits.
    for axes in [[10, 10], [60000, 60000], [u32::MAX, u32::MAX]] {
        let mut other = header.clone();
        (other.columns[0].axes[0], other.columns[0].axes[1]) = (axes[0], axes[1]);
        assert!(other.check(&expectation(&columns)).is_err(), "{axes:?}");
    }
}

#[test]
fn shapes_that_do_not_fit_their_elements_are_refused_though_the_checksums_are_right() {
    let column = Column {
        kind: ColumnKind::Shaped { element: ElementType::Uint8, axes: vec![VARIES, VARIES, 3] },
        ..Column::sample()
    };
    let columns = BatchColumns::new(vec![column]).unwrap();
    let layout = BatchLayout::new(&columns, 2, |_| 18).unwrap();
    let checked = |shapes: [i64; 6]| {
        let offsets = [0_i64, 6, 18].into_iter().chain(shapes);
        let mut payload: Vec<u8> = offsets.flat_map(i64::to_le_bytes).collect();
        payload.extend([7; 18]);
        let header = header_of(&columns, &layout, &payload);
        header.check_payload(&columns, &layout, &payload)
    };
    checked([1, 2, 3, 2, 2, 3]).unwrap();
    let hostile = [
        ([1, 3, 3, 2, 2, 3], 0),
        ([1, 2, 3, 2, 2, 2], 1),
        ([2, 3, 1, 2, 2, 3], 0),
        ([-1, -2, 3, 2, 2, 3], 0),
        ([1, 2, 3, i64::MAX, 2, 3], 1),
        ([1, 2, 3, 0, 0, 3], 1),
    ];
    for (shapes, wrong) in hostile {
        match checked(shapes) {
            Err(SlotError::Content { source: ContentError::Shape { index, .. }, .. }) => {
                assert_eq!(index, wrong, "{shapes:?}");
            }
            other => panic!("{shapes:?}: {other:?}"),
        }
    }
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
fn a_truncated_header_is_refused_with_its_length() {
    let bytes = header().encode();
    for got in [0, 1, 8, HEADER_BYTES - 1] {
        assert_eq!(SlotHeader::decode(&bytes[..got]), Err(SlotError::Short { got }));
    }
}

#[test]
fn an_empty_slot_has_no_header() {
    assert_eq!(SlotHeader::decode(&[0; HEADER_BYTES]), Err(SlotError::Magic { got: 0 }));
}

#[test]
fn another_version_is_refused_as_such() {
    for version in [VERSION - 1, VERSION + 1] {
        let error = SlotHeader::decode(&forged(8, &version.to_le_bytes())[..]).unwrap_err();
        assert_eq!(error, SlotError::Version { got: version, expected: VERSION });
    }
}

#[test]
fn too_many_columns_and_a_used_reserve_are_refused_though_the_checksum_is_right() {
    let name = |bytes: Box<[u8; HEADER_BYTES]>| match SlotHeader::decode(&bytes[..]) {
        Err(SlotError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(forged(12, &(COLUMNS_MAX as u32 + 1).to_le_bytes())), SlotField::Columns);
    assert_eq!(name(forged(12, &u32::MAX.to_le_bytes())), SlotField::Columns);
    assert_eq!(name(forged(12, &3_u32.to_le_bytes())), SlotField::Reserved);
    assert_eq!(name(forged(80, &[1])), SlotField::Reserved);
    assert_eq!(name(forged(384, &[1])), SlotField::Reserved);
    assert_eq!(name(forged(HEADER_BYTES - 5, &[1])), SlotField::Reserved);
    let most = COLUMNS_MAX as u32;
    let decoded = SlotHeader::decode(&forged(12, &most.to_le_bytes())[..]).unwrap();
    assert_eq!(decoded.columns.len(), COLUMNS_MAX);
    let columns = columns();
    assert!(decoded.check(&expectation(&columns)).is_err());
}

#[test]
fn every_field_is_compared_with_the_grant() {
    let columns = columns();
    let layout = header().check(&expectation(&columns)).unwrap();
    assert_eq!(layout, BatchLayout::new(&columns, 2, rows).unwrap());
    let wrong = [
        (SlotField::Epoch, SlotHeader { epoch: 6, ..header() }),
        (SlotField::Batch, SlotHeader { batch: 4712, ..header() }),
        (SlotField::Generation, SlotHeader { generation: 1, ..header() }),
        (SlotField::Seed, SlotHeader { seed: 0, ..header() }),
        (SlotField::Recipe, SlotHeader { recipe: RecipeHash([0; 32]), ..header() }),
        (SlotField::Samples, SlotHeader { samples: 3, ..header() }),
        (SlotField::Columns, SlotHeader { columns: Vec::new(), ..header() }),
        (SlotField::PayloadBytes, SlotHeader { payload_bytes: 0, ..header() }),
    ];
    for (name, header) in wrong {
        match header.check(&expectation(&columns)) {
            Err(SlotError::Field { field, .. }) => assert_eq!(field, name),
            other => panic!("{name:?}: {other:?}"),
        }
    }
    let small = SlotExpectation { payload_bytes_max: 1 << 20, ..expectation(&columns) };
    header().check(&small).unwrap();
    let smaller = SlotExpectation { payload_bytes_max: layout.bytes() - 1, ..small };
    let error = header().check(&smaller).unwrap_err();
    assert!(matches!(error, SlotError::Field { field: SlotField::PayloadBytes, .. }), "{error}");
}

#[test]
fn every_field_of_a_column_is_compared_with_its_declaration() {
    type Change = fn(&mut SlotColumn);
    let columns = columns();
    let changes: [(ColumnField, usize, Change); 11] = [
        (ColumnField::Name, 3, |it| it.name_crc32c ^= 1),
        (ColumnField::Kind, 1, |it| it.kind = 3),
        (ColumnField::Dtype, 3, |it| it.element = 10),
        (ColumnField::Axes, 0, |it| it.axes_count = 2),
        (ColumnField::Shape, 0, |it| it.axes.swap(1, 2)),
        (ColumnField::Shape, 3, |it| it.axes[5] = 1),
        (ColumnField::Rows, 3, |it| it.extent.rows += 1),
        // Into the column before it, or past the end.
        (ColumnField::Offset, 3, |it| it.extent.offset -= 64),
        (ColumnField::Offset, 0, |it| it.extent.offset = u64::MAX),
        (ColumnField::Bytes, 3, |it| it.extent.bytes += 1),
        (ColumnField::Bytes, 2, |it| it.extent.bytes = u64::MAX),
    ];
    for (name, index, change) in changes {
        let mut header = header();
        change(&mut header.columns[index]);
        match header.check(&expectation(&columns)) {
            Err(SlotError::Column { column, field, .. }) => {
                assert_eq!((&*column, field), (&*columns.as_slice()[index].name, name));
            }
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn impossible_numbers_of_rows_are_refused_without_overflow() {
    let columns = columns();
    for rows in [6, 1 << 40, u64::MAX / 16, u64::MAX] {
        let mut header = header();
        header.columns[2].extent.rows = rows;
        assert!(header.check(&expectation(&columns)).is_err(), "{rows}");
        // As consistent as it can be made.
        header.columns[2].extent.bytes = rows.wrapping_mul(16).wrapping_add(24);
        header.payload_bytes = header.columns[2].extent.offset;
        header.payload_bytes = header.payload_bytes.wrapping_add(header.columns[2].extent.bytes);
        let checked = header.check(&expectation(&columns));
        assert_eq!(checked.is_ok(), rows == 6, "{rows}: {checked:?}");
    }
}

/// Two samples with labels 7 and 8, and texts "ab" and "cde".
fn small() -> (BatchColumns, BatchLayout, Vec<u8>) {
    let columns = BatchColumns::new(vec![Column::label(), Column::key()]).unwrap();
    let layout = BatchLayout::new(&columns, 2, |_| 5).unwrap();
    let mut payload = vec![0; usize::try_from(layout.bytes()).unwrap()];
    payload[..8].copy_from_slice(&7_i64.to_le_bytes());
    payload[8..16].copy_from_slice(&8_i64.to_le_bytes());
    for (at, offset) in [0_i64, 2, 5].into_iter().enumerate() {
        payload[64 + 8 * at..][..8].copy_from_slice(&offset.to_le_bytes());
    }
    payload[88..93].copy_from_slice(b"abcde");
    (columns, layout, payload)
}

/// Its header, whose checksums are right.
fn header_of(columns: &BatchColumns, layout: &BatchLayout, payload: &[u8]) -> SlotHeader {
    let table = SlotHeader::table(columns, layout, payload);
    SlotHeader { payload_bytes: layout.bytes(), columns: table, ..header() }
}

#[test]
fn the_payload_is_compared_with_length_and_checksums() {
    let (columns, layout, payload) = small();
    let header = header_of(&columns, &layout, &payload);
    header.check_payload(&columns, &layout, &payload).unwrap();
    for (at, name) in [(0, "label"), (15, "label"), (64, "key"), (92, "key")] {
        let mut flipped = payload.clone();
        flipped[at] ^= 1;
        match header.check_payload(&columns, &layout, &flipped) {
            Err(SlotError::ColumnChecksum { column, .. }) => assert_eq!(column, name),
            other => panic!("{at}: {other:?}"),
        }
    }
    // Bytes between columns are never read.
    let mut padding = payload.clone();
    padding[20] = 1;
    header.check_payload(&columns, &layout, &padding).unwrap();
    let short = header.check_payload(&columns, &layout, &payload[..92]).unwrap_err();
    assert!(matches!(short, SlotError::Field { field: SlotField::PayloadBytes, .. }), "{short}");
}

#[test]
fn impossible_content_is_refused_though_the_checksums_are_right() {
    let (columns, layout, payload) = small();
    let refused = |offsets: [i64; 3], text: &[u8; 5]| {
        let mut payload = payload.clone();
        for (at, offset) in offsets.into_iter().enumerate() {
            payload[64 + 8 * at..][..8].copy_from_slice(&offset.to_le_bytes());
        }
        payload[88..93].copy_from_slice(text);
        let header = header_of(&columns, &layout, &payload);
        match header.check_payload(&columns, &layout, &payload) {
            Err(SlotError::Content { column, source }) => (column, source),
            other => panic!("{offsets:?}: {other:?}"),
        }
    };
    let hostile = [
        ([1, 2, 5], 0),
        ([-1, 2, 5], 0),
        ([0, 6, 5], 1),
        ([0, -2, 5], 1),
        ([0, i64::MAX, 5], 1),
        ([0, i64::MIN, 5], 1),
        ([0, 2, 4], 2),
        ([0, 2, 6], 2),
        ([0, 2, i64::MIN], 2),
    ];
    for (offsets, wrong) in hostile {
        let (column, error) = refused(offsets, b"abcde");
        assert_eq!(column, "key");
        assert!(matches!(error, ContentError::Offset { index, .. } if index == wrong), "{error}");
    }
    let (_, error) = refused([0, 2, 5], b"ab\xffde");
    assert_eq!(error, ContentError::Text { index: 1 });
    // UTF-8 as a whole, cut inside a character.
    let (_, error) = refused([0, 2, 5], "aßde".as_bytes().first_chunk().unwrap());
    assert_eq!(error, ContentError::Text { index: 0 });
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

fn any_column() -> impl Strategy<Value = SlotColumn> {
    let small = any::<([u32; 3], [u16; 2], [u32; 6])>();
    (small, any::<[u64; 3]>()).prop_map(
        |((words, [kind, element], axes), [offset, bytes, rows])| {
            let [name_crc32c, axes_count, crc32c] = words;
            let extent = Extent { offset, bytes, rows };
            SlotColumn { name_crc32c, kind, element, axes_count, axes, extent, crc32c }
        },
    )
}

fn any_header() -> impl Strategy<Value = SlotHeader> {
    let columns = proptest::collection::vec(any_column(), 0..=COLUMNS_MAX);
    (any::<[u32; 4]>(), any::<[u64; 2]>(), any::<[u8; 32]>(), columns).prop_map(
        |([epoch, batch, generation, samples], [seed, payload_bytes], recipe, columns)| {
            let recipe = RecipeHash(recipe);
            SlotHeader { epoch, batch, generation, samples, seed, recipe, payload_bytes, columns }
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

    /// The right numbers of the batch, and any table: no column is accepted elsewhere than where
    /// the layout has it.
    #[test]
    fn a_hostile_table_never_panics_and_is_never_accepted(
        hostile in proptest::collection::vec(any_column(), 4), payload_bytes: u64,
    ) {
        let columns = columns();
        let header = SlotHeader { columns: hostile, payload_bytes, ..header() };
        let decoded = SlotHeader::decode(&header.encode()[..]).unwrap();
        prop_assert!(decoded.check(&expectation(&columns)).is_err());
    }

    /// Any rows and bytes for the columns of variable length: what is accepted lies inside the
    /// payload, in the order of the layout, and does not overlap.
    #[test]
    fn accepted_columns_are_inside_the_payload_and_disjoint(
        rows in proptest::array::uniform2(0_u64..4000), bytes: [u64; 2], is_right: [bool; 2],
    ) {
        let columns = columns();
        let mut header = header();
        let layout = BatchLayout::new(&columns, 2, |index| rows[index - 1]).unwrap();
        for index in [1, 2] {
            header.columns[index].extent = layout.extent(index);
            if !is_right[index - 1] {
                header.columns[index].extent.bytes = bytes[index - 1];
            }
        }
        header.payload_bytes = layout.bytes();
        match header.check(&expectation(&columns)) {
            Ok(checked) => {
                prop_assert_eq!(&checked, &layout);
                let mut ends: Vec<(u64, u64)> =
                    checked.extents().iter().map(|it| (it.offset, it.offset + it.bytes)).collect();
                ends.sort_unstable();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                prop_assert!(ends.last().unwrap().1 <= header.payload_bytes);
            }
            Err(_) => prop_assert!(is_right != [true; 2] || layout.bytes() > 2 << 20),
        }
    }

    /// Any bytes as offsets and values, under right checksums: checking and reading never panic.
    #[test]
    fn hostile_content_never_panics(
        offsets in proptest::array::uniform3(-3_i64..9), text: [u8; 5],
    ) {
        let (columns, layout, mut payload) = small();
        for (at, offset) in offsets.into_iter().enumerate() {
            payload[64 + 8 * at..][..8].copy_from_slice(&offset.to_le_bytes());
        }
        payload[88..93].copy_from_slice(&text);
        let header = header_of(&columns, &layout, &payload);
        let checked = header.check_payload(&columns, &layout, &payload);
        let column = &columns.as_slice()[1];
        let view = crate::column::ColumnBytes::new(column, 1, &layout, &payload).unwrap();
        let values: Vec<Option<&[u8]>> = (0..3).map(|sample| view.value(sample)).collect();
        prop_assert_eq!(values[2], None);
        if checked.is_ok() {
            let lengths = values[..2].iter().map(|value| value.unwrap().len()).sum::<usize>();
            prop_assert_eq!(lengths, 5);
        }
    }
}
