//! Datasets with content in place.

use crate::support::{Bench, files};
use meetpoint_datasets::index::{check_contents, index};
use meetpoint_datasets::{
    Error, PackOptions, PackSummary, VerifyOptions, unpack, verify, verify_with,
};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_prepare::Dataset;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn bench() -> Bench {
    let names: Vec<String> = (0..12).map(|n| format!("c{}/picture {n}.jpg", n % 3)).collect();
    Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn indexed(bench: &Bench) -> Result<PackSummary, Error> {
    index(&bench.from(), &bench.to(), &PackOptions::default(), &mut |_| ())
}

fn problems(path: &Path) -> Vec<String> {
    let report = verify(path, &mut |_| ()).unwrap();
    report.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_dataset_in_place_equals_a_packed_one_except_for_the_content() {
    let (there, packed) = (bench(), bench());
    let summary = indexed(&there).unwrap();
    packed.pack().unwrap();
    assert_eq!((summary.samples, summary.labels.len()), (12, 3));
    let (mine, other) = (there.dataset(), packed.dataset());
    let root = there.from().canonicalize().unwrap();
    assert_eq!(mine.content_root(), Some(root.as_path()));
    assert_eq!(mine.columns(), other.columns());
    assert_eq!(mine.manifest().image_bytes, other.manifest().image_bytes);
    assert_eq!(mine.manifest().image_bytes_max, other.manifest().image_bytes_max);
    for dataset in [&mine, &other] {
        dataset.keep_entry_points(1 << 20);
    }
    for sample in 0..12 {
        let (a, b) = (mine.locate(sample).unwrap(), other.locate(sample).unwrap());
        assert_eq!((a.row, a.bytes, a.crc32c, a.label), (b.row, b.bytes, b.crc32c, b.label));
        assert_eq!(a.entry_points, b.entry_points);
        assert_eq!(mine.key(sample).unwrap(), other.key(sample).unwrap());
        assert_eq!(mine.read_sample(sample).unwrap(), other.read_sample(sample).unwrap());
        let path = mine.content_path(&a);
        assert_eq!(path, root.join(mine.key(sample).unwrap()));
        assert_eq!(std::fs::read(path).unwrap(), mine.read_sample(sample).unwrap());
    }
    assert_eq!(problems(&there.to()), [""; 0]);
    let key = mine.key(7).unwrap();
    assert_eq!(mine.find(&key).unwrap(), Some(7));
    // No byte of an image is in the parts.
    let parts: u64 = mine.manifest().parts.iter().map(|part| part.bytes).sum();
    let of_packed: u64 = other.manifest().parts.iter().map(|part| part.bytes).sum();
    assert!(parts < of_packed + 4096 - other.manifest().image_bytes, "{parts} {of_packed}");
}

#[test]
fn samples_in_place_unpack_to_their_files() {
    let bench = bench();
    indexed(&bench).unwrap();
    unpack(&bench.to(), &bench.back(), &Default::default(), &mut |_| ()).unwrap();
    assert_eq!(files(&bench.back()), files(&bench.from()));
}

#[test]
fn a_dataset_in_place_has_as_many_parts_as_a_packed_one() {
    let bench = bench();
    let options = PackOptions { part_bytes_target: 2400, ..PackOptions::default() };
    let there = index(&bench.from(), &bench.to(), &options, &mut |_| ()).unwrap();
    let packed = bench.path().join("packed");
    let of_packed =
        meetpoint_datasets::pack(&bench.from(), &packed, &options, &mut |_| ()).unwrap();
    assert!(there.parts > 1 && of_packed.parts > 1);
    assert_eq!(problems(&bench.to()), [""; 0]);
}

#[test]
fn a_source_that_changed_is_refused_with_what_changed() {
    let bench = bench();
    indexed(&bench).unwrap();
    let dataset = bench.dataset();
    let path = dataset.content_path(&dataset.locate(5).unwrap());
    let sound = std::fs::read(&path).unwrap();
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let put = |bytes: &[u8], keep_time: bool| {
        std::fs::write(&path, bytes).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let later = time + std::time::Duration::from_millis(2500);
        file.set_modified(if keep_time { time } else { later }).unwrap();
    };
    let refusal = |words: &str| {
        let error = Dataset::open(&bench.to())
            .unwrap()
            .read_sample(5)
            .unwrap_err()
            .in_full(Surface::CommandLine);
        let name = path.display().to_string();
        assert!(error.contains(words) && error.contains(&name), "{error}");
        let found = problems(&bench.to());
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    };
    put(&[&sound[..], b"more"].concat(), true);
    refusal("bytes, had");
    put(&sound, false);
    refusal("2.500 s later");
    let mut flipped = sound.clone();
    flipped[40] ^= 1;
    put(&flipped, true);
    refusal("checksum is");
    std::fs::remove_file(&path).unwrap();
    refusal("No such file");
    put(&sound, true);
    assert_eq!(problems(&bench.to()), [""; 0]);
}

#[test]
fn a_source_that_is_gone_is_named_with_the_remedy() {
    let bench = bench();
    indexed(&bench).unwrap();
    std::fs::rename(bench.from(), bench.path().join("elsewhere")).unwrap();
    let error = Dataset::open(&bench.to()).unwrap_err();
    assert_eq!(error.cause(), "content_folder_missing");
    let error = error.in_full(Surface::CommandLine);
    assert!(error.contains("restore the folder") && error.contains("/in"), "{error}");
}

#[test]
fn a_link_out_of_the_source_is_refused_and_one_inside_is_resolved() {
    let bench = bench();
    let outside = bench.path().join("outside.jpg");
    std::fs::write(&outside, crate::support::jpeg(9, 9, 1)).unwrap();
    let within = bench.from().join("c0/z.jpg");
    std::os::unix::fs::symlink(bench.from().join("c0/picture 0.jpg"), &within).unwrap();
    indexed(&bench).unwrap();
    let sample = bench.dataset().find("c0/z.jpg").unwrap().unwrap();
    let read = bench.dataset().read_sample(sample).unwrap();
    assert_eq!(read, std::fs::read(&within).unwrap());
    std::fs::remove_dir_all(bench.to()).unwrap();
    std::fs::remove_file(&within).unwrap();
    std::os::unix::fs::symlink(&outside, &within).unwrap();
    let error = indexed(&bench).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("c0/z.jpg") && error.contains("outside"), "{error}");
    assert_eq!(bench.names(), ["in", "outside.jpg"]);
}

#[test]
fn an_image_that_is_progressive_stays_as_it_is() {
    let bench = Bench::new();
    let name = "progressive.jpg";
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 80);
    encoder.set_progressive(true);
    encoder.encode(&[77; 16 * 16 * 3], 16, 16, jpeg_encoder::ColorType::Rgb).unwrap();
    bench.put(name, &bytes);
    indexed(&bench).unwrap();
    assert_eq!(bench.dataset().read_sample(0).unwrap(), bytes);
    assert!(
        check_contents(&bench.dataset(), 1, &AtomicBool::new(false), &mut |_| ())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn checking_content_in_place_can_be_stopped_and_does_not_depend_on_threads() {
    let bench = bench();
    indexed(&bench).unwrap();
    let parts: u64 = bench.dataset().manifest().parts.iter().map(|part| part.bytes).sum();
    for threads in [1, 3] {
        let options = VerifyOptions { threads, ..VerifyOptions::default() };
        let report = verify_with(&bench.to(), &options, &mut |_| ()).unwrap();
        assert!(report.is_sound());
        let stop = std::sync::Arc::clone(&options.stop);
        let stopped = verify_with(&bench.to(), &options, &mut |step| {
            stop.store(step.bytes_done > parts, Ordering::Relaxed);
        });
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    }
}
