//! The forms in which JPEGs are stored, their counts, and their restoration.

use crate::support::{Bench, files, golden, jpeg, names};
use meetpoint_datasets::{
    Check, Error, JpegOptions, PackOptions, PackSummary, Progressive, RestartMarkers, VerifyReport,
    pack, unpack, verify, verify_deep,
};
use meetpoint_format::dataset::{EntryPointSpacing, Form, NotConverted};
use meetpoint_kernels::{Picture, decode_into};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const FORMS: [Form; 3] = [Form::Jpeg, Form::Compact, Form::Fast];

/// Packs the pictures of the fixtures: four sequential JPEGs, a progressive one, a PNG.
fn packed(jpeg: JpegOptions) -> (Bench, PackSummary) {
    let bench = Bench::new();
    let options = PackOptions { jpeg, ..PackOptions::default() };
    let summary = pack(&golden().join("pictures"), &bench.to(), &options, &mut |_| ()).unwrap();
    (bench, summary)
}

fn looked_at_deeply(bench: &Bench) -> VerifyReport {
    let mut report = verify(&bench.to(), &mut |_| ()).unwrap();
    assert_eq!(report.problems, []);
    verify_deep(&bench.to(), 2, &Arc::default(), &mut report, &mut |_| ()).unwrap();
    assert_eq!(report.problems, []);
    report
}

fn pixels(file: &[u8]) -> Picture {
    let mut picture = Picture::default();
    decode_into(file, None, &mut picture).unwrap();
    picture
}

#[test]
fn every_file_comes_back_byte_for_byte_in_every_form() {
    let pictures = files(&golden().join("pictures"));
    for form in FORMS {
        for check in [Check::Decode, Check::Header] {
            let bench = Bench::new();
            let progressive = Progressive::Keep;
            let jpeg = JpegOptions { form, progressive, ..JpegOptions::default() };
            let options = PackOptions { jpeg, check, ..PackOptions::default() };
            let from = golden().join("pictures");
            let packed = pack(&from, &bench.to(), &options, &mut |_| ()).unwrap();
            assert_eq!((packed.stored.form, packed.stored.rewritten), (form, 0));
            let summary = bench.unpack().unwrap();
            assert!(files(&bench.back()) == pictures, "{form:?}: other files");
            assert_eq!((summary.files, summary.rewritten), (6, 0));
            assert_eq!(summary.converted, packed.stored.converted);
            assert_eq!(names(bench.path()), ["back", "in", "out"]);
        }
    }
}

#[test]
fn conversions_are_counted_and_the_counts_are_correct() {
    for form in FORMS {
        let (bench, summary) = packed(JpegOptions { form, ..JpegOptions::default() });
        let stored = &summary.stored;
        assert_eq!(bench.dataset().manifest().stored.as_ref(), Some(stored));
        assert_eq!(stored.kept[&NotConverted::NotJpeg], 1);
        let pictures = files(&golden().join("pictures"));
        let source_bytes: usize = pictures.values().map(Vec::len).sum();
        assert_eq!(stored.source_bytes, source_bytes as u64);
        let not_reproducible =
            stored.kept.get(&NotConverted::NotReproducible).copied().unwrap_or(0);
        if form != Form::Jpeg {
            assert_eq!(stored.converted + not_reproducible + 1, 6, "{stored:?}");
        }
        let report = looked_at_deeply(&bench).deep.unwrap();
        assert_eq!((report.decoded, report.not_jpeg), (6, 1));
        assert_eq!(report.converted, stored.converted);
        assert_eq!(report.entry_points, stored.entry_points.samples);
    }
}

#[test]
fn a_progressive_file_becomes_a_baseline_one_with_the_same_pixels_unless_refused() {
    let pictures = files(&golden().join("pictures"));
    let (bench, summary) = packed(JpegOptions::default());
    assert_eq!((summary.stored.rewritten, summary.stored.transcoded), (1, 1));
    let unpacked = bench.unpack().unwrap();
    assert_eq!(unpacked.rewritten, 1);
    for (key, file) in files(&bench.back()) {
        let is_transcoded = key == "fine/progressive.jpg";
        assert_eq!(file != pictures[&key], is_transcoded, "{key}");
        assert!(pixels(&file) == pixels(&pictures[&key]), "{key}");
    }
    let keep = JpegOptions { progressive: Progressive::Keep, ..JpegOptions::default() };
    assert_eq!(packed(keep).1.stored.rewritten, 0);
}

#[test]
fn restart_markers_and_huffman_tables_change_bytes_and_no_pixels() {
    let pictures = files(&golden().join("pictures"));
    for (restarts, optimise_huffman) in [
        (RestartMarkers::Remove, false),
        (RestartMarkers::EveryMcuRow, false),
        (RestartMarkers::EveryMcus(2), true),
        (RestartMarkers::Keep, true),
    ] {
        let options = JpegOptions { restarts, optimise_huffman, ..JpegOptions::default() };
        let (bench, summary) = packed(options);
        assert!(summary.stored.rewritten > 0, "{restarts:?}: {:?}", summary.stored);
        looked_at_deeply(&bench);
        bench.unpack().unwrap();
        for (key, file) in files(&bench.back()) {
            assert!(pixels(&file) == pixels(&pictures[&key]), "{restarts:?}: {key}");
        }
    }
}

/// Whether the data after the last start of a scan have a restart marker.
fn has_restart_markers(file: &[u8]) -> bool {
    let pairs: Vec<[u8; 2]> = file.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    let scan = pairs.iter().rposition(|pair| *pair == [0xff, 0xda]);
    scan.is_some_and(|at| pairs[at..].iter().any(|[a, b]| *a == 0xff && (0xd0..=0xd7).contains(b)))
}

#[test]
fn the_growth_by_restart_markers_is_reported_and_files_that_had_them_are_counted() {
    let with = |restarts| {
        let (bench, summary) = packed(JpegOptions { restarts, ..JpegOptions::default() });
        bench.unpack().unwrap();
        (files(&bench.back()), summary.stored.restart_markers)
    };
    let (kept, nothing) = with(RestartMarkers::Keep);
    assert_eq!(nothing, None);
    let had_before = kept.values().filter(|file| has_restart_markers(file)).count() as u64;
    let (without, removed) = with(RestartMarkers::Remove);
    assert!(!without.values().any(|file| has_restart_markers(file)));
    let removed = removed.unwrap();
    assert_eq!((removed.inserted, removed.had_before), (0, had_before));
    assert_eq!((removed.bytes, removed.bytes_without), (0, 0));
    let (files, inserted) = with(RestartMarkers::EveryMcuRow);
    let inserted = inserted.unwrap();
    let marked: Vec<_> = files.iter().filter(|(_, file)| has_restart_markers(file)).collect();
    let bytes = |files: &mut dyn Iterator<Item = usize>| files.sum::<usize>() as u64;
    assert_eq!((inserted.inserted, inserted.had_before), (marked.len() as u64, had_before));
    assert_eq!(inserted.bytes, bytes(&mut marked.iter().map(|(_, file)| file.len())));
    assert_eq!(
        inserted.bytes_without,
        bytes(&mut marked.iter().map(|(key, _)| without[*key].len()))
    );
    assert!(marked.len() > 1 && inserted.growth_bytes() > 0 && inserted.growth_percent() > 0.0);
}

#[test]
fn entry_points_are_packed_as_requested_and_found_with_their_samples() {
    for (spacing, option) in [
        (Some(EntryPointSpacing::McuRow), "row"),
        (Some(EntryPointSpacing::Mcus(2)), "2"),
        (None, "none"),
    ] {
        let options = JpegOptions { entry_points: spacing, ..JpegOptions::default() };
        let (bench, summary) = packed(options);
        let dataset = bench.dataset();
        assert_eq!(dataset.manifest().provenance.options["entry-points"], option);
        assert!((0..6).all(|sample| dataset.locate(sample).unwrap().entry_points.is_none()));
        dataset.keep_entry_points(1 << 20);
        let found: Vec<_> = (0..6)
            .filter_map(|sample| dataset.locate(sample).unwrap().entry_points)
            .map(|found| found.as_ref().len() as u64)
            .collect();
        let stored = &summary.stored.entry_points;
        assert_eq!((found.len() as u64, found.iter().sum()), (stored.samples, stored.bytes));
        assert_eq!(stored.spacing, spacing);
        if spacing.is_none() {
            assert!(found.is_empty());
        } else {
            assert!((1..=5).contains(&found.len()), "JPEGs alone have them: {found:?}");
        }
        looked_at_deeply(&bench);
    }
}

#[test]
fn options_are_in_the_provenance_under_the_names_of_the_command_line() {
    let options = JpegOptions {
        form: Form::Fast,
        entry_points: Some(EntryPointSpacing::Mcus(8)),
        progressive: Progressive::Keep,
        restarts: RestartMarkers::EveryMcus(40),
        optimise_huffman: true,
    };
    let (bench, _) = packed(options);
    let dataset = bench.dataset();
    let options = &dataset.manifest().provenance.options;
    for (name, value) in [
        ("form", "fast"),
        ("entry-points", "8"),
        ("progressive", "keep"),
        ("restart-interval", "40"),
        ("optimize-huffman", "true"),
    ] {
        assert_eq!(options[name], value, "{name}");
    }
}

#[test]
fn packing_a_coefficient_form_as_a_picture_is_refused() {
    let file = jpeg(16, 16, 1);
    let form = meetpoint_kernels::jpeg::to_form(&file, meetpoint_kernels::jpeg::Form::Fast);
    let bench = Bench::with_images(&["a.jpg"]);
    bench.put("b.jpg", &form.unwrap());
    bench.refuses("b.jpg: the coefficient form of a JPEG, not a picture file");
}

#[test]
fn a_dataset_in_any_form_packs_the_same_whatever_the_threads() {
    for form in FORMS {
        let pack_with = |threads| {
            let bench = Bench::new();
            let jpeg = JpegOptions { form, ..JpegOptions::default() };
            let options = PackOptions { jpeg, threads, ..PackOptions::default() };
            pack(&golden().join("pictures"), &bench.to(), &options, &mut |_| ()).unwrap();
            files(&bench.to())
        };
        assert!(pack_with(1) == pack_with(3), "{form:?}");
    }
}

#[test]
fn unpacking_with_several_threads_gives_the_same_files() {
    let names: Vec<String> = (0..600).map(|i| format!("c{}/{}/{i}.jpg", i % 3, i % 7)).collect();
    let bench = Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let options = PackOptions { check: Check::Header, ..PackOptions::default() };
    bench.pack_with(&options).unwrap();
    assert_eq!(bench.dataset().record_batches(), 3);
    for threads in [1, 4] {
        let options = meetpoint_datasets::UnpackOptions { threads, ..Default::default() };
        let to = bench.path().join(format!("back-{threads}"));
        let mut last = Default::default();
        unpack(&bench.to(), &to, &options, &mut |progress| last = progress).unwrap();
        let done = meetpoint_datasets::UnpackProgress { samples_done: 600, samples: 600 };
        assert_eq!(last, done);
        assert!(files(&to) == files(&bench.from()), "{threads} threads");
    }
}

#[test]
fn a_stopped_deep_verification_reports_no_problems() {
    let (bench, _) = packed(JpegOptions { form: Form::Compact, ..JpegOptions::default() });
    let mut report = verify(&bench.to(), &mut |_| ()).unwrap();
    let stop = Arc::new(AtomicBool::new(true));
    let looked = verify_deep(&bench.to(), 2, &stop, &mut report, &mut |_| ());
    assert!(matches!(looked, Err(Error::Interrupted)), "{looked:?}");
    assert_eq!(report.problems, []);
}
