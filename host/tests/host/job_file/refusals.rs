//! Every error has file, line, column, key and remedy.

use super::{RECIPE, fault, parse, place_and_text};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::job::JobFile;
use std::path::Path;

#[test]
fn operations_at_the_top_of_a_job_are_to_be_moved_below_its_recipe() {
    let remedy = |text: &str| {
        let error = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{text}")).unwrap_err();
        error.remedy.spelled(Surface::CommandLine)
    };
    let operation = "[[operation]]\nname = \"decode\"";
    assert_eq!(remedy(operation), "write [[recipe.operation]]");
    assert_ne!(remedy(&format!("recipe = \"r.toml\"\n{operation}")), remedy(operation));
}

#[test]
fn a_misspelled_strategy_has_a_suggestion() {
    let remedy = fault("dataset = \"s\"\nbatch_size = 1\nstrategy = \"wr\"").remedy;
    let remedy = remedy.spelled(Surface::CommandLine);
    assert!(remedy.starts_with("set `strategy` to \"wrr\", or another one of "), "{remedy}");
}

#[test]
fn options_of_strategies_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    for (rest, place, words) in [
        ("strategy = \"fastest\"", (3, 12), "\"mte-feedback\""),
        ("ranks = 0", (3, 9), "from 1 to 1024"),
        ("choice = \"cheapest\"", (3, 10), "\"tail\", \"saving\""),
        ("run_ahead = 1", (3, 13), "true or false"),
        ("[mte]\nsplit = \"best\"", (4, 9), "\"optimal\""),
        ("[windowed]\nwindow = 0", (4, 10), "from 1 to"),
        ("[auto]\ngoal = \"speed\"", (4, 8), "\"energy\""),
        ("[auto]\ngoal = {time = 1.5}", (4, 16), "`auto.goal.time`"),
        ("[auto]\ngoal = {weight = 1}", (4, 9), "unknown key `auto.goal.weight`"),
        ("[auto]\norder = \"mine\"", (4, 9), "\"replayable\""),
    ] {
        let (found, text) = place_and_text(&format!("{lines}{rest}"));
        assert!(text.contains(words), "{words} in {text}");
        assert_eq!(found, Some(place), "{text}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    let rest = "shared = true\n[[device]]\nparts = [0]";
    let job = parse(&format!("{lines}{rest}\n{RECIPE}")).unwrap();
    let text = job.check().unwrap_err().in_full(Surface::CommandLine);
    assert!(text.contains("every device has every part"), "{text}");
    assert!(text.contains(":5:9: "), "{text}");
}

#[test]
fn unknown_keys_are_refused_where_they_stand() {
    let (place, text) = place_and_text("dataset = \"s\"\nbatch_size = 1\nbatchsize = 2");
    assert_eq!(place, Some((3, 1)));
    assert!(text.starts_with("jobs/job.toml:3:1: unknown key `batchsize`"), "{text}");
    let (place, text) = place_and_text("dataset=\"s\"\nbatch_size=1\n[device]\n  ratio = 1");
    assert_eq!(place, Some((4, 3)));
    assert!(text.contains("unknown key `device.ratio`") && text.contains("cpu_ratio"), "{text}");
    let lines = "dataset=\"s\"\nbatch_size=1\n[device]\nkind=\"connect\"\ncpu_ratio=1";
    assert!(place_and_text(lines).1.contains("unknown key `device.cpu_ratio`"));
}

#[test]
fn missing_keys_are_named_with_what_they_take() {
    assert!(fault("batch_size = 1").to_string().contains("the key `dataset` is missing"));
    assert!(fault("dataset = \"s\"").to_string().contains("the key `batch_size` is missing"));
    let error =
        parse("dataset = \"s\"\nbatch_size = 1\n").unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("the key `recipe` is missing"), "{error}");
    let lines = "dataset=\"s\"\nbatch_size=1\n[spool]\nkind=\"file\"";
    let (place, text) = place_and_text(lines);
    assert_eq!(place, Some((3, 1)));
    assert!(text.contains("the key `spool.directory` is missing"), "{text}");
}

#[test]
fn values_of_the_wrong_kind_or_range_are_refused_where_they_stand() {
    let cases = [
        ("batch_size = 0", "a whole number from 1 to"),
        ("batch_size = -3", "a whole number from 1 to"),
        ("batch_size = \"many\"", "holds the text \"many\""),
        ("batch_size = 1\nepochs = 0", "a whole number from 1 to"),
        ("batch_size = 1\nshuffle = 1", "true or false"),
        ("batch_size = 1\nmemory_budget = 512", "such as \"512MiB\""),
        ("batch_size = 1\nmemory_budget = \"512\"", "such as \"512MiB\""),
        ("batch_size = 1\nstrategy = \"fastest\"", "one of \"host-only\""),
        ("batch_size = 1\nstall_timeout = \"0s\"", "a time above 0"),
        ("batch_size = 1\nhost_cores = []", "an empty list, and the host needs a core"),
        ("batch_size = 1\nhost_cores = [0, -1]", "a list of core numbers"),
        ("batch_size = 1\nengine = \"fast\"", "one of \"auto\""),
        ("batch_size = 1\ngpu_decode = \"tpu\"", "such as \"cuda:0\""),
        ("batch_size = 1\ngpu_decode = 0", "such as \"cuda:0\""),
        ("batch_size = 1\n[device]\ncpu_ratio = 0.0", "above 0 and at most 1"),
        ("batch_size = 1\n[device]\ncpu_ratio = nan", "above 0 and at most 1"),
        ("batch_size = 1\n[device]\nlatency = 5", "such as \"100us\""),
        ("batch_size = 1\n[device]\nread_bandwidth = \"0MB/s\"", "such as \"500MB/s\""),
        ("batch_size = 1\n[device]\nfaults = \"die@3\"", "a list of faults"),
        ("batch_size = 1\n[accelerator]\nstep = 20", "such as \"100us\""),
        ("batch_size = 1\n[accelerator]\nkind = \"gpu\"", "one of \"emulated\""),
        ("batch_size = 1\n[mte]\nsplit = \"half\"", "equal-finish"),
        ("batch_size = 1\n[collate]\nmode = \"pad\"\nfill = nan", "to a finite number"),
        ("batch_size = 1\ndevice = 3", "a table: [device]"),
    ];
    for (lines, expected) in cases {
        let (place, text) = place_and_text(&format!("dataset = \"s\"\n{lines}"));
        assert!(text.contains(expected), "{lines}: {text}");
        let value_line = 1 + lines.lines().count();
        assert_eq!(place.map(|(line, _)| line), Some(value_line), "{lines}: {text}");
    }
}

#[test]
fn text_that_is_not_toml_is_refused_where_it_breaks() {
    let error = parse("dataset = \"s\"\nbatch_size = = 1\n").unwrap_err();
    assert_eq!(error.place.map(|(line, _)| line), Some(2), "{error}");
    for cut in 0..RECIPE.len() {
        if RECIPE.is_char_boundary(cut) {
            // A complete or truncated text is read or refused, and never panics.
            let _ = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{}", &RECIPE[..cut]));
        }
    }
}

#[test]
fn targets_of_the_recipe_of_a_job_are_read_and_their_faults_have_positions_in_the_job() {
    let job = |targets: &str| {
        let recipe = "[[recipe.operation]]\nname = \"decode\"\n\
                      [[recipe.operation]]\nname = \"center_crop\"\nsize = 8\n";
        parse(&format!("dataset = \"s\"\nbatch_size = 1\n{recipe}{targets}"))
    };
    let read = job("[recipe.targets.mask]\nkind = \"mask\"\nfill = 255\n").unwrap();
    let targets = read.recipe.targets();
    assert_eq!((targets.len(), &targets[0].column[..]), (1, "mask"));
    for (targets, place) in [
        ("[recipe.targets.mask]\nkind = \"mask\"\n  fil = 1\n", (10, 3)),
        ("[recipe.targets.\"two words\"]\nkind = \"boxes\"\nformat = \"xyxyr\"\n", (10, 10)),
        ("[recipe]\ntargets = 3\n", (9, 11)),
    ] {
        assert_eq!(job(targets).unwrap_err().place, Some(place), "{targets}");
    }
}

#[test]
fn a_fault_in_the_recipe_of_a_job_has_its_position_in_the_job() {
    let job = |recipe: &str| {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n{recipe}");
        let error = parse(&text).unwrap_err();
        (error.place, error.in_full(Surface::CommandLine))
    };
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n\n\
                             [[recipe.operation]]\nname = \"center_crop\"\n  sice = 3\n");
    assert_eq!(place, Some((8, 3)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n\
                             [[recipe.operation]]\nname = \"center_crop\"\nsize = 0\n");
    assert_eq!(place, Some((7, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decoder\"\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    assert!(text.starts_with("jobs/job.toml:4:8:"), "{text}");
    let (place, text) = job("[[recipe.operation]]\nsize = 3\n");
    assert_eq!(place, Some((3, 1)), "{text}");
    let (_, text) = job("[recipe]\nsteps = 3\n");
    assert!(text.contains("unknown key `recipe.steps`"), "{text}");
    let (_, text) = job("[recipe.operation]\nname = \"decode\"\n");
    assert!(text.contains("[[recipe.operation]]"), "{text}");
    let (_, text) = job("[recipe]\n");
    assert!(text.contains("jobs/job.toml"), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"\"\"\nde\\\"code\u{e9}\"\"\"\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n[[recipe.operation]]\n\
                             name = \"center_crop\"\nsize = [ # pixels\n  99999999999999999999,\n\
                             0x1_0,\n]\n");
    assert_eq!(place, Some((7, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = { \"a b\" = 1979-05-27 }\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    let (_, text) = job("recipe = 3\n");
    assert!(text.contains("path of a recipe file"), "{text}");
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let error =
        JobFile::load(Path::new("/no/such/job.toml")).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("/no/such/job.toml: failed to read"), "{error}");
}

#[test]
fn the_remedy_for_reuse_fits_the_sampler() {
    let remedy = |keys: &str, tables: &str| {
        let lines = format!("dataset = \"set\"\nbatch_size = 4\nreuse = true\n{keys}\n{tables}");
        let error = parse(&format!("{lines}\n{RECIPE}")).unwrap().check().unwrap_err();
        let text = error.in_full(Surface::CommandLine);
        assert!(text.contains("retains batches for the next epoch"), "{text}");
        ["sampler = \"sequential\"", "shuffle = false in [sampler]", "shuffle = false"]
            .into_iter()
            .find(|setting| text.contains(setting))
    };
    let of_filter = "[sampler]\nname = \"filter\"\nwhere = \"label == 1\"";
    let of_weighted = "[sampler]\nname = \"weighted\"\nweights = \"weight\"";
    assert_eq!(remedy("", ""), Some("shuffle = false"));
    assert_eq!(remedy("sampler = \"shuffled\"", ""), Some("sampler = \"sequential\""));
    assert_eq!(remedy("", of_filter), Some("shuffle = false in [sampler]"));
    assert_eq!(remedy("", of_weighted), None);
    assert_eq!(remedy("sampler = \"repeated\"", ""), None);
}
