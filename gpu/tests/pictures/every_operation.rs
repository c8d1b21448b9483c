//! Every operation of the registry is executed by the kernels with the bits of the CPU, for random
//! keys, random parameters and pictures of many sizes, or is listed here as one that is not.

use crate::compare::{Outcome, outcomes, png, start};
use crate::generate::{Chance, Content, after, case};
use meetpoint_format::recipe::DECLARATIONS;
use meetpoint_kernels::NotExported;
use std::collections::BTreeSet;

/// Operations on pictures that only the CPU executes.
const ON_CPU_ONLY: [&str; 1] = ["random_iou_crop"];

/// Most pixels of a result that is compared.
const PIXELS_MAX: u32 = 1 << 12;

/// Cases of each operation.
const CASES: u64 = 10;

const SIZES: [(u32, u32); 4] = [(1, 1), (8, 2), (23, 17), (14, 20)];

/// A picture that is larger than every crop of several.
const LARGE: (u32, u32) = (64, 63);

#[test]
fn every_operation_is_executed_or_listed() {
    let mut compute = start();
    let (mut executed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for declaration in DECLARATIONS {
        for number in 0..CASES {
            let case = case(declaration, &mut Chance::new(number, declaration.name));
            if case.content != (Content::Picture { has_alpha: false }) {
                continue;
            }
            let crops = (!case.recipe.gives_one_picture()).then_some(LARGE);
            let pictures: Vec<Vec<u8>> = SIZES
                .into_iter()
                .chain(crops)
                .enumerate()
                .map(|(index, (width, height))| png(width, height, number * 7 + index as u64))
                .collect();
            if !after(declaration).is_empty() {
                // It needs targets, with which there are no programs.
                refused.insert(declaration.name);
                continue;
            }
            for outcome in outcomes(&mut *compute, &case.recipe, &pictures, PIXELS_MAX) {
                match outcome {
                    Outcome::Equal => {
                        executed.insert(declaration.name);
                    }
                    Outcome::NotExported(NotExported::Operation(name)) => {
                        refused.insert(name);
                    }
                    Outcome::NotExported(
                        NotExported::NotPictures
                        | NotExported::Mode(_)
                        | NotExported::Targets
                        | NotExported::Scaled,
                    )
                    | Outcome::Refused
                    | Outcome::Large => (),
                    Outcome::Different(what) => panic!("{what}\n{}", case.text),
                }
            }
        }
    }
    let listed = BTreeSet::from(ON_CPU_ONLY);
    assert_eq!(refused, listed, "operations without a program");
    for declaration in DECLARATIONS {
        let content = case(declaration, &mut Chance::new(0, declaration.name)).content;
        if matches!(content, Content::Picture { .. }) && !listed.contains(declaration.name) {
            assert!(executed.contains(declaration.name), "{} is executed", declaration.name);
        }
    }
}
