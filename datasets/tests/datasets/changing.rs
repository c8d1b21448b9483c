//! Sources of other kinds than images, sources that change, duplicate keys.

use crate::support::{Bench, jpeg, names};
use meetpoint_datasets::source::{ContentKind, SourceOptions};
use meetpoint_datasets::{Check, Error, OnError, PackOptions, pack};
use meetpoint_diagnose::{Diagnose, Surface};

fn of_kind(kind: ContentKind) -> PackOptions {
    let source = SourceOptions { kind: Some(kind), ..SourceOptions::default() };
    PackOptions { source, ..PackOptions::default() }
}

#[test]
fn texts_sounds_and_anything_else_are_stored_as_they_are() {
    let bench = Bench::new();
    bench.put("en/a.txt", "a text".as_bytes());
    bench.put("de/b.txt", "schön".as_bytes());
    bench.put("de/c.wav", b"RIFF");
    let texts = bench.pack_with(&of_kind(ContentKind::Text)).unwrap();
    assert_eq!((texts.samples, texts.kind), (2, ContentKind::Text));
    assert_eq!(texts.not_samples[0].path, "de/c.wav");
    assert_eq!(texts.labels, ["de", "en"]);
    let dataset = bench.dataset();
    assert_eq!(dataset.columns().content_name(), "text");
    assert_eq!(dataset.read_sample(0).unwrap(), "schön".as_bytes());
    assert_eq!(texts.stored.entry_points.spacing, None);
    let all = PackOptions { force: true, ..of_kind(ContentKind::Bytes) };
    assert_eq!(bench.pack_with(&all).unwrap().samples, 3);
}

#[test]
fn a_text_that_is_not_utf_8_is_unreadable() {
    let bench = Bench::new();
    bench.put("a.txt", b"caf\xe9");
    bench.put("b.txt", b"fine");
    let error =
        bench.pack_with(&of_kind(ContentKind::Text)).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("a.txt: not text: invalid UTF-8 from byte 3"), "{error}");
    let skip = PackOptions { on_error: OnError::Skip, ..of_kind(ContentKind::Text) };
    assert_eq!(bench.pack_with(&skip).unwrap().samples, 1);
}

#[test]
fn options_about_images_are_refused_for_anything_else() {
    let bench = Bench::new();
    bench.put("a.txt", b"text");
    let options = PackOptions { check: Check::Header, ..of_kind(ContentKind::Text) };
    let error = bench.pack_with(&options).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("--check does not apply to samples that are not images"), "{error}");
    let mut options = of_kind(ContentKind::Text);
    options.jpeg.entry_points = None;
    let error = bench.pack_with(&options).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("--entry-points does not apply"), "{error}");
    assert_eq!(bench.names(), ["in"]);
}

#[test]
fn a_folder_without_files_of_the_kind_says_so() {
    let bench = Bench::with_images(&["a.jpg"]);
    let error = bench.pack_with(&of_kind(ContentKind::Audio)).unwrap_err();
    assert!(matches!(error, Error::NoFilesOfKind { others: 1, .. }), "{error}");
}

#[test]
fn a_source_that_changes_while_it_is_packed_is_refused() {
    let names: Vec<String> = (0..60).map(|index| format!("{index}.jpg")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    type Change = fn(&Bench);
    let changes: [(&str, Change); 3] = [
        ("a file comes", |bench| bench.put("more.jpg", &jpeg(8, 8, 8))),
        ("a file goes", |bench| std::fs::remove_file(bench.from().join("0.jpg")).unwrap()),
        ("a file grows", |bench| bench.put("59.jpg", &jpeg(90, 90, 8))),
    ];
    for (words, change) in changes {
        let bench = Bench::with_images(&names);
        let options = PackOptions { threads: 1, ..PackOptions::default() };
        let result = pack(&bench.from(), &bench.to(), &options, &mut |step| {
            if step.samples_done == 1 {
                change(&bench);
            }
        });
        assert!(matches!(result, Err(Error::SourceChanged { .. })), "{words}: {result:?}");
        assert_eq!(bench.names(), ["in"], "{words}");
    }
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let bench = Bench::with_images(&["a.jpg"]);
    for name in ["s.tar", "s.zip", "s.parquet", "s.tfrecord", "s.csv", "s.msgpack", "s.beton"] {
        let pipe = bench.path().join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let result = pack(&pipe, &bench.to(), &PackOptions::default(), &mut |_| ());
        assert!(result.is_err(), "{name}");
        let kind = PackOptions { from: Some("tar".to_owned()), ..PackOptions::default() };
        let error = pack(&pipe, &bench.to(), &kind, &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{name}: {error}");
        std::fs::remove_file(pipe).unwrap();
    }
}

#[test]
fn a_key_that_occurs_twice_is_refused_with_both_positions() {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    bench.put("table.csv", b"file_name,id\na.jpg,one\nb.jpg,two\na.jpg,three\nb.jpg,one\n");
    let source = SourceOptions { key: Some("id".to_owned()), ..SourceOptions::default() };
    let error = bench.pack_with(&PackOptions { source, ..PackOptions::default() }).unwrap_err();
    let Error::DuplicateKey { key, first: Some(first), second } = error else {
        panic!("another error: {error}")
    };
    assert_eq!(key, "one");
    assert_ne!(first.to_string(), second.to_string());
    assert_eq!(names(bench.path()), ["in"]);
}

#[test]
fn an_ambiguous_source_is_refused_with_the_evidence_for_each_kind() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.put("shard.tar", &[0; 1024]);
    let error = bench.pack().unwrap_err();
    assert!(matches!(error, Error::AmbiguousSource { .. }), "{error}");
    let words = error.in_full(Surface::CommandLine);
    for word in ["a.jpg", "shard.tar", "--from"] {
        assert!(words.contains(word), "{words}");
    }
    let folder = PackOptions { from: Some("folder".to_owned()), ..PackOptions::default() };
    assert_eq!(bench.pack_with(&folder).unwrap().samples, 1);
}

#[test]
fn an_unknown_kind_of_source_is_refused_with_the_known_ones() {
    let bench = Bench::with_images(&["a.jpg"]);
    let options = PackOptions { from: Some("lmdb".to_owned()), ..PackOptions::default() };
    let words = bench.pack_with(&options).unwrap_err().in_full(Surface::CommandLine);
    for kind in &meetpoint_datasets::source::KINDS {
        assert!(words.contains(kind.name), "{words}");
    }
}
