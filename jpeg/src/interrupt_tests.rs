//! Interrupts stop every computation promptly.

use super::{
    DecodeOptions, Decoder, Form, OnDamage, Process, Rewrite, Spacing, entry_points_until,
    from_form_until, rewrite_until, to_form, to_form_until,
};
use crate::{Encoded, Error, Interrupt, Picture, Region, golden};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Pixels of a side: six rows of MCUs of 16 pixels.
const SIDE: u32 = 96;
const MCU_ROWS: usize = 6;

fn jpeg(is_progressive: bool) -> Vec<u8> {
    let Picture { width, height, pixels } = golden::picture("noise", 7, SIDE, SIDE);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 85);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_progressive(is_progressive);
    encoder.encode(&pixels, width as u16, height as u16, ColorType::Rgb).unwrap();
    file
}

/// A file that ends in the middle of its data.
fn cut(mut file: Vec<u8>) -> Vec<u8> {
    file.truncate(file.len() * 2 / 3);
    file
}

/// An interrupt that is raised after a number of polls, and the number of polls.
fn after(polls: usize) -> (Interrupt, Arc<AtomicUsize>) {
    let polled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polled);
    (Interrupt::when(move || counter.fetch_add(1, Ordering::Relaxed) >= polls), polled)
}

fn raised() -> Interrupt {
    Interrupt::when(|| true)
}

fn decode(file: &[u8], on_damage: OnDamage, interrupt: Interrupt) -> Result<(), Error> {
    let mut decoder = Decoder::new();
    decoder.set_interrupt(interrupt);
    let options = DecodeOptions { on_damage, ..DecodeOptions::default() };
    decoder.decode_into(Encoded::from(file), None, &options, &mut Picture::default())
}

/// A computation, its name and its minimum number of polls.
type Work = (&'static str, usize, Box<dyn Fn(Interrupt) -> Result<(), Error>>);

fn every_work() -> Vec<Work> {
    let [baseline, progressive] = [false, true].map(jpeg);
    let mut all: Vec<Work> = Vec::new();
    let mut add = |name, polls, work: Box<dyn Fn(Interrupt) -> Result<(), Error>>| {
        all.push((name, polls, work));
    };
    // Every progressive file here has at least a scan of DC and one of AC for each component.
    let scans = 1 + 3;
    let files = [
        ("a baseline picture", baseline.clone(), MCU_ROWS),
        ("a progressive picture", progressive.clone(), scans * MCU_ROWS),
        ("the fast form", to_form(&baseline, Form::Fast).unwrap(), MCU_ROWS),
        ("the compact form", to_form(&baseline, Form::Compact).unwrap(), MCU_ROWS),
    ];
    for (name, file, polls) in files {
        let decode = move |it| decode(&file, OnDamage::Fail, it);
        add(name, polls, Box::new(decode));
    }
    for (name, file) in [
        ("a damaged baseline picture", cut(baseline.clone())),
        ("a damaged progressive picture", cut(progressive.clone())),
    ] {
        let decode = move |it| decode(&file, OnDamage::FillIn, it);
        add(name, MCU_ROWS, Box::new(decode));
    }
    let from = [("baseline", baseline.clone()), ("progressive", progressive.clone())];
    for (_, file) in from {
        for form in [Form::Fast, Form::Compact] {
            let (stored, file) = (to_form(&file, form).unwrap(), file.clone());
            let to = move |it: Interrupt| to_form_until(&file, form, &it).map(drop);
            add("a file to its form", 3 * MCU_ROWS, Box::new(to));
            let back = move |it: Interrupt| from_form_until(&stored, &it).map(drop);
            add("a form to its file", 2 * MCU_ROWS, Box::new(back));
        }
        for process in [Process::Keep, Process::Baseline, Process::Progressive] {
            let (how, file) = (Rewrite { process, ..Rewrite::default() }, file.clone());
            let rewrite = move |it: Interrupt| rewrite_until(&file, &how, &it).map(drop);
            add("a rewrite", 3 * MCU_ROWS, Box::new(rewrite));
        }
    }
    for spacing in [Spacing::McuRow, Spacing::Mcus(1)] {
        let file = baseline.clone();
        let find = move |it: Interrupt| entry_points_until(&file, spacing, &it).map(drop);
        add("entry points", MCU_ROWS, Box::new(find));
    }
    all
}

#[test]
fn a_raised_interrupt_ends_every_computation_at_once() {
    for (name, _, work) in every_work() {
        assert_eq!(work(raised()), Err(Error::Interrupted), "{name}");
        assert_eq!(work(Interrupt::default()), Ok(()), "{name}");
    }
}

#[test]
fn every_computation_polls_in_each_row_of_mcus_and_ends_at_the_poll_that_finds_it_raised() {
    for (name, least, work) in every_work() {
        let (never, polled) = after(usize::MAX);
        assert_eq!(work(never), Ok(()), "{name}");
        let polls = polled.load(Ordering::Relaxed);
        assert!(polls >= least, "{name}: {polls} polls");
        for raised_at in [1, polls / 3, polls / 2, polls - 1] {
            let (interrupt, polled) = after(raised_at);
            assert_eq!(work(interrupt), Err(Error::Interrupted), "{name}");
            // The caller may poll once more.
            let polled = polled.load(Ordering::Relaxed);
            assert!((raised_at + 1..=raised_at + 2).contains(&polled), "{name}: {polled}");
        }
    }
}

#[test]
fn no_stripe_comes_once_the_interrupt_is_raised() {
    for is_progressive in [false, true] {
        let flag = Arc::new(AtomicBool::new(false));
        let mut decoder = Decoder::new();
        decoder.set_interrupt(Interrupt::from(Arc::clone(&flag)));
        let file = jpeg(is_progressive);
        let whole = Region { x: 0, y: 0, width: SIDE, height: SIDE };
        let mut stripes = 0;
        decoder.open(Encoded::from(&file), OnDamage::Fail).unwrap();
        let options = DecodeOptions::default();
        let outcome = decoder.decode_opened(Encoded::from(&file), whole, &options, &mut |_| {
            flag.store(true, Ordering::Relaxed);
            stripes += 1;
        });
        assert_eq!((outcome, stripes), (Err(Error::Interrupted), 1));
    }
}

#[test]
fn skipping_rows_above_a_region_polls() {
    let file = jpeg(false);
    let bottom = Region { x: 0, y: SIDE - 1, width: 8, height: 1 };
    let (never, polled) = after(usize::MAX);
    let mut decoder = Decoder::new();
    decoder.set_interrupt(never);
    let (mut out, options) = (Picture::default(), DecodeOptions::default());
    decoder.decode_into(Encoded::from(&file), Some(bottom), &options, &mut out).unwrap();
    assert!(polled.load(Ordering::Relaxed) >= MCU_ROWS);
}
