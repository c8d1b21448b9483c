//! The GPU of a job, and the share of the work that it gets.

use super::{RECIPE, parse, place_and_text};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::{GpuDecode, GpuIndex, StopHandle};
use meetpoint_prepare::gpu::ShareChoice;

#[test]
fn a_gpu_needs_a_build_that_can_use_one_and_a_share_needs_a_gpu() {
    for key in ["gpu_share = 0.5", "gpu_memory = \"1GiB\"", "gpu_share = 7"] {
        let (place, text) = place_and_text(&format!("dataset = \"s\"\nbatch_size = 1\n{key}"));
        assert_eq!(place.map(|(line, _)| line), Some(3), "{text}");
        let name = key.split(' ').next().unwrap();
        assert!(
            text.contains(&format!("`{name}` is set, but `gpu_decode` names no GPU")),
            "{text}"
        );
        assert!(text.contains("set gpu_decode"), "{text}");
    }
    let none = parse(&format!("dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"none\"\n{RECIPE}"));
    assert_eq!(none.unwrap().gpu_decode, None);
    let wrong = "dataset = \"s\"\nbatch_size = 1\ngpu_share = 7\ngpu_decode = \"tpu\"";
    assert_eq!(place_and_text(wrong).0, Some((4, 14)), "the first key is named first");
    let lines = "dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"";
    for (line, share) in [
        ("", ShareChoice::Measured),
        ("\ngpu_share = \"auto\"", ShareChoice::Measured),
        ("\ngpu_share = 0.25", ShareChoice::Fixed(0.25)),
        ("\ngpu_share = 1", ShareChoice::Fixed(1.0)),
    ] {
        let job = parse(&format!("{lines}{line}\n{RECIPE}"));
        if cfg!(feature = "cuda") {
            let job = job.unwrap();
            assert_eq!(job.gpu_decode, Some(GpuDecode { share, ..GpuDecode::new(GpuIndex(1)) }));
            let config = job.loader_config(job.strategy, Vec::new(), StopHandle::new());
            assert_eq!(config.gpu_decode, job.gpu_decode);
        } else {
            let error = job.unwrap_err();
            assert_eq!(error.place, Some((3, 14)));
            let text = error.in_full(Surface::CommandLine);
            assert!(text.contains("without the feature `cuda`"), "{text}");
            assert!(text.contains("--features full"), "{text}");
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn the_memory_of_a_gpu_must_be_useful_and_its_page_locked_part_must_fit() {
    let job = |memory: &str| {
        let head = "dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"";
        parse(&format!("{head}\ngpu_memory = \"{memory}\"\n{RECIPE}"))
    };
    assert_eq!(job("2GiB").unwrap().gpu_decode.unwrap().memory_bytes, Some(2 << 30));
    let small = job("1MiB").unwrap_err();
    assert_eq!(small.place, Some((4, 14)));
    assert!(small.in_full(Surface::CommandLine).contains("64 MiB"), "{small:?}");
    let folder = crate::support::dataset(4);
    let text = format!(
        "dataset = \"{}\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"\n\
         gpu_memory = \"8000000GiB\"\n{RECIPE}",
        folder.path().display()
    );
    // An eighth of it is more than any machine has.
    let large = parse(&text).unwrap().check().unwrap_err();
    let meetpoint_host::Error::Job(large) = large else { panic!("{large:?}") };
    assert_eq!(large.place, Some((4, 14)), "{large:?}");
}

#[cfg(feature = "cuda")]
#[test]
fn a_share_of_a_gpu_is_a_number_from_0_to_1() {
    for share in ["1.5", "\"half\""] {
        let lines = "dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"cuda:0\"";
        let (place, text) = place_and_text(&format!("{lines}\ngpu_share = {share}"));
        assert!(text.contains("\"auto\" or a number from 0 to 1"), "{share}: {text}");
        assert_eq!(place.map(|(line, _)| line), Some(4), "{share}: {text}");
    }
}
