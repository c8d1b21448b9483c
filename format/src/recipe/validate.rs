//! Checks that each operation can follow the ones before it, and derives the type of the result.

use super::Operation;
use super::declaration::{Bounds, InputType, Key, KeyType, Phase, Presence, ValueKind};
use super::error::{Fault, Problem};
use super::named_file::NamedFile;
use super::sample_type::{PIXELS_MAX, SampleType};
use super::value::Value;
use crate::random::OPERATIONS_MAX;

/// Checks a whole recipe and reports the first problem in the order of the operations. Returns the
/// type of a prepared sample.
pub(super) fn check(operations: &[Operation]) -> Result<SampleType, Problem> {
    if operations.is_empty() {
        return Err(Problem::of_recipe(
            "the recipe has no operations",
            "begin with an operation named \"decode\"",
        ));
    }
    let count = count(operations);
    if count > OPERATIONS_MAX as usize {
        return Err(Problem::of_recipe(
            format!("the recipe has {count} operations"),
            format!("at most {OPERATIONS_MAX}"),
        ));
    }
    let mut sample = SampleType::ENCODED;
    // The operation that produced the current type of value.
    let mut giver = "";
    // The last operation on the whole tensor.
    let mut on_tensor = None;
    for (index, operation) in operations.iter().enumerate() {
        let kind = sample.kind;
        match operation.declaration().phase {
            Phase::Tensor => on_tensor = Some(operation.name()),
            Phase::Elements => check_order(operation, on_tensor)
                .map_err(|fault| fault.of_operation(index, operation.name()))?,
            Phase::Decode
            | Phase::Geometry
            | Phase::Pixels
            | Phase::Picture
            | Phase::Series
            | Phase::Text
            | Phase::Choice
            | Phase::Batch => (),
        }
        follow(operation, index, &mut sample, giver)?;
        if sample.kind != kind {
            giver = operation.name();
        }
    }
    Ok(sample)
}

/// Checks that an operation on elements precedes those on the whole tensor.
fn check_order(operation: &Operation, on_tensor: Option<&str>) -> Result<(), Fault> {
    let Some(on_tensor) = on_tensor else { return Ok(()) };
    let name = operation.name();
    let problem = format!("cannot follow `{on_tensor}`, which changes the finished tensor");
    Err(Fault::new(problem, format!("move `{name}` up, before `{on_tensor}`")))
}

/// Number of operations, including contained ones.
fn count(operations: &[Operation]) -> usize {
    operations.iter().map(|operation| 1 + count(operation.content())).sum()
}

/// Checks that an operation can follow on a sample, and sets the sample's type to that of the
/// result.
fn follow(
    operation: &Operation,
    index: usize,
    sample: &mut SampleType,
    giver: &str,
) -> Result<(), Problem> {
    let declaration = operation.declaration();
    let of_operation = |fault: Fault| fault.of_operation(index, declaration.name);
    for (key, value) in declaration.keys.iter().zip(operation.values()) {
        check_value(key, &value).map_err(of_operation)?;
    }
    let is_on_batches = operation.is_on_batches();
    // An operation that contains operations on batches accepts what those accept.
    if !is_on_batches || declaration.phase == Phase::Batch {
        check_input(declaration.takes, sample, giver).map_err(of_operation)?;
    }
    if let Some(space) = sample.space.filter(|_| declaration.phase == Phase::Pixels) {
        let name = space.name();
        let problem = format!("takes RGB or grey and cannot follow `convert_color` to {name}");
        return Err(of_operation(Fault::new(problem, "move it up, before `convert_color`")));
    }
    check_content(operation, sample, giver)
        .map_err(|problem| problem.inside(index, declaration.name))?;
    check_pictures(operation, sample).map_err(of_operation)?;
    operation.follow(sample).map_err(of_operation)?;
    sample.pictures *= operation.pictures();
    sample.kind = match declaration.gives.kind {
        _ if is_on_batches => ValueKind::Batch,
        ValueKind::Same => sample.kind,
        kind => kind,
    };
    sample.size = operation.size(sample.size);
    check_pixels(declaration.keys, sample).map_err(of_operation)
}

/// Checks an operation that produces several pictures from one, and one on batches, on a sample
/// that may consist of several pictures already.
fn check_pictures(operation: &Operation, sample: &SampleType) -> Result<(), Fault> {
    let name = operation.name();
    match sample.pictures {
        1 => Ok(()),
        count if operation.is_on_batches() => {
            let problem = format!("takes one picture for each sample, and there are {count} here");
            Err(Fault::new(
                problem,
                format!("remove `{name}`, or the operations that give several pictures"),
            ))
        }
        count if operation.pictures() > 1 => {
            let problem = format!("takes one picture, and there are {count} here");
            Err(Fault::new(problem, "keep only one of the operations that give several pictures"))
        }
        _ => Ok(()),
    }
}

/// Checks the operations that an operation contains: each takes an image and returns one with the
/// same number of channels, so that later operations do not depend on which of them are executed;
/// or all of them are on batches. Those determine the conversion of labels even if they are not
/// executed.
fn check_content(
    operation: &Operation,
    input: &mut SampleType,
    giver: &str,
) -> Result<(), Problem> {
    let is_on_batches = operation.is_on_batches();
    let mut sample = *input;
    for (index, inner) in operation.content().iter().enumerate() {
        let (name, outer) = (inner.name(), operation.name());
        if inner.is_on_batches() != is_on_batches {
            let problem = format!("takes no batch, but `{outer}` contains operations on batches");
            let fault = Fault::new(problem, format!("move it up, before `{outer}`"));
            return Err(fault.of_operation(index, name));
        }
        if !is_on_batches && !operation.is_sequence() {
            // Any of them may be the first.
            sample = *input;
        }
        follow(inner, index, &mut sample, giver)?;
        let fault = if is_on_batches {
            input.labels = sample.labels;
            continue;
        } else if sample.kind != input.kind {
            let problem = format!("gives a tensor, but `{outer}` contains operations on images");
            Fault::new(problem, format!("move it after `{outer}`"))
        } else if sample.channels != input.channels {
            let problem = format!(
                "changes the number of channels from {} to {}, but may not be executed",
                input.channels, sample.channels
            );
            Fault::new(problem, "use an operation that leaves the number of channels as it is")
        } else if sample.space != input.space {
            let problem = "changes the colour space, but may not be executed";
            Fault::new(problem, format!("move it after `{outer}`"))
        } else if sample.pictures != input.pictures {
            let problem = format!("gives {} pictures, but may not be executed", sample.pictures);
            Fault::new(problem, format!("move it after `{outer}`"))
        } else {
            continue;
        };
        return Err(fault.of_operation(index, name));
    }
    Ok(())
}

/// Checks a value against the declared range of its key.
pub(super) fn check_value(key: &Key, value: &Value) -> Result<(), Fault> {
    let is_right = match (key.kind, value) {
        (KeyType::Size { least, most, .. }, Value::Whole(side)) => (least..=most).contains(side),
        (KeyType::Size { least, most, .. }, Value::Sides(sides)) => {
            sides.iter().all(|side| (least..=most).contains(side))
        }
        (KeyType::Whole { choices }, Value::Whole(number)) => choices.contains(number),
        (KeyType::Number(bounds), Value::Number(number)) => bounds.contains(*number),
        (KeyType::Interval { bounds, .. }, Value::Numbers(ends)) => is_interval(bounds, ends),
        (KeyType::Word { choices }, Value::Word(word)) => choices.contains(word),
        (KeyType::SwitchOrWord { choices }, Value::Word(word)) => choices.contains(word),
        (KeyType::PerChannel, Value::Numbers(numbers)) => !numbers.is_empty(),
        (KeyType::Weights, Value::Numbers(weights)) => are_weights(weights),
        (KeyType::Operations, Value::Operations(operations)) => !operations.is_empty(),
        (KeyType::Switch | KeyType::SwitchOrWord { .. }, Value::Switch(_)) => true,
        (KeyType::WholeIn { least, most }, Value::Whole(number)) => (least..=most).contains(number),
        (KeyType::WholeOrWord { least, most, .. }, Value::Whole(number)) => {
            (least..=most).contains(number)
        }
        (KeyType::WholeOrWord { choices, .. }, Value::Word(word)) => choices.contains(word),
        (
            KeyType::Wholes { least, most, .. } | KeyType::WholeList { least, most, .. },
            Value::Wholes(numbers),
        ) => numbers.iter().all(|number| (least..=most).contains(number)),
        (KeyType::Numbers { bounds, .. }, Value::Numbers(numbers)) => {
            numbers.iter().all(|number| bounds.contains(*number))
        }
        (KeyType::Names, Value::Names(names)) => {
            names.iter().all(|name| !name.is_empty())
                && names.iter().enumerate().all(|(at, name)| !names[..at].contains(name))
        }
        (KeyType::Pairs { count_max }, Value::Pairs(pairs)) => pairs.len() <= count_max,
        (KeyType::File, Value::File(path)) => !path.is_empty(),
        (KeyType::Sha256, Value::Digest(digits)) => NamedFile::is_digest(digits),
        (_, Value::Absent) => key.presence == Presence::Default(Value::Absent),
        (kind, value) => panic!("`{}` has the value {value:?}, but is a {kind:?}", key.name),
    };
    if is_right {
        return Ok(());
    }
    let problem = match (key.kind, value) {
        (KeyType::Size { least, most, .. }, Value::Sides([height, width])) => {
            let is_height_right = (least..=most).contains(height);
            format!("holds {}", if is_height_right { width } else { height })
        }
        (_, Value::Whole(number)) => format!("holds {number}"),
        (_, value) => format!("is {}", value.to_toml()),
    };
    Err(Fault::of_value(key.name, problem, key.instruction()))
}

/// Whether the list is empty, or all weights are finite and not negative and at least one is not 0.
fn are_weights(weights: &[f64]) -> bool {
    let sum: f64 = weights.iter().sum();
    weights.is_empty() || weights.iter().all(|it| *it >= 0.0) && sum > 0.0 && sum.is_finite()
}

fn is_interval(bounds: Bounds, ends: &[f64]) -> bool {
    let [low, high] = ends else { return false };
    bounds.contains(*low) && bounds.contains(*high) && low <= high
}

/// Checks that an operation accepts its input; `giver` is the operation that produced it.
fn check_input(takes: &[InputType], sample: &SampleType, giver: &str) -> Result<(), Fault> {
    let dtype = sample.dtype.name();
    let of_kind = takes.iter().find(|it| it.kind == sample.kind);
    let all_of_kind = || takes.iter().filter(|it| it.kind == sample.kind);
    let is_taken = |it: &InputType| {
        let has_channels = it.channels.is_empty() || it.channels.contains(&sample.channels);
        let is_typed = it.dtypes.contains(&dtype) && has_channels;
        it.kind == ValueKind::Encoded || is_typed
    };
    if all_of_kind().any(is_taken) {
        return Ok(());
    }
    let wants = |kind| takes.iter().any(|it| it.kind == kind);
    if sample.kind == ValueKind::Encoded {
        let (what, decoders) = match takes_series(takes) {
            true => ("sample", decoders(takes)),
            false => ("picture", "\"decode\""),
        };
        let problem = format!("comes before the {what} is decoded");
        return Err(Fault::new(problem, format!("the first operation must be {decoders}")));
    }
    if wants(ValueKind::Encoded) {
        let remedy = "remove it: a recipe decodes once, at its beginning";
        let what = if sample.series.is_some() { "sample" } else { "picture" };
        return Err(Fault::new(format!("the {what} is decoded already"), remedy));
    }
    if sample.kind == ValueKind::Batch {
        let kinds: Vec<&str> = takes.iter().map(|it| it.kind.name()).collect();
        let kinds = kinds.join(" or ");
        let problem = format!("takes {kinds} and cannot follow `{giver}`, which gives a batch");
        return Err(Fault::new(problem, format!("move it up, before `{giver}`")));
    }
    if of_kind.is_none() && (sample.series.is_some() || takes_series(takes)) {
        return Err(wrong_kind(takes, sample, giver));
    }
    if let Some(wanted) = of_kind.filter(|_| sample.series.is_some()) {
        let channels: Vec<String> = wanted.channels.iter().map(u32::to_string).collect();
        let (channels, count, kind) = (channels.join(" or "), sample.channels, wanted.kind.name());
        if InputType::TEXTS.contains(&wanted.kind) {
            let problem = format!("takes {kind} in {channels} planes, and there are {count} here");
            return Err(Fault::new(problem, "change `planes` of `pad_sequence`"));
        }
        let problem = format!("takes {kind} with {channels} channels, and there are {count} here");
        return Err(Fault::new(problem, "put `select_channels` before it, or leave it out"));
    }
    if sample.kind == ValueKind::Tensor && wants(ValueKind::Image) && !wants(ValueKind::Tensor) {
        let problem = format!("takes an image and cannot follow `{giver}`, which gives a tensor");
        return Err(Fault::new(problem, format!("move it up, before `{giver}`")));
    }
    if of_kind.is_some_and(|it| it.kind == ValueKind::Image) {
        return Err(wrong_image(all_of_kind(), sample, giver));
    }
    let mut dtypes: Vec<&str> = Vec::new();
    let has_tensor = wants(ValueKind::Tensor);
    let of_tensors = takes.iter().filter(|it| !has_tensor || it.kind == ValueKind::Tensor);
    for dtype in of_tensors.flat_map(|it| it.dtypes).copied() {
        if !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
    }
    let problem =
        format!("takes a tensor of {}, but the values are {dtype} here", dtypes.join(" or "));
    Err(Fault::new(
        problem,
        "put `to_dtype` to float32 before it, with `scale` for values from 0 to 1",
    ))
}

/// Whether an operation accepts only sound, spectrograms, signals, text or tokens.
fn takes_series(takes: &[InputType]) -> bool {
    let is_series = |it: &InputType| InputType::SERIES.iter().any(|series| series.kind == it.kind);
    takes.iter().all(|it| is_series(it) || InputType::TEXTS.contains(&it.kind))
}

/// The operations that decode to a type that another accepts.
fn decoders(takes: &[InputType]) -> &'static str {
    let gives = |kind| takes.iter().any(|it| it.kind == kind);
    if takes.iter().any(|it| InputType::TEXTS.contains(&it.kind)) {
        return "\"decode_text\"";
    }
    let audio = gives(ValueKind::Audio) || gives(ValueKind::Spectrogram);
    match (audio, gives(ValueKind::Signal)) {
        (true, true) => "\"decode_audio\" or \"decode_signal\"",
        (false, true) => "\"decode_signal\"",
        (_, false) => "\"decode_audio\"",
    }
}

/// Refuses a value of another type, if either type is sound, a spectrogram or a signal.
fn wrong_kind(takes: &[InputType], sample: &SampleType, giver: &str) -> Fault {
    let kinds: Vec<&str> = takes.iter().map(|it| it.kind.name()).collect();
    let (wanted, found) = (kinds.join(" or "), sample.kind.name());
    let found = match sample.kind {
        ValueKind::Audio | ValueKind::Text | ValueKind::Tokens => found.to_owned(),
        ValueKind::Image | ValueKind::Embedding => format!("an {found}"),
        ValueKind::Encoded
        | ValueKind::Spectrogram
        | ValueKind::Signal
        | ValueKind::Same
        | ValueKind::Tensor
        | ValueKind::Batch => format!("a {found}"),
    };
    let problem = format!("takes {wanted} and cannot follow `{giver}`, which gives {found}");
    let is_text = |kind| InputType::TEXTS.contains(&kind);
    let takes_audio = takes.iter().any(|it| it.kind == ValueKind::Audio);
    let is_earlier = sample.kind == ValueKind::Spectrogram && takes_audio
        || is_text(sample.kind) && takes.iter().all(|it| is_text(it.kind))
        || sample.kind == ValueKind::Tensor && sample.series.is_some() == takes_series(takes);
    let remedy = match (is_earlier, takes_series(takes)) {
        (true, _) => format!("move it up, before `{giver}`"),
        (false, true) => format!("leave it out, or begin with {}", decoders(takes)),
        (false, false) => "leave it out, or begin with \"decode\"".to_owned(),
    };
    Fault::new(problem, remedy)
}

/// Refuses an image with another element type or number of channels.
fn wrong_image<'a>(
    wanted: impl Iterator<Item = &'a InputType>,
    sample: &SampleType,
    giver: &str,
) -> Fault {
    let wanted = wanted.map(|it| {
        let channels: Vec<String> = it.channels.iter().map(u32::to_string).collect();
        format!("{} with {} channels", it.dtypes.join(" or "), channels.join(" or "))
    });
    let wanted = wanted.collect::<Vec<_>>().join(", or of ");
    let (found, count) = (sample.dtype.name(), sample.channels);
    let problem = format!(
        "takes an image of {wanted} and cannot follow `{giver}`, which gives an image of {found} \
         with {count}"
    );
    Fault::new(problem, "leave it out, or set `mode` of `decode` to \"rgb\" or \"gray\"")
}

/// Checks the number of pixels of a result, if it is the same for every picture.
fn check_pixels(keys: &[Key], sample: &SampleType) -> Result<(), Fault> {
    let Some((height, width)) = sample.size else { return Ok(()) };
    let pixels = u64::from(height) * u64::from(width);
    if pixels <= PIXELS_MAX {
        return Ok(());
    }
    let problem = format!("asks for {height} x {width}, which are {pixels} pixels");
    let remedy = format!("at most {PIXELS_MAX} pixels");
    let size = keys.iter().find(|key| matches!(key.kind, KeyType::Size { .. }));
    Err(match size {
        Some(key) => Fault::of_value(key.name, problem, remedy),
        None => Fault::new(problem, remedy),
    })
}
