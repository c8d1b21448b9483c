//! The output of `stats` and `rows` for a dataset.

use crate::support::{TestFolder, made, read, silent};
use meetpoint_datasets::operations::{
    OperationError, Selection, ShownRow, Statistics, rows, stats,
};
use meetpoint_datasets::{Error, PackOptions, Progressive, pack};
use meetpoint_prepare::Dataset;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn count(path: &Path) -> Statistics {
    stats(path, 2, &AtomicBool::new(false), &mut silent).unwrap()
}

#[test]
fn sizes_have_the_quantiles_of_a_sorted_list() {
    let place = TestFolder::new();
    let mut all = made(500, 3);
    for (index, made) in all.iter_mut().enumerate() {
        made.content = vec![index as u8; 1 + index * index * 7 % 5000];
    }
    let found = count(&place.write("a", &["class0", "class1", "class2"], &all, 100_000));
    let mut sizes: Vec<u64> = all.iter().map(|made| made.content.len() as u64).collect();
    sizes.sort_unstable();
    let bytes = found.bytes;
    let near = |found: u64, quantile: f64| {
        let exact = sizes[((quantile * 500.0).ceil() as usize).max(1) - 1];
        assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0 + 1.0, "{found} {exact}");
    };
    near(bytes.p5, 0.05);
    near(bytes.p25, 0.25);
    near(bytes.p50, 0.5);
    near(bytes.p75, 0.75);
    near(bytes.p95, 0.95);
    near(bytes.p99, 0.99);
    assert_eq!((bytes.min, bytes.max, bytes.count), (sizes[0], sizes[499], 500));
    assert_eq!(bytes.sum, sizes.iter().sum::<u64>());
    let labels: Vec<u64> = found.labels.iter().map(|label| label.samples).collect();
    assert_eq!((labels, found.unlabelled), (vec![167, 167, 166], 0));
    let nulls: Vec<(&str, u64)> = found.columns.iter().map(|c| (&*c.name, c.nulls)).collect();
    assert_eq!(nulls, [("fold", 100), ("number", 0)]);
    assert!(found.formats.is_empty() && found.pixels.count == 0, "it holds no pictures");
}

#[test]
fn pictures_are_counted_by_format_size_and_coding() {
    let place = TestFolder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pictures/fine");
    let jpeg =
        meetpoint_datasets::JpegOptions { progressive: Progressive::Keep, ..Default::default() };
    let packing = PackOptions { jpeg, ..PackOptions::default() };
    pack(&golden, &place.path("a"), &packing, &mut |_| ()).unwrap();
    let found = count(&place.path("a"));
    assert_eq!((found.formats["JPEG"], found.formats["PNG"]), (3, 1));
    assert_eq!((found.jpegs, found.progressive), (3, 1));
    assert_eq!(found.subsampling.values().sum::<u64>(), 3);
    assert!(found.subsampling["4:4:4"] >= 1, "{:?}", found.subsampling);
    let dataset = Dataset::open(&place.path("a")).unwrap();
    let pixels: u64 = (0..4)
        .map(|sample| image::load_from_memory(&dataset.read_sample(sample).unwrap()))
        .filter_map(Result::ok)
        .map(|picture| u64::from(picture.width()) * u64::from(picture.height()))
        .sum();
    assert!(pixels > 0 && pixels <= found.pixels.sum);
    assert_eq!(found.pixels.count, 4);
}

#[test]
fn duplicates_are_found_by_content_and_named() {
    let place = TestFolder::new();
    let mut all = made(20, 3);
    all[7].content = all[2].content.clone();
    all[19].content = all[2].content.clone();
    all[11].content = all[5].content.clone();
    let found = count(&place.write("a", &["class0", "class1", "class2"], &all, 900)).duplicates;
    assert_eq!((found.groups, found.samples), (2, 3));
    let bytes = 2 * all[2].content.len() + all[5].content.len();
    assert_eq!(found.bytes, bytes as u64);
    let key = |index: usize| all[index].key.clone();
    assert_eq!(found.named, [vec![key(2), key(7), key(19)], vec![key(5), key(11)]]);
    assert_eq!(count(&place.write_some("b", 20)).duplicates, Default::default());
}

#[test]
fn damaged_samples_are_counted_and_the_others_too() {
    let place = TestFolder::new();
    let path = place.write_some("a", 20);
    let location = Dataset::open(&path).unwrap().locate(0).unwrap();
    let part = path.join("part-00000.arrow");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[usize::try_from(location.offset).unwrap()] ^= 1;
    std::fs::write(part, bytes).unwrap();
    let found = count(&path);
    assert_eq!((found.damaged, found.bytes.count), (1, 19));
    assert_eq!(found.damaged_named[0].path, "class0/0.bin");
}

fn shown(path: &Path, selection: &Selection, most: u64, only: Option<&[String]>) -> Vec<ShownRow> {
    let mut all = Vec::new();
    rows(path, selection, most, only, &mut |row| {
        all.push(row);
        Ok(true)
    })
    .unwrap();
    all
}

#[test]
fn rows_are_shown_with_their_columns_and_no_more_than_wanted() {
    let place = TestFolder::new();
    let path = place.write_some("a", 30);
    let all = shown(&path, &Selection::default(), u64::MAX, None);
    assert_eq!(all.len(), 30);
    for (row, made) in all.iter().zip(read(&path)) {
        assert_eq!((&row.key, &row.label), (&made.key, &made.label));
        assert_eq!(row.bytes, made.content.len() as u64);
        assert_eq!(row.columns["fold"], json!(made.fold));
        assert_eq!(row.columns["number"], json!(made.number));
    }
    let range = Selection { range: Some(9..30), ..Selection::default() };
    let only = ["number".to_owned()];
    let some = shown(&path, &range, 12, Some(&only));
    assert_eq!(some.iter().map(|row| row.sample).collect::<Vec<_>>(), (9..21).collect::<Vec<_>>());
    assert_eq!(some[0].columns.len(), 1);
    let missing = rows(&path, &range, 1, Some(&["x".to_owned()]), &mut |_| Ok(true));
    let is_named = matches!(
        &missing,
        Err(Error::Operation(OperationError::NoColumn { column, .. })) if column == "x"
    );
    assert!(is_named, "{missing:?}");
}
