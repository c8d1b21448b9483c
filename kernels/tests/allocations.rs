//! A preparer allocates memory only for the first samples. This is a separate program, since the
//! allocator counts all allocations of a thread.
#![expect(unsafe_code, reason = "a global allocator that counts")]

use meetpoint_format::recipe::{
    CenterCrop, ColorJitter, Decode, Dtype, Grayscale, Interpolation, Layout, OnError, Operation,
    RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Recipe, Resize as ResizeTo, Scale,
    Size, ToDtype,
};
use meetpoint_jpeg::{Form, Spacing, entry_points, to_form};
use meetpoint_kernels::resize::{Filter, Resize, Resizer};
use meetpoint_kernels::tensor::{ElementTable, RowPosition, TensorWriter};
use meetpoint_kernels::{Cpu, Encoded, Region, SampleId, SamplePreparer, Stripe};
use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged; the counter does not use its
// memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, memory) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, memory: Memory, to: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, memory, to) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations of this thread while a function runs.
fn counted(run: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    run();
    COUNT.with(Cell::get) - before
}

fn available() -> impl Iterator<Item = Cpu> {
    Cpu::ALL.into_iter().filter(|cpu| cpu.is_available())
}

#[test]
fn a_resizer_and_a_writer_allocate_nothing_for_sizes_that_they_have_seen() {
    let bytes = vec![90; 300 * 400];
    let sizes = [(300, 280), (90, 380), (224, 224), (250, 31)];
    let filters = [Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Nearest];
    for cpu in available() {
        let mut resizer = Resizer::new(cpu);
        let mut table = ElementTable::default();
        table.convert(Dtype::Float32, Scale::Multiply);
        table.normalize([0.4; 4], [0.2; 4]);
        let mut writer = TensorWriter::new(&table, 3, cpu);
        let mut out = vec![0; 224 * 200 * 3 * 4];
        let mut all = |resizer: &mut Resizer| {
            for interpolation in filters {
                for (from_width, from_height) in sizes {
                    let filter = Filter { interpolation, antialias: true };
                    let (width, height) = (224, 224);
                    let window = Some(Region { x: 0, y: 9, width: 224, height: 200 });
                    let source = None;
                    let needed = resizer.begin(&Resize {
                        from_width,
                        from_height,
                        source,
                        width,
                        height,
                        filter,
                        window,
                    });
                    let rows = needed.height as usize;
                    let stride = 400;
                    let whole = bytes.len() / stride;
                    let mut fed = 0;
                    while fed < rows {
                        let rows = whole.min(rows - fed);
                        let planes = [&bytes[..rows * stride]; 3];
                        let width = needed.width as usize;
                        let stripe = Stripe { planes, stride, width, rows };
                        resizer.feed(stripe, &mut || (), &mut |y, row| {
                            let place = RowPosition { y, height: 200, mirrored: true };
                            writer.write_row(row, place, &mut out);
                        });
                        fed += rows;
                    }
                }
            }
        };
        all(&mut resizer);
        assert_eq!(counted(|| all(&mut resizer)), 0, "{}", cpu.name());
    }
}

/// A picture by the name of its file in the golden folder.
fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../jpeg/tests/golden/jpeg/{name}.jpg", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the file reads")
}

#[test]
fn preparing_a_jpeg_allocates_nothing_in_any_form() {
    let files = ["420-33x47", "444-17x33", "grey-17x33", "restart-3", "ycck-420", "exif-6"];
    let samples: Vec<(Vec<u8>, Vec<u8>)> = files
        .map(golden)
        .into_iter()
        .flat_map(|file| {
            let points = entry_points(&file, Spacing::McuRow).expect("it decodes");
            let forms = [Form::Fast, Form::Compact].map(|form| to_form(&file, form));
            let forms = forms.map(|form| (form.expect("it has a form"), Vec::new()));
            let [fast, compact] = forms;
            [(file.clone(), Vec::new()), (file, points.expect("it has one scan")), fast, compact]
        })
        .collect();
    let crop = Operation::RandomResizedCrop(RandomResizedCrop {
        height: 24,
        width: 20,
        scale: (0.08, 1.0),
        ratio: (0.75, 1.5),
        interpolation: Interpolation::Bilinear,
        antialias: true,
    });
    for on_error in [OnError::Fail, OnError::Lenient] {
        for cpu in available() {
            let decode = Operation::Decode(Decode { on_error, ..Decode::EXACT });
            let recipe = Recipe::new(vec![decode, crop.clone()]).expect("a recipe");
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let mut out = vec![0; recipe.output().expect("a fixed size").bytes()];
            let mut all = || {
                for (number, (bytes, entry_points)) in (0..).zip(samples.iter().cycle().take(240)) {
                    let encoded = Encoded { bytes, entry_points, crc32c: None };
                    let id = SampleId { seed: 3, epoch: 0, sample: number };
                    preparer.prepare(encoded, id, &mut out, &mut || ()).expect("it is sound");
                }
            };
            all();
            assert_eq!(counted(all), 0, "{} {on_error:?}", cpu.name());
        }
    }
}

/// A BMP of 24 bits a pixel.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let row = (width as usize * 3).next_multiple_of(4);
    let mut bmp = b"BM".to_vec();
    bmp.extend([0; 8]);
    bmp.extend([54, 40, width, height].iter().flat_map(|word: &u32| word.to_le_bytes()));
    bmp.extend([1, 0, 24, 0]);
    bmp.extend([0; 24]);
    bmp.extend((0..row * height as usize).map(|at| (at * 7 % 251) as u8));
    bmp
}

fn resize_to(side: u32) -> Operation {
    let size = Size::ShorterSide(side);
    Operation::Resize(ResizeTo {
        size,
        max_size: None,
        interpolation: Interpolation::Bilinear,
        antialias: true,
    })
}

#[test]
fn a_preparer_allocates_no_more_than_its_decoder() {
    let random_crop = Operation::RandomResizedCrop(RandomResizedCrop {
        height: 60,
        width: 70,
        scale: (0.08, 1.0),
        ratio: (0.75, 1.5),
        interpolation: Interpolation::Bicubic,
        antialias: true,
    });
    let flip = Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.5 });
    let center = |height, width| Operation::CenterCrop(CenterCrop { height, width });
    let to_float = Operation::ToDtype(ToDtype { dtype: Dtype::Float32, scale: Scale::Multiply });
    let planes = Operation::Layout(Layout::Nchw);
    let upside_down = Operation::RandomVerticalFlip(RandomVerticalFlip { p: 0.5 });
    let grey = Operation::Grayscale(Grayscale { num_output_channels: 1 });
    let jitter = Operation::ColorJitter(ColorJitter {
        brightness: (0.5, 1.5),
        contrast: (0.5, 1.5),
        saturation: (0.5, 1.5),
        hue: (-0.1, 0.1),
    });
    let chains: [&[Operation]; 7] = [
        &[random_crop.clone(), flip.clone(), jitter, upside_down.clone(), to_float.clone()],
        &[
            upside_down.clone(),
            random_crop.clone(),
            grey,
            resize_to(40),
            center(90, 90),
            planes.clone(),
        ],
        &[random_crop.clone(), flip.clone()],
        &[resize_to(90), center(80, 80), flip.clone(), to_float.clone(), planes.clone()],
        &[center(99, 20)],
        &[center(300, 20), resize_to(64)],
        &[resize_to(40), flip.clone(), random_crop.clone(), center(90, 90), to_float.clone()],
    ];
    let file = bmp(150, 120);
    let encoded = || Encoded::from(&file);
    for cpu in available() {
        // The allocations of the decoder itself.
        let plain = Recipe::new(vec![Operation::Decode(Decode::EXACT), center(120, 150)]).unwrap();
        let mut preparer = SamplePreparer::new(&plain, cpu);
        let id = |sample| SampleId { seed: 3, epoch: 0, sample };
        let mut out = vec![0; plain.output().unwrap().bytes()];
        let mut prepare = || preparer.prepare(encoded(), id(0), &mut out, &mut || ()).unwrap();
        prepare();
        let of_decoder = counted(prepare);
        for chain in chains {
            let recipe =
                Recipe::new([&[Operation::Decode(Decode::EXACT)], chain].concat()).unwrap();
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let shape = preparer.prepare_tensor(encoded(), id(0)).unwrap().spec;
            let mut out = vec![0; shape.bytes()];
            let mut prepare = |samples: std::ops::Range<u64>| {
                samples.for_each(|sample| {
                    preparer.prepare(encoded(), id(sample), &mut out, &mut || ()).unwrap();
                });
            };
            prepare(0..50);
            assert_eq!(counted(|| prepare(0..50)), 50 * of_decoder, "{} {chain:?}", cpu.name());
        }
    }
}
