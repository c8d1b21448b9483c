//! The weighted sum of two samples, element by element, with the roundings of PyTorch and timm.
//!
//! Both products and their sum are rounded to the element type, one after another. For integers
//! they are computed in float32, and the sum is rounded to an integer, halves to even.

use crate::Cpu;
use crate::vector::{Kernel, run};
use half::f16;
use half::slice::HalfFloatSliceExt;
use meetpoint_format::recipe::Dtype;

/// The weight of a sample or label, and that of its partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weights {
    pub(crate) own: f32,
    pub(crate) partner: f32,
}

/// Number of float16 elements converted at once.
const BLOCK: usize = 256;

/// From here to twice this, consecutive float32 numbers differ by 1.
const WHOLE: f32 = 8_388_608.0;

/// Replaces the elements of a sample by the weighted sum with those of its partner.
pub(crate) fn blend(cpu: Cpu, dtype: Dtype, own: &mut [u8], partner: &[u8], weights: Weights) {
    run(cpu, Blend { dtype, own, partner, weights });
}

struct Blend<'a> {
    dtype: Dtype,
    own: &'a mut [u8],
    partner: &'a [u8],
    weights: Weights,
}

impl Kernel for Blend<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { dtype, own, partner, weights } = self;
        match dtype {
            Dtype::Uint8 => blend_bytes(own, partner, weights),
            Dtype::Uint16 => blend_words(own, partner, weights),
            Dtype::Int32 => unreachable!("no operation blends tokens"),
            Dtype::Float16 => blend_halves(own, partner, weights),
            Dtype::Float32 => blend_floats(own, partner, weights),
        }
    }
}

#[inline(always)]
fn blend_bytes(own: &mut [u8], partner: &[u8], weights: Weights) {
    for (own, partner) in own.iter_mut().zip(partner) {
        let sum = f32::from(*own) * weights.own + f32::from(*partner) * weights.partner;
        // The sum is at least 0 and rounds to at most 255, so the result is in the lowest bits.
        *own = (sum + WHOLE).to_bits() as u8;
    }
}

#[inline(always)]
fn blend_words(own: &mut [u8], partner: &[u8], weights: Weights) {
    let partner = partner.as_chunks::<2>().0;
    for (own, partner) in own.as_chunks_mut::<2>().0.iter_mut().zip(partner) {
        let [first, second] = [*own, *partner].map(|it| f32::from(u16::from_le_bytes(it)));
        let sum = first * weights.own + second * weights.partner;
        *own = ((sum + WHOLE).to_bits() as u16).to_le_bytes();
    }
}

/// The weighted sum of float32 elements.
#[inline(always)]
pub(crate) fn blend_floats(own: &mut [u8], partner: &[u8], weights: Weights) {
    let partner = partner.as_chunks::<4>().0;
    for (own, partner) in own.as_chunks_mut::<4>().0.iter_mut().zip(partner) {
        let [first, second] = [*own, *partner].map(f32::from_le_bytes);
        *own = (first * weights.own + second * weights.partner).to_le_bytes();
    }
}

#[inline(always)]
fn blend_halves(own: &mut [u8], partner: &[u8], weights: Weights) {
    let (mut sums, mut seconds) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (own, partner) in own.chunks_mut(2 * BLOCK).zip(partner.chunks(2 * BLOCK)) {
        let count = own.len() / 2;
        weigh(own, weights.own, &mut sums[..count]);
        weigh(partner, weights.partner, &mut seconds[..count]);
        sums.iter_mut().zip(&seconds).for_each(|(sum, second)| *sum += second);
        let mut halves = [f16::ZERO; BLOCK];
        halves[..count].convert_from_f32_slice(&sums[..count]);
        for (bytes, half) in own.as_chunks_mut::<2>().0.iter_mut().zip(halves) {
            *bytes = half.to_le_bytes();
        }
    }
}

/// Multiplies float16 elements by a weight, rounded to float16.
fn weigh(bytes: &[u8], weight: f32, products: &mut [f32]) {
    let mut halves = [f16::ZERO; BLOCK];
    let halves = &mut halves[..products.len()];
    for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *half = f16::from_le_bytes(*bytes);
    }
    halves.convert_to_f32_slice(products);
    products.iter_mut().for_each(|product| *product *= weight);
    halves.convert_from_f32_slice(products);
    halves.convert_to_f32_slice(products);
}
