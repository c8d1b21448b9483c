//! Tables beside images: their labels and columns are used, or the table is an error that names
//! file and line; they are never ignored unless requested.

use crate::support::Bench;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use meetpoint_datasets::source::{self, Entry, SourceOptions};
use meetpoint_datasets::{Error, OnError, PackOptions};
use std::io::Write as _;

/// Two images and a table beside them.
fn images_and(name: &str, table: &[u8]) -> Bench {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    bench.put(name, table);
    bench
}

/// Expects that the table is an error at a line, and that the images can be packed without it on
/// request.
fn refuses(name: &str, table: &[u8], line: u64) {
    let bench = images_and(name, table);
    let error = bench.pack().unwrap_err();
    let Error::Malformed { origin, problem } = &error else { panic!("{error:?}") };
    assert!(origin.file.ends_with(name), "{origin}");
    assert_eq!(origin.member, Some(format!("line {line}")), "{error}");
    assert!(problem.to_string().contains("--from folder"), "{problem}");
    assert_eq!(bench.names(), ["in"]);
    let from = Some("folder".to_owned());
    let without = bench.pack_with(&PackOptions { from, ..PackOptions::default() }).unwrap();
    assert_eq!((without.samples, without.not_samples[0].path.as_str()), (2, name));
}

fn utf_16(text: &str, mark: &str) -> Vec<u8> {
    format!("{mark}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_first_json_line_that_is_cut_off_is_an_error() {
    refuses("metadata.jsonl", b"{\"file_name\":\"a.jpg\",\"lab\n{\"file_name\":\"b.jpg\"}\n", 1);
}

#[test]
fn a_json_array_is_an_error() {
    refuses("metadata.jsonl", b"[{\"file_name\":\"a.jpg\",\"label\":1}]", 1);
    refuses("metadata.jsonl", b"[\n {\"file_name\":\"a.jpg\",\"label\":1}\n]\n", 1);
}

#[test]
fn json_that_is_nested_too_deep_is_an_error() {
    let deep = format!("{{\"file_name\":\"a.jpg\",\"x\":{}{}}}", "[".repeat(200), "]".repeat(200));
    refuses("metadata.jsonl", deep.as_bytes(), 1);
}

#[test]
fn an_empty_table_is_an_error() {
    refuses("metadata.csv", b"", 1);
    refuses("metadata.jsonl", b"", 1);
    refuses("labels.tsv", b"", 1);
    refuses("metadata.ndjson", b"\n\n", 1);
}

#[test]
fn a_table_in_utf_16_is_an_error() {
    refuses("metadata.csv", &utf_16("file_name,label\na.jpg,1\n", "\u{feff}"), 1);
    refuses("metadata.csv", &utf_16("file_name,label\na.jpg,1\n", ""), 1);
    refuses("metadata.jsonl", &utf_16("{\"file_name\":\"a.jpg\"}\n", "\u{feff}"), 1);
}

#[test]
fn a_quote_that_is_not_closed_is_an_error_at_its_line() {
    refuses("metadata.csv", b"file_name,\"label\na.jpg,1\nb.jpg,2\n", 1);
    refuses("metadata.csv", b"file_name,label\na.jpg,\"1\nb.jpg,2\n", 2);
    let bench = images_and("metadata.csv", b"file_name,label\na.jpg,1\nb.jpg,\"2\n");
    let error = bench.pack().unwrap_err();
    let Error::Malformed { origin, .. } = &error else { panic!("{error:?}") };
    assert_eq!(origin.member.as_deref(), Some("line 3"), "{error}");
}

#[test]
fn a_table_that_is_not_utf_8_is_an_error() {
    refuses("metadata.csv", b"file_name,caf\xe9\na.jpg,1\n", 1);
}

#[test]
fn two_columns_of_one_name_are_an_error() {
    refuses("metadata.csv", b"file_name,x,x\na.jpg,1,2\n", 1);
}

#[test]
fn metadata_that_names_no_files_is_an_error() {
    refuses("metadata.csv", b"id,label\n1,1\n", 1);
    refuses("metadata.jsonl", b"{\"id\":1,\"label\":1}\n", 1);
}

#[test]
fn a_table_under_another_name_that_names_no_files_is_left_out_and_named() {
    let summary = images_and("sizes.csv", b"id,size\n1,20\n").pack().unwrap();
    assert_eq!((summary.samples, summary.not_samples[0].path.as_str()), (2, "sizes.csv"));
}

#[test]
fn several_tables_that_name_files_require_a_choice() {
    let bench = images_and("test.csv", b"file_name,label\na.jpg,1\n");
    bench.put("train.csv", b"file_name,label\nb.jpg,2\n");
    assert!(matches!(bench.pack(), Err(Error::Malformed { .. })));
    let table = Some(bench.from().join("train.csv"));
    let options = SourceOptions { table, ..SourceOptions::default() };
    let summary = bench.pack_with(&PackOptions { source: options, ..PackOptions::default() });
    assert_eq!(summary.unwrap().samples, 1);
}

#[test]
fn fields_may_be_separated_by_semicolons() {
    for (name, table) in [
        ("metadata.csv", "file_name;label;x\na.jpg;cat;1,5\nb.jpg;dog;2\n"),
        ("metadata.csv", "file_name\tlabel\tx\na.jpg\tcat\t1\nb.jpg\tdog\t2\n"),
        ("metadata.tsv", "file_name,label,x\na.jpg,cat,1\nb.jpg,dog,2\n"),
    ] {
        let summary = images_and(name, table.as_bytes()).pack().unwrap();
        assert_eq!(summary.labels, ["cat", "dog"]);
        assert_eq!((summary.samples, summary.columns), (2, vec!["x".to_owned()]));
    }
}

#[test]
fn numbers_that_are_nan_or_infinite_are_read_as_python_reads_them() {
    let table = br#"{"file_name":"a.jpg","label":1,"x":NaN,"list":[-Infinity,1]}
{"file_name":"b.jpg","label":2,"x":3,"list":[Infinity]}
"#;
    let bench = images_and("metadata.jsonl", table);
    let mut source = source::open(&bench.from(), None, &SourceOptions::default()).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = source.next().unwrap() {
        let Entry::Sample(item) = entry else { continue };
        let (batch, row) = item.extra.clone().unwrap();
        let x = batch.column_by_name("x").unwrap().as_primitive::<Float64Type>().value(row);
        let list = batch.column_by_name("list").unwrap().as_list::<i32>().value(row);
        found.push((item.label, x, list.as_primitive::<Float64Type>().value(0)));
    }
    let [(Some(1), first, f64::NEG_INFINITY), (Some(2), 3.0, f64::INFINITY)] = found[..] else {
        panic!("{found:?}");
    };
    assert!(first.is_nan());
    assert_eq!(bench.pack().unwrap().columns, ["list", "x"]);
}

#[test]
fn metadata_that_is_no_regular_file_is_an_error_that_names_it() {
    let make: [&dyn Fn(&std::path::Path); 3] = [
        &|path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).unwrap(),
        &|path| std::fs::create_dir(path).unwrap(),
        &|path| std::os::unix::fs::symlink("nowhere", path).unwrap(),
    ];
    for make in make {
        for name in ["metadata.csv", "metadata.jsonl", "metadata.parquet", "train/metadata.csv"] {
            let below = if name.contains('/') { "train/" } else { "" };
            let bench = Bench::with_images(&[&format!("{below}a.jpg")]);
            make(&bench.from().join(name));
            let error = bench.pack().unwrap_err();
            let Error::Malformed { origin, problem } = &error else { panic!("{error:?}") };
            assert!(origin.file.ends_with(name), "{origin}");
            assert!(problem.to_string().contains("--from folder"), "{problem}");
            let from = Some("folder".to_owned());
            let packed = bench.pack_with(&PackOptions { from, ..PackOptions::default() });
            assert_eq!(packed.unwrap().samples, 1);
        }
    }
}

#[test]
fn two_tables_of_metadata_are_an_error_that_names_both() {
    let bench = images_and("metadata.csv", b"file_name,label\na.jpg,1\n");
    bench.put("metadata.jsonl", b"{\"file_name\":\"b.jpg\",\"label\":2}\n");
    let error = bench.pack().unwrap_err();
    let Error::Malformed { problem, .. } = &error else { panic!("{error:?}") };
    assert!(
        problem.to_string().contains("metadata.csv")
            && problem.to_string().contains("metadata.jsonl"),
        "{problem}"
    );
    let table = Some(bench.from().join("metadata.jsonl"));
    let source = SourceOptions { table, ..SourceOptions::default() };
    let summary = bench.pack_with(&PackOptions { source, ..PackOptions::default() }).unwrap();
    assert_eq!((summary.samples, summary.not_samples.len()), (1, 0));
}

#[test]
fn files_that_a_table_does_not_name_are_reported() {
    let bench = images_and("metadata.csv", b"file_name,label\na.jpg,1\n");
    bench.put("deeper/c.jpg", b"not examined");
    for name in ["stray.arrow", "notes.txt", ".hidden"] {
        bench.put(name, b"something else");
    }
    let summary = bench.pack().unwrap();
    let left: Vec<_> = summary.not_samples.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left, ["b.jpg", "deeper/c.jpg", "notes.txt", "stray.arrow"]);
    assert_eq!(summary.not_samples[0].reason, "no row of metadata.csv names it".into());
    assert_eq!((summary.samples, summary.ignored), (1, 1));
    // A single table may be a choice among the files beside it.
    let table = bench.from().join("metadata.csv");
    let options = PackOptions { force: true, ..PackOptions::default() };
    let alone = meetpoint_datasets::pack(&table, &bench.to(), &options, &mut |_| ()).unwrap();
    assert_eq!((alone.samples, alone.not_samples.len()), (1, 0));
}

#[test]
fn splits_in_sub_folders_have_tables_of_their_own() {
    let bench = Bench::with_images(&["train/a.jpg", "train/x/b.jpg", "test/a.jpg", "test/c.jpg"]);
    let rows = b"{\"file_name\":\"a.jpg\",\"label\":\"cat\"}\n\
                 {\"file_name\":\"x/b.jpg\",\"label\":\"dog\"}\n";
    bench.put("train/metadata.jsonl", rows);
    bench.put("test/metadata.csv", b"file_name,label\na.jpg,dog\n");
    let error = bench.pack().unwrap_err();
    let Error::Malformed { problem, .. } = &error else { panic!("{error:?}") };
    assert!(
        problem.to_string().contains("test, train") && problem.to_string().contains("--split"),
        "{problem}"
    );
    let of_split = |split: &str| {
        let source = SourceOptions { split: Some(split.to_owned()), ..SourceOptions::default() };
        let options = PackOptions { source, force: true, ..PackOptions::default() };
        bench.pack_with(&options)
    };
    let train = of_split("train").unwrap();
    assert_eq!(
        (train.labels, bench.keys()),
        (labels(&["cat", "dog"]), labels(&["a.jpg", "x/b.jpg"]))
    );
    assert!(train.not_samples.is_empty(), "{:?}", train.not_samples);
    let test = of_split("test").unwrap();
    assert_eq!((test.labels, bench.keys()), (labels(&["dog"]), labels(&["a.jpg"])));
    assert_eq!(test.not_samples[0].path, "c.jpg");
    assert!(matches!(of_split("dev"), Err(Error::Malformed { .. })));
}

#[test]
fn the_only_sub_folder_with_a_table_needs_no_choice() {
    let bench = Bench::with_images(&["train/a.jpg", "beside.jpg"]);
    bench.put("train/metadata.csv", b"file_name,label\na.jpg,cat\n");
    let summary = bench.pack().unwrap();
    assert_eq!((summary.labels, bench.keys()), (labels(&["cat"]), labels(&["a.jpg"])));
    assert_eq!(summary.not_samples[0].path, "beside.jpg");
    bench.put("dogs/d.jpg", b"another class?");
    let again = bench.pack_with(&PackOptions { force: true, ..PackOptions::default() });
    assert!(matches!(again, Err(Error::Malformed { .. })), "{again:?}");
}

#[test]
fn a_table_below_folders_that_hold_nothing_else_is_read() {
    let bench = Bench::with_images(&["x/y/a.jpg", "x/y/z/b.jpg"]);
    bench.put("x/y/METADATA.csv", b"file_name,label\na.jpg,cat\nz/b.jpg,dog\n");
    let summary = bench.pack().unwrap();
    assert_eq!(
        (summary.labels, bench.keys()),
        (labels(&["cat", "dog"]), labels(&["a.jpg", "z/b.jpg"]))
    );
    // Splits may be that deep too.
    bench.put("x/test/metadata.csv", b"file_name,label\n../y/a.jpg,cat\n");
    let again = bench.pack_with(&PackOptions { force: true, ..PackOptions::default() });
    let Err(Error::Malformed { problem, .. }) = &again else { panic!("{again:?}") };
    assert!(problem.to_string().contains("test, y"), "{problem}");
    let source = SourceOptions { split: Some("y".to_owned()), ..SourceOptions::default() };
    let options = PackOptions { source, force: true, ..PackOptions::default() };
    assert_eq!(bench.pack_with(&options).unwrap().labels, ["cat", "dog"]);
}

#[test]
fn a_table_below_folders_that_hold_nothing_else_must_parse() {
    let bench = Bench::with_images(&["x/y/a.jpg"]);
    bench.put("x/y/metadata.jsonl", b"{\"file_name\":\"a.jpg\",\"lab");
    let error = bench.pack().unwrap_err();
    let Error::Malformed { origin, .. } = &error else { panic!("{error:?}") };
    assert!(origin.file.ends_with("x/y/metadata.jsonl"), "{origin}");
    assert_eq!(bench.names(), ["in"]);
}

/// Expects that a table which is not read is an error that names it, and that the samples can be
/// packed without it if the kind of the source is named.
fn refuses_unread(bench: &Bench, from: &std::path::Path, table: &str, kind: &str) {
    let pack =
        |options: &PackOptions| meetpoint_datasets::pack(from, &bench.to(), options, &mut |_| ());
    let error = pack(&PackOptions::default()).unwrap_err();
    let Error::Malformed { origin, problem } = &error else { panic!("{table}: {error:?}") };
    assert!(origin.to_string().contains(table), "{table}: {origin}");
    assert!(problem.to_string().contains(&format!("--from {kind}")), "{problem}");
    assert!(!bench.to().exists());
    let (from, on_error) = (Some(kind.to_owned()), OnError::Skip);
    let without = pack(&PackOptions { from, on_error, force: true, ..PackOptions::default() });
    let without = without.unwrap();
    assert_eq!(without.samples, 2, "{table}");
    std::fs::remove_dir_all(bench.to()).unwrap();
}

#[test]
fn a_table_of_any_folder_that_is_not_read_is_an_error() {
    for name in ["x/y/metadata.csv", "x/y/metadata.jsonl.gz", "x/z/w/metadata.json"] {
        let bench = Bench::with_images(&["x/y/a.jpg", "z/b.jpg"]);
        bench.put(name, b"file_name,label\na.jpg,1\n");
        refuses_unread(&bench, &bench.from(), name, "folder");
    }
}

#[test]
fn a_table_in_a_form_that_is_not_read_is_an_error() {
    for name in [
        "metadata.json",
        "metadata.json.gz",
        "metadata.csv.bz2",
        "metadata.csv.xz",
        "metadata.tsv.zip",
        "METADATA.JSON",
        "labels.csv.bz2",
        "train.jsonl.xz",
    ] {
        let bench = images_and(name, b"[{\"file_name\":\"a.jpg\",\"label\":1}]");
        refuses_unread(&bench, &bench.from(), name, "folder");
    }
}

/// The files of a source in one archive.
fn zipped(bench: &Bench, names: &[&str]) -> std::path::PathBuf {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for name in names {
        let path = rawzip::path::EntryPath::verbatim(name.as_bytes());
        let (mut entry, config) = archive.new_file(path).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        writer.write_all(&std::fs::read(bench.from().join(name)).unwrap()).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    let path = bench.path().join("archive.zip");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn tarred(bench: &Bench, names: &[&str]) -> std::path::PathBuf {
    let path = bench.path().join("archive.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    for name in names {
        archive.append_path_with_name(bench.from().join(name), name).unwrap();
    }
    archive.finish().unwrap();
    path
}

#[test]
fn a_table_in_an_archive_is_an_error() {
    for table in [
        "metadata.jsonl",
        "metadata.csv",
        "train/metadata.csv",
        "metadata.json",
        "metadata.csv.gz",
        "metadata.csv.bz2",
        "train.csv",
    ] {
        // Neither a sound table nor a broken one is read.
        for content in [&b"file_name,label\na.jpg,1\n"[..], b"{\"file_na"] {
            let bench = images_and(table, content);
            let names = ["a.jpg", table, "b.jpg"];
            refuses_unread(&bench, &zipped(&bench, &names), table, "zip");
            refuses_unread(&bench, &tarred(&bench, &names), table, "tar");
        }
    }
}

#[test]
fn a_table_of_one_sample_in_an_archive_is_not_a_table_of_labels() {
    let bench = images_and("a.csv", b"x,y\n1,2\n");
    let archive = zipped(&bench, &["a.jpg", "a.csv", "b.jpg"]);
    let options = PackOptions::default();
    let pack = |from| meetpoint_datasets::pack(from, &bench.to(), &options, &mut |_| ());
    let summary = pack(&archive).unwrap();
    assert_eq!((summary.samples, summary.not_samples.len()), (2, 1));
    std::fs::remove_dir_all(bench.to()).unwrap();
    let summary = pack(&tarred(&bench, &["a.jpg", "a.csv", "b.jpg"])).unwrap();
    assert_eq!((summary.samples, summary.columns), (2, labels(&["csv"])));
}

fn labels(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
