//! A kernel runs on the CPU, or on a GPU.
#![cfg(feature = "shim")]

use meetpoint_gpu::{Argument, KernelName, Launch, subject};

#[test]
fn a_kernel_runs() {
    let mut shim = subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
    let (pixels, elements) = (shim.allocate(300).unwrap(), shim.allocate(1200).unwrap());
    let table = shim.allocate(3 * 256 * 4).unwrap();
    let bytes: Vec<u8> = (0..300_u32).map(|at| (at * 7) as u8).collect();
    let values: Vec<f32> = (0..768).map(|at| at as f32).collect();
    let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    shim.upload(&bytes, &pixels, 0).unwrap();
    shim.upload(&values, &table, 0).unwrap();
    shim.launch(&Launch {
        kernel: KernelName { module: "tensor", name: "elements_of_pixels" },
        grid: [4, 1, 1],
        block: [32, 1, 1],
        shared_bytes: 0,
        arguments: &[(&pixels).into(), (&elements).into(), (&table).into(), Argument::Word(100)],
    })
    .unwrap();
    let mut out = vec![0; 1200];
    shim.download(&elements, 0, &mut out).unwrap();
    let second = f32::from_le_bytes(*out[4 * 101..].first_chunk().unwrap());
    assert_eq!(second, (256 + u32::from(bytes[4])) as f32);
}
