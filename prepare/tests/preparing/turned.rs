//! JPEGs that their Exif orientation turns, on a GPU.

use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::subject;
use meetpoint_kernels::{Cpu, Encoded, SampleId, SamplePreparer};
use meetpoint_prepare::gpu::{GpuBatch, GpuMemory, GpuOffload, ShareChoice};
use meetpoint_prepare::{Offload, Tensors};
use std::path::Path;

#[test]
fn a_gpu_prepares_turned_jpegs_with_the_bits_of_the_cpu() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/golden/jpeg");
    let files: Vec<Vec<u8>> = (1..=8)
        .map(|orientation| std::fs::read(folder.join(format!("exif-{orientation}.jpg"))).unwrap())
        .collect();
    let text = "[[operation]]\nname = 'decode'\norient = true\n\
                [[operation]]\nname = 'random_resized_crop'\nsize = [7, 5]\n\
                [[operation]]\nname = 'random_horizontal_flip'\n";
    let recipe = Recipe::from_toml(text).unwrap();
    let compute = subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
    let batch = GpuBatch::new(compute, &recipe, &[0], GpuMemory::default()).unwrap();
    let mut offload = GpuOffload::new(batch, ShareChoice::Fixed(1.0));
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let each = recipe.output().unwrap().bytes();
    for epoch in 0..4 {
        let id = |sample| SampleId { seed: 8, epoch, sample };
        let mut bytes = vec![0; files.len() * each];
        offload.begin(files.len(), false).unwrap();
        for (position, file) in files.iter().enumerate() {
            let encoded = Encoded::from(&file[..]);
            assert!(offload.take(position, encoded, id(position as u64)).unwrap());
        }
        let tensors = Tensors { bytes: &mut bytes, each };
        assert_eq!(offload.finish(&mut [tensors], 0).unwrap().given_back, Vec::<usize>::new());
        for ((sample, file), got) in (0..).zip(&files).zip(bytes.chunks_exact(each)) {
            let expected = preparer.prepare_tensor((&file[..]).into(), id(sample)).unwrap();
            assert_eq!(got, expected.data, "orientation {}, epoch {epoch}", sample + 1);
        }
    }
}
