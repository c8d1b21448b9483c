//! Erasing on finished tensors, and mixtures of the samples of a batch.

use crate::compare::{compare, png, recipe, start};
use crate::program::{mix_partner, sample_mix};
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};
use meetpoint_gpu::Compute;
use meetpoint_gpu::delivery::{BatchMix, MixedFormat, Mixing};
use meetpoint_kernels::{
    BatchId, BatchMixer, BatchProgram, BatchTensors, Cpu, Encoded, SampleId,
    SampleMix as KernelMix, SamplePreparer,
};

#[test]
fn erased_tensors_are_equal() {
    let mut compute = start();
    let pictures = [png(20, 20, 1), png(31, 12, 2), png(9, 9, 3), png(20, 20, 4)];
    let erasures = [
        "random_erasing p = 0.8;value = [0.3, -2.0, 7.0]",
        "random_erasing p = 1;mode = \"rand\";min_count = 2;max_count = 5",
        "random_erasing p = 1;mode = \"pixel\";max_count = 4;scale = [0.1, 0.6]",
    ];
    for dtype in ["float16", "float32"] {
        for layout in ["NHWC", "NCHW"] {
            for erasing in erasures {
                let (dtype, layout) = (
                    format!("to_dtype dtype = \"{dtype}\""),
                    format!("layout layout = \"{layout}\""),
                );
                let resize = "random_resized_crop size = [19, 22]";
                let recipe = recipe(&["decode", resize, &dtype, &layout, erasing]);
                compare(&mut *compute, &recipe, &pictures).unwrap_or_else(|it| panic!("{it}"));
            }
        }
    }
    let recipe = recipe(&["decode", "resize size = [9, 13]", "random_erasing p = 1;value = [9]"]);
    compare(&mut *compute, &recipe, &pictures).unwrap_or_else(|it| panic!("{it}"));
}

#[test]
fn noisy_pictures_are_equal() {
    let mut compute = start();
    let sizes = [(37, 29), (1, 1), (90, 3), (3, 70), (2, 2), (1, 12), (13, 1), (30, 31)];
    let pictures: Vec<Vec<u8>> =
        sizes.iter().zip(0..).map(|((width, height), seed)| png(*width, *height, seed)).collect();
    let noises = [
        "gaussian_noise sigma = 0.3;clip = false",
        "random_sensor_noise p = 0.8",
        "random_sensor_noise p = 1;strength = [0.0, 0.003]",
        "random_sensor_noise p = 1;strength = [0.5, 1.0]",
    ];
    for noise in noises {
        for decode in ["decode", "decode mode = \"gray\""] {
            for size in ["resize size = [21, 18]", "resize size = [1, 7]"] {
                let last = recipe(&[decode, size, noise, "to_dtype dtype = \"float32\""]);
                compare(&mut *compute, &last, &pictures).unwrap_or_else(|it| panic!("{it}"));
                let between = recipe(&[decode, noise, size]);
                compare(&mut *compute, &between, &pictures).unwrap_or_else(|it| panic!("{it}"));
            }
        }
    }
}

#[test]
fn mixed_batches_are_equal() {
    let mut compute = start();
    let mixing = [
        "mix_up num_classes = 3",
        "mix_up num_classes = 3;mode = \"elem\";partner = \"mirrored\"",
        "cut_mix num_classes = 3",
        "cut_mix num_classes = 3;mode = \"pair\";partner = \"mirrored\";box = \"timm_1.0.31\"",
        "timm_mixup num_classes = 3;cutmix_alpha = 1.0;mode = \"elem\"",
    ];
    for (dtype, layout, size) in [
        ("uint8", "NHWC", "8, 6"),
        ("uint8", "NCHW", "7, 5"),
        ("float16", "NCHW", "6, 9"),
        ("float16", "NHWC", "3, 5"),
        ("float32", "NCHW", "4, 5"),
    ] {
        for mixing in mixing {
            for samples in [1, 2, 5, 6] {
                let operations = [
                    "decode".to_owned(),
                    format!("random_resized_crop size = [{size}]"),
                    format!("to_dtype dtype = \"{dtype}\""),
                    format!("layout layout = \"{layout}\""),
                    mixing.to_owned(),
                ];
                let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
                compare_batch(&mut *compute, &operations, samples);
            }
        }
    }
}

fn compare_batch(compute: &mut dyn Compute, operations: &[&str], samples: u64) {
    let recipe = recipe(operations);
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let (mut images, mut spec) = (Vec::new(), None::<TensorSpec>);
    for sample in 0..samples {
        let picture = png(16, 14, sample);
        let id = SampleId { seed: 1, epoch: 0, sample };
        let tensor = preparer
            .prepare_tensor(Encoded::from(&picture[..]), id)
            .expect("the samples are prepared");
        images.extend(tensor.data);
        spec = Some(tensor.spec);
    }
    let spec = spec.expect("the samples are prepared");
    assert!(matches!(spec.dtype, Dtype::Uint8 | Dtype::Float16 | Dtype::Float32));
    assert!(matches!(spec.layout, Layout::Nhwc | Layout::Nchw));
    let mut mixer = BatchMixer::new(&recipe, spec).expect("the recipe mixes");
    let soft = mixer.labels().expect("mixing makes labels rows");
    let mut labels = vec![0; 12 * samples as usize];
    for (label, row) in (0..).zip(labels.chunks_exact_mut(12)) {
        BatchMixer::write_label(soft, label % 3, row);
    }
    let (id, samples) = (BatchId { seed: 4, epoch: 2, batch: 5 }, samples as usize);
    let mut programs = Vec::new();
    mixer.export(id, samples, &mut programs).expect("nothing interrupts it");
    // The pictures, the labels, and the mixes of both.
    let labels_at = images.len().next_multiple_of(4);
    let mut batch = [&images[..], &vec![0; labels_at - images.len()], &labels].concat();
    let mut steps = |mixes_of: fn(&BatchProgram) -> &Vec<KernelMix>| -> Vec<BatchMix> {
        let steps = programs.iter().map(|program| {
            let mixes = batch.len();
            batch.extend(mixes_of(program).iter().flat_map(|mix| sample_mix(*mix).bytes()));
            BatchMix { partner: mix_partner(program.partner), mixes }
        });
        steps.collect()
    };
    let of_images = steps(|program| &program.mixes);
    let of_labels = steps(|program| &program.label_mixes);
    let memory = compute.allocate(batch.len()).expect("there is memory");
    compute.upload(&batch, &memory, 0).expect("the device works");
    let TensorSpec { height, width, channels, .. } = spec;
    let element_bytes = spec.dtype.bytes() as u32;
    let is_interleaved = spec.layout == Layout::Nhwc;
    let pictures = MixedFormat { height, width, channels, element_bytes, is_interleaved };
    let rows = MixedFormat::row(3);
    for (format, steps, offset) in [(pictures, &of_images, 0), (rows, &of_labels, labels_at)] {
        let mixing = Mixing { format, samples: samples as u32, steps };
        mixing.launch(compute, (&memory, offset), &memory).expect("the device works");
    }
    let mut got = vec![0; labels_at + labels.len()];
    compute.download(&memory, 0, &mut got).expect("the device works");
    let with = BatchTensors { samples, images: &mut images, labels: &mut labels };
    mixer.mix(id, with, &mut || ()).expect("nothing interrupts it");
    assert!(got[..images.len()] == images, "{operations:?} of {samples}");
    assert!(got[labels_at..] == labels, "labels of {operations:?} of {samples}");
}
