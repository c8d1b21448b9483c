//! Our methods.
//!
//! A method is a name and a closure with its own scratch memory; main.rs lists what it is compared
//! with. What is stored beside a file (entry points, coefficient forms) belongs to `sets::Picture`.

use crate::methods::Method;
use crate::sets::RECIPE;
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{Cpu, Picture, SamplePreparer};

/// All of them.
pub(crate) fn methods(cpu: Cpu) -> anyhow::Result<Vec<Method>> {
    Ok(vec![whole(), region(), sample(cpu)?])
}

fn whole() -> Method {
    let (mut decoder, mut pixels) = (Decoder::default(), Picture::default());
    Method::new("whole: ours", move |picture, _, out| {
        std::mem::swap(&mut pixels.pixels, out);
        let result = decoder.decode_into(&picture.encoded, None, &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

fn region() -> Method {
    let (mut decoder, mut pixels) = (Decoder::default(), Picture::default());
    Method::new("region: ours", move |picture, sweep, out| {
        let (region, _) = picture.draw(sweep);
        std::mem::swap(&mut pixels.pixels, out);
        let result = decoder.decode_into(&picture.encoded, Some(region), &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

/// The whole recipe.
pub(crate) fn sample(cpu: Cpu) -> anyhow::Result<Method> {
    let recipe = Recipe::from_toml(RECIPE)?;
    let bytes = recipe.output().map_or(0, |spec| spec.bytes());
    let mut preparer = SamplePreparer::new(&recipe, cpu);
    Ok(Method::new("sample: ours", move |picture, sweep, out| {
        out.resize(bytes, 0);
        Ok(preparer.prepare(&picture.encoded, picture.id(sweep), out, &mut || ())?)
    }))
}
