//! The conversion of elements on the way to the device.

use super::recorded::recorded;
use super::{NEVER, content, noise};
use crate::delivery::{
    Arithmetic, Conversion, Delivery, DeliveryLimits, ElementBytes, Float, Order, Piece, Target,
    bfloat16_bits,
};

const ARITHMETIC: Arithmetic = Arithmetic {
    scale: 1.0 / 255.0,
    divides: false,
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
};

/// The expected elements of a batch, computed independently of the kernels.
fn expected(conversion: &Conversion, bytes: &[u8], plane: usize, samples: usize) -> Vec<u8> {
    let channels = conversion.channels as usize;
    let is_planes = conversion.order == Order::Planes || channels == 1;
    let mut out = Vec::new();
    for sample in 0..samples {
        let picture = &bytes[sample * plane * channels..][..plane * channels];
        for at in 0..plane * channels {
            let (channel, byte) = match conversion.order {
                _ if is_planes => (at / plane, picture[at]),
                Order::Pixels => (at % 3, picture[at]),
                Order::PixelsToPlanes => (at / plane, picture[3 * (at % plane) + at / plane]),
                Order::Planes => unreachable!("handled above"),
            };
            let index = 256 * channel + usize::from(byte);
            match &conversion.elements {
                ElementBytes::Table32(table) => out.extend(table[index].to_le_bytes()),
                ElementBytes::Table16(table) => out.extend(table[index].to_le_bytes()),
                ElementBytes::Arithmetic(it, float) => {
                    let value = it.element(channel, byte);
                    match float {
                        Float::Float32 => out.extend(value.to_le_bytes()),
                        Float::Bfloat16 => out.extend(bfloat16_bits(value).to_le_bytes()),
                    }
                }
            }
        }
    }
    out
}

#[test]
fn every_order_and_element_type_is_converted_at_every_size() {
    let divided = Arithmetic { scale: 255.0, divides: true, ..ARITHMETIC };
    let overflowing = Arithmetic { scale: 1e36, std: [1e-10; 3], ..ARITHMETIC };
    let all_elements = [
        ElementBytes::Table32(Box::new(std::array::from_fn(|at| 0x3f00_0000 + 7919 * at as u32))),
        ElementBytes::Table16(Box::new(std::array::from_fn(|at| (at * 83) as u16))),
        ElementBytes::Arithmetic(ARITHMETIC, Float::Float32),
        ElementBytes::Arithmetic(divided, Float::Float32),
        ElementBytes::Arithmetic(ARITHMETIC, Float::Bfloat16),
        ElementBytes::Arithmetic(divided, Float::Bfloat16),
        // Numbers for which products with reciprocals are not exact.
        ElementBytes::Arithmetic(overflowing, Float::Float32),
    ];
    let orders = [Order::Planes, Order::Pixels, Order::PixelsToPlanes];
    let mut conversions = Vec::new();
    for elements in &all_elements {
        for order in orders {
            for channels in [1, 3] {
                conversions.push(Conversion { elements: elements.clone(), order, channels });
            }
        }
    }
    let (streams, _log) = recorded();
    let mut delivery = Delivery::new(streams, &conversions, DeliveryLimits::default()).unwrap();
    for (plane, samples) in [
        (1, 1),
        (1, 7),
        (2, 3),
        (3, 2),
        (4, 1),
        (5, 5),
        (8, 3),
        (15, 2),
        (16, 2),
        (64, 3),
        (77, 2),
        (840, 2),
    ] {
        for (number, conversion) in conversions.iter().enumerate() {
            let count = plane * samples * conversion.channels as usize;
            let bytes = noise(count);
            let target = Target::Converted {
                offset: 256,
                conversion: number,
                plane: plane as u32,
                samples: samples as u32,
                is_rounded: false,
            };
            let size = conversion.elements.bytes() * count;
            let piece = Piece::new(&bytes, target);
            let batch = delivery.deliver(&[piece], 256 + size, NEVER).unwrap();
            let found = content(&mut delivery, batch.address() + 256, size);
            let expected = expected(conversion, &bytes, plane, samples);
            assert!(found == expected, "{conversion:?}, {samples} pictures of {plane} pixels");
        }
    }
}

#[test]
fn arithmetic_agrees_with_all_256_values() {
    let divided = Arithmetic { scale: 255.0, divides: true, ..ARITHMETIC };
    for arithmetic in [ARITHMETIC, divided] {
        assert!(arithmetic.without_division().is_some(), "not by a table: {arithmetic:?}");
        for float in [Float::Float32, Float::Bfloat16] {
            let elements = ElementBytes::Arithmetic(arithmetic, float);
            let size = elements.bytes();
            let conversion = Conversion { elements, order: Order::Pixels, channels: 3 };
            let (streams, _log) = recorded();
            let conversions = std::slice::from_ref(&conversion);
            let mut delivery =
                Delivery::new(streams, conversions, DeliveryLimits::default()).unwrap();
            let bytes: Vec<u8> = (0..768).map(|at| (at / 3) as u8).collect();
            let target = Target::Converted {
                offset: 0,
                conversion: 0,
                plane: 256,
                samples: 1,
                is_rounded: false,
            };
            let piece = Piece::new(&bytes, target);
            let batch = delivery.deliver(&[piece], 768 * size, NEVER).unwrap();
            let found = content(&mut delivery, batch.address(), 768 * size);
            assert!(found == expected(&conversion, &bytes, 256, 1), "{conversion:?}");
        }
    }
}

#[test]
fn a_large_batch_is_divided_between_blocks_and_rounds() {
    let elements = ElementBytes::Arithmetic(ARITHMETIC, Float::Float32);
    for order in [Order::Planes, Order::Pixels] {
        let conversion = Conversion { elements: elements.clone(), order, channels: 3 };
        let (streams, _log) = recorded();
        let conversions = std::slice::from_ref(&conversion);
        let mut delivery = Delivery::new(streams, conversions, DeliveryLimits::default()).unwrap();
        let (plane, samples) = (10_004, 1);
        let bytes = noise(3 * plane);
        let target = Target::Converted {
            offset: 0,
            conversion: 0,
            plane: plane as u32,
            samples,
            is_rounded: false,
        };
        let piece = Piece::new(&bytes, target);
        let batch = delivery.deliver(&[piece], 12 * plane, NEVER).unwrap();
        let found = content(&mut delivery, batch.address(), 12 * plane);
        assert!(found == expected(&conversion, &bytes, plane, 1), "{order:?}");
    }
}

#[test]
fn bfloat16_is_rounded_to_nearest_even() {
    for (value, bits) in [
        (1.0, 0x3f80),
        (f32::from_bits(0x3f80_8000), 0x3f80),
        (f32::from_bits(0x3f80_8001), 0x3f81),
        (f32::from_bits(0x3f81_8000), 0x3f82),
        (-0.0, 0x8000),
        (f32::MAX, 0x7f80),
        (f32::from_bits(0x7f80_0001), 0x7fc0),
    ] {
        assert_eq!(bfloat16_bits(value), bits, "{value}");
    }
}

#[test]
fn a_batch_without_samples_is_delivered_first() {
    let (streams, _log) = recorded();
    let elements = ElementBytes::Arithmetic(ARITHMETIC, Float::Float32);
    let conversion = Conversion { elements, order: Order::Planes, channels: 3 };
    let conversions = std::slice::from_ref(&conversion);
    let mut delivery = Delivery::new(streams, conversions, DeliveryLimits::default()).unwrap();
    for (plane, samples) in [(0, 0), (16, 1)] {
        let bytes = noise(3 * (plane * samples) as usize);
        let target =
            Target::Converted { offset: 0, conversion: 0, plane, samples, is_rounded: false };
        let batch = delivery.deliver(&[Piece::new(&bytes, target)], 256, NEVER).unwrap();
        let expected = expected(&conversion, &bytes, plane as usize, samples as usize);
        assert!(content(&mut delivery, batch.address(), expected.len()) == expected);
    }
}
