//! Initial inputs for files that are not pictures, from the golden files of the kernels.

/// A recording, recognised by its first bytes.
pub fn audio(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_mp3 = bytes.starts_with(b"ID3") || bytes.starts_with(&[0xff, 0xfb]);
    let is_audio = is_mp3 || bytes.starts_with(b"RIFF") || bytes.starts_with(b"fLaC");
    if is_audio { vec![bytes.to_vec()] } else { Vec::new() }
}

/// A NumPy file of measurements, and one of the same with another type in its header.
pub fn signal(bytes: &[u8]) -> Vec<Vec<u8>> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Vec::new();
    }
    let mut other = bytes.to_vec();
    if let Some(at) = bytes.windows(3).position(|it| it == b"<f8") {
        other[at + 2] = b'4';
    }
    vec![bytes.to_vec(), other]
}

/// Small pictures of both types, independent of the file.
pub fn pnm(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (width, height) = (1 + bytes.len() % 19, 1 + bytes.len() % 7);
    let pixels = |channels: usize| (0..width * height * channels).map(|at| (at * 37) as u8);
    let grey: Vec<u8> = format!("P5\n# a comment\n{width} {height}\n255\n").into_bytes();
    let colour: Vec<u8> = format!("P6 {width}\t{height} 255 ").into_bytes();
    vec![
        grey.into_iter().chain(pixels(1)).collect(),
        colour.into_iter().chain(pixels(3)).collect(),
    ]
}

/// The documents of the golden file of texts: each a page of HTML or a text.
pub fn documents(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Ok(expected) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return Vec::new();
    };
    let pages = expected["html"].as_array().into_iter().flatten().map(|case| &case[0]);
    let texts = expected["texts"].as_array().into_iter().flatten();
    let documents = pages.chain(texts).filter_map(serde_json::Value::as_str);
    documents.map(|text| text.as_bytes().to_vec()).collect()
}

/// A tokenizer or a table.
pub fn recipe_file(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![bytes.to_vec()]
}
