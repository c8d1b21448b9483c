//! Operations on batches: their order, and their effect on labels.

use crate::recipe::{Recipe, RecipeError, SoftLabels, ValueKind};

const BEFORE: &str =
    "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'center_crop'\nsize = 8\n";

fn after_crop(tables: &[&str]) -> Result<Recipe, RecipeError> {
    let tables = tables.iter().map(|table| format!("[[operation]]\n{table}\n"));
    Recipe::from_toml(&format!("{BEFORE}{}", tables.collect::<String>()))
}

const MIX_UP: &str = "name = 'mix_up'\nnum_classes = 10";
const CUT_MIX: &str = "name = 'cut_mix'\nnum_classes = 10";

#[test]
fn a_batch_has_the_tensors_of_its_samples_and_states_the_type_of_labels() {
    let plain = after_crop(&[]).unwrap();
    assert_eq!(plain.labels(), None);
    let choice = format!(
        "name = 'random_choice'\n[[operation.operations]]\n{MIX_UP}\n[[operation.operations]]\n\
         {CUT_MIX}"
    );
    let apply = format!("name = 'random_apply'\n[[operation.operations]]\n{MIX_UP}");
    let one_hot = "name = 'one_hot'\nnum_classes = 10";
    let timm = "name = 'timm_mixup'\nnum_classes = 10\nlabel_smoothing = 0";
    for table in [MIX_UP, CUT_MIX, one_hot, timm, &choice, &apply] {
        let recipe = after_crop(&[table]).unwrap();
        assert_eq!(recipe.labels(), Some(SoftLabels { classes: 10, smoothing: 0.0 }), "{table}");
        assert_eq!(recipe.output(), plain.output());
        assert_eq!(recipe.result().kind, ValueKind::Batch);
        let (on_samples, on_batches) = recipe.split();
        assert_eq!((on_samples.len(), on_batches.len()), (2, 1));
        assert_eq!(recipe.is_deterministic(), table == one_hot);
        assert_eq!(Recipe::from_toml(&recipe.to_toml()).as_ref(), Ok(&recipe));
    }
    let several = after_crop(&[one_hot, &choice, MIX_UP]).unwrap();
    assert_eq!((several.split().0.len(), several.split().1.len()), (2, 3));
}

#[test]
fn an_operation_on_samples_cannot_follow_one_on_batches_and_the_error_names_both_types() {
    for (table, takes) in [
        ("name = 'random_horizontal_flip'", "image"),
        ("name = 'layout'\nlayout = 'NCHW'", "image or tensor"),
        ("name = 'random_erasing'", "image or tensor"),
        ("name = 'random_apply'\noperations = [{ name = 'random_invert' }]", "image"),
    ] {
        let error = after_crop(&[MIX_UP, table]).unwrap_err();
        let words = format!("takes {takes} and cannot follow `mix_up`, which gives a batch");
        assert!(error.to_string().contains(&words), "{error}");
        assert_eq!(error.remedy, "move it up, before `mix_up`");
        assert_eq!(error.place.map(|(line, _)| line), Some(10), "{error}");
    }
    let first = Recipe::from_toml(&format!("[[operation]]\n{MIX_UP}\n")).unwrap_err();
    assert!(first.to_string().contains("before the picture is decoded"), "{first}");
    let words = "operation 4 (decode): the picture is decoded already";
    assert!(after_crop(&[MIX_UP, "name = 'decode'"]).unwrap_err().to_string().contains(words));
}

#[test]
fn targets_are_refused_by_operations_that_mix_pictures() {
    let with_mask = |table: &str| {
        let text = format!("{BEFORE}[[operation]]\n{table}\n[targets.mask]\nkind = 'mask'\n");
        Recipe::from_toml(&text)
    };
    for table in [MIX_UP, CUT_MIX, "name = 'timm_mixup'\nnum_classes = 10"] {
        let error = with_mask(table).unwrap_err();
        assert!(error.to_string().contains("target \"mask\" (mask)"), "{error}");
    }
    assert!(with_mask("name = 'one_hot'\nnum_classes = 10").is_ok());
}

#[test]
fn operations_on_batches_and_on_images_are_not_contained_in_one() {
    let apply = format!(
        "name = 'random_apply'\n[[operation.operations]]\nname = 'random_invert'\n\
         [[operation.operations]]\n{MIX_UP}"
    );
    let error = after_crop(&[&apply]).unwrap_err();
    let words = "operation 3.1 (random_invert in random_apply): takes no batch";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn operations_on_batches_agree_on_what_labels_become() {
    let other = CUT_MIX.replace("10", "12");
    let smoothed = format!("{CUT_MIX}\nlabel_smoothing = 0.1");
    for (second, words) in [
        (&other[..], "`num_classes` is 12, but 10 before"),
        (&smoothed[..], "`label_smoothing` is 0.1, but 0.0 before"),
    ] {
        let within = format!(
            "name = 'random_choice'\n[[operation.operations]]\n{MIX_UP}\n\
             [[operation.operations]]\n{second}"
        );
        for tables in [&[MIX_UP, second][..], &[&within[..]][..]] {
            let error = after_crop(tables).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let timm = |keys: &str| format!("name = 'timm_mixup'\nnum_classes = 10\n{keys}");
    for (table, words) in [
        (format!("{MIX_UP}\nmode = 'pair'"), "`mode` is \"pair\", but the partner"),
        (format!("{CUT_MIX}\nmode = 'pair'"), "`mode` is \"pair\", but the partner"),
        (timm("mixup_alpha = 0"), "`mixup_alpha` is 0, and so is `cutmix_alpha`"),
        (timm("cutmix_alpha = 0.001"), "`cutmix_alpha` is 0.001"),
        (timm("cutmix_minmax = [0.5, 0.6]"), "leaves no length between 4 and 4 of 8"),
    ] {
        let error = after_crop(&[&table]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    for table in [
        format!("{MIX_UP}\nmode = 'pair'\npartner = 'mirrored'"),
        timm("mixup_alpha = 0\ncutmix_minmax = [0.2, 0.8]"),
    ] {
        after_crop(&[&table]).unwrap();
    }
}

#[test]
fn a_row_of_labels_sums_up_to_one() {
    for (classes, smoothing) in [(10, 0.0), (1000, 0.1), (1, 0.3), (7, 1.0)] {
        let soft = SoftLabels { classes, smoothing };
        let others = f64::from(soft.off()) * f64::from(classes - 1);
        assert!((f64::from(soft.on()) + others - 1.0).abs() < 1e-5, "{soft:?}");
    }
}
