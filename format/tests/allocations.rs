//! No sampler allocates memory to find a position, not even the first one. This is a separate
//! program, since the allocator counts all allocations of a thread.
#![expect(unsafe_code, reason = "a global allocator that counts")]

use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::sampler::{
    AspectRatio, ClassBalanced, ColumnType, DECLARATIONS, Expression, Filter, Indices, Mixture,
    Repeated, SampleColumns, Sampler, SamplerError, Sampling, Sequential, Shuffled, Stop, Weighted,
    Weights,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged; the counter does not use its
// memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SAMPLES: u64 = 5000;

/// A dataset with a label, of whose samples a filter selects every third.
struct Labelled;

impl SampleColumns for Labelled {
    type Error = SamplerError;

    fn samples(&self) -> u64 {
        SAMPLES
    }

    fn datasets(&self) -> Vec<u64> {
        vec![SAMPLES - 999, 999]
    }

    fn columns(&self) -> Vec<(String, ColumnType)> {
        vec![("label".to_owned(), ColumnType::Whole)]
    }

    fn whole_numbers(&self, _: &str) -> Result<Vec<Option<i64>>, SamplerError> {
        Ok((0..SAMPLES).map(|sample| Some((sample * sample % 10) as i64)).collect())
    }

    fn numbers(&self, _: &str) -> Result<Vec<Option<f64>>, SamplerError> {
        Ok(Vec::new())
    }

    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, SamplerError> {
        Ok((0..SAMPLES as u32).map(|sample| Some((100 + sample % 7, 100 + sample % 11))).collect())
    }

    fn select(&self, _: &Expression) -> Result<Vec<u64>, SamplerError> {
        Ok((0..SAMPLES).step_by(3).collect())
    }
}

/// Every sampler, several times if it has several ways to find a position.
fn samplers() -> Vec<Sampler> {
    let weighted = |replacement| Weighted {
        weights: Weights::Numbers((0..SAMPLES).map(|n| (n * 31 % 97) as f64).collect()),
        replacement,
        length: None,
    };
    let indices = || (0..SAMPLES).map(|n| n * 7919 % SAMPLES).collect();
    let expression = || Expression::parse("label < 5").expect("an expression");
    let mixture = |stop| Mixture { weights: [1.0, 2.0].into(), stop, shuffle: true };
    vec![
        Sequential.into(),
        Shuffled.into(),
        Indices { indices: indices(), shuffle: false }.into(),
        Indices { indices: indices(), shuffle: true }.into(),
        Filter { expression: expression(), shuffle: false }.into(),
        Filter { expression: expression(), shuffle: true }.into(),
        weighted(true).into(),
        weighted(false).into(),
        ClassBalanced { column: "label".to_owned(), length: None }.into(),
        Repeated { repeats: 3, length: None }.into(),
        mixture(Stop::AllExhausted).into(),
        mixture(Stop::FirstExhausted).into(),
        AspectRatio { factor: 3, columns: None, shuffle: false }.into(),
        AspectRatio { factor: 3, columns: None, shuffle: true }.into(),
    ]
}

#[test]
fn a_position_of_any_sampler_allocates_nothing() {
    let samplers = samplers();
    for declaration in DECLARATIONS {
        assert!(samplers.iter().any(|it| it.name() == declaration.name), "{}", declaration.name);
    }
    for sampler in samplers {
        let options = BatchOptions { batch_size: 64, drop_last: false, seed: 1 };
        let sampling = Sampling::of(&sampler, &Labelled).expect("a sampling");
        let batching = Batching::alone(options, sampling);
        for epoch in 0..3 {
            let order = batching.order(epoch);
            let before = COUNT.with(Cell::get);
            let mut positions = 0;
            for batch in 0..batching.batches() as u32 {
                for sample in batching.samples_of(&order, batch) {
                    assert!(sample < SAMPLES);
                    positions += 1;
                }
            }
            assert_eq!(COUNT.with(Cell::get), before, "{sampler}");
            assert!(positions > 0, "{sampler}");
        }
    }
}
