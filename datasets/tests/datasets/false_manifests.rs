//! A forged manifest or part with correct checksums and wrong content.

use crate::support::{Bench, jpeg};
use meetpoint_datasets::{
    DamageLocation, JpegOptions, PackOptions, Problem, VerifyReport, verify, verify_deep,
};
use meetpoint_format::dataset::{
    ColumnEntry, Columns, ContentKind, EntryPointSpacing, EntryPointsStored, Form, Manifest, Row,
    Stored,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Four images in two classes.
fn packed(form: Form) -> Bench {
    let bench = Bench::with_images(&["cat/a.jpg", "cat/b.jpg", "dog/c.jpg", "dog/d.jpg"]);
    let jpeg = JpegOptions { form, ..JpegOptions::default() };
    bench.pack_with(&PackOptions { jpeg, ..PackOptions::default() }).unwrap();
    bench
}

fn deep(bench: &Bench) -> VerifyReport {
    let mut report = verify(&bench.to(), &mut |_| ()).unwrap();
    if report.is_sound() {
        let stop = Arc::new(AtomicBool::new(false));
        verify_deep(&bench.to(), 1, &stop, &mut report, &mut |_| ()).unwrap();
    }
    report
}

/// The problems after a change of the manifest.
fn found(change: impl FnOnce(&mut Manifest)) -> Vec<Problem> {
    let bench = packed(Form::Jpeg);
    bench.falsify(change);
    verify(&bench.to(), &mut |_| ()).unwrap().problems
}

#[test]
fn a_false_manifest_of_sound_parts_is_found() {
    let falsify = |words: &str, change: &dyn Fn(&mut Manifest)| {
        let problems = found(change);
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert!(lines.iter().any(|line| line.contains(words)), "{lines:?} do not say {words:?}");
    };
    falsify("4 rows, dataset.json says 5", &|lying| {
        lying.samples += 1;
        lying.parts[0].samples += 1;
    });
    falsify("has checksum", &|lying| lying.parts[0].tail_crc32c ^= 1);
    falsify("dataset.json: image_bytes_max is", &|lying| lying.image_bytes_max += 1);
    falsify("part-00000.arrow, row 2, key dog/c.jpg: an image of", &|lying| {
        lying.image_bytes_max -= 1;
    });
    falsify("dataset.json: image_bytes is", &|lying| lying.image_bytes -= 1);
    falsify("row 2, key dog/c.jpg: label 1, dataset.json names 1 labels", &|lying| {
        lying.labels.truncate(1);
    });
    falsify("stored.entry_points.samples is 3, the parts have 4", &|lying| {
        lying.stored.as_mut().unwrap().entry_points.samples -= 1;
    });
    falsify("stored.entry_points.bytes is", &|lying| {
        lying.stored.as_mut().unwrap().entry_points.bytes += 1;
    });
    falsify("its content is `image` (image), dataset.json says `image` (bytes)", &|lying| {
        lying.content.kind = ContentKind::Bytes;
    });
    falsify("further column 0 is none, dataset.json says `x` Int8", &|lying| {
        let entry = ColumnEntry {
            name: "x".to_owned(),
            type_words: "Int8".to_owned(),
            kind: None,
            labels: None,
        };
        lying.columns = vec![entry];
    });
}

#[test]
fn a_true_manifest_with_another_checksum_is_sound() {
    assert_eq!(found(|manifest| manifest.provenance.source = "elsewhere".to_owned()), []);
}

#[test]
fn counts_that_only_the_samples_know_are_found_deeply() {
    for form in [Form::Compact, Form::Fast] {
        let bench = packed(form);
        bench.falsify(|lying| lying.stored.as_mut().unwrap().converted -= 1);
        assert!(verify(&bench.to(), &mut |_| ()).unwrap().is_sound());
        let problems = deep(&bench).problems;
        assert_eq!(problems[0].place, DamageLocation::File);
        assert!(problems[0].problem.contains("stored.converted is 3"), "{problems:?}");
    }
    let bench = packed(Form::Compact);
    bench.falsify(|lying| lying.stored.as_mut().unwrap().form = Form::Fast);
    let problems = deep(&bench).problems;
    assert_eq!(problems.len(), 4);
    assert!(problems[0].problem.contains("in the form compact, dataset.json says fast"));
}

#[test]
fn samples_that_are_not_what_they_should_be_are_found_deeply() {
    let honest = packed(Form::Jpeg);
    let dataset = honest.dataset();
    let entry_points = dataset.keyed_rows(0).unwrap().entry_points.expect("JPEGs have them");
    let file = dataset.read_sample(0).unwrap();
    let right = entry_points.row(0).unwrap().as_ref().to_vec();
    let form = meetpoint_kernels::jpeg::to_form(&file, meetpoint_kernels::jpeg::Form::Compact);
    let mut cut_form = form.unwrap();
    let mut newer_form = cut_form.clone();
    newer_form[8] = 3;
    let newer = "is of version 3, and this program reads up to 2";
    cut_form.truncate(cut_form.len() / 2);
    let cut_head = cut_form[..8].to_vec();
    let mut stale = right.clone();
    *stale.last_mut().unwrap() ^= 1;
    let other = jpeg(40, 40, 9);
    for (image, entry_points, form, words) in [
        (file.clone(), Some(right.clone()), Form::Jpeg, ""),
        (file.clone(), Some(stale), Form::Jpeg, "its entry points are not those of its file"),
        (other, Some(right.clone()), Form::Jpeg, "its entry points are not those of its file"),
        (file.clone(), None, Form::Jpeg, "it has no entry points"),
        (b"no picture".to_vec(), None, Form::Jpeg, "not a picture"),
        (cut_form, None, Form::Compact, "pack again"),
        (newer_form, None, Form::Compact, newer),
        (cut_head, None, Form::Compact, "pack again"),
    ] {
        let bench = Bench::new();
        let samples = u64::from(entry_points.is_some());
        let bytes = entry_points.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let spacing = Some(EntryPointSpacing::McuRow);
        let entries = EntryPointsStored { spacing, samples, bytes };
        let converted = u64::from(form != Form::Jpeg);
        let stored = Stored { form, converted, entry_points: entries, ..Stored::default() };
        let row = Row { key: "a.jpg".to_owned(), image, label: None, entry_points, extra: None };
        bench.write_dataset(&[row], stored);
        assert!(verify(&bench.to(), &mut |_| ()).unwrap().is_sound());
        let problems = deep(&bench).problems;
        if words.is_empty() {
            assert_eq!(problems, []);
            continue;
        }
        let [problem] = &problems[..] else { panic!("{words}: {problems:?}") };
        assert_eq!(problem.place, DamageLocation::Row { row: 0, key: "a.jpg".to_owned() });
        assert!(problem.problem.contains(words), "{problem} does not say {words:?}");
        // A coefficient form that cannot be restored is never treated as a file.
        assert!(form == Form::Jpeg || bench.unpack().is_err());
    }
}

#[test]
fn texts_are_verified_deeply_and_never_decoded_as_pictures() {
    for (kind, content, words) in [
        (ContentKind::Text, &b"no picture"[..], ""),
        (ContentKind::Text, b"ab\xff", "the text is not UTF-8 from byte 2"),
        (ContentKind::Audio, b"ab\xff", ""),
        (ContentKind::None, b"", ""),
    ] {
        let bench = Bench::new();
        let columns = Columns { kind, name: String::new(), ..Columns::images() };
        let row = Row { key: "a".to_owned(), image: content.to_vec(), ..Row::default() };
        bench.write_dataset_of(&columns, &[row], Stored::default());
        let problems = deep(&bench).problems;
        match &problems[..] {
            [] => assert!(words.is_empty(), "{kind:?}"),
            [problem] => assert!(!words.is_empty() && problem.problem.contains(words), "{problem}"),
            more => panic!("{more:?}"),
        }
        assert_eq!(bench.dataset().read_sample(0).unwrap(), content);
        assert_eq!(meetpoint_datasets::inspect(&bench.to()).unwrap().images.probed, 0);
    }
}
