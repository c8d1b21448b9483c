//! The functions of shim.c behind a safe type.
#![expect(unsafe_code, reason = "calls a C library")]

use super::{Encoding, Mode, PIXELS_MAX, TurboError};
use meetpoint_jpeg::{Picture, Region};
use std::ffi::{CStr, c_char, c_int, c_long, c_short, c_uchar, c_uint, c_ulong, c_ushort, c_void};
use std::ptr::NonNull;

/// `turbo_mode` of the shim.
#[repr(C)]
struct RawMode {
    scale_eighths: c_int,
    fast_idct: c_int,
    plain_upsampling: c_int,
}

/// `turbo_encoding` of the shim.
#[repr(C)]
struct RawEncoding {
    quality: c_int,
    luma_across: c_int,
    luma_down: c_int,
    optimise: c_int,
    progressive: c_int,
    restart_interval: c_int,
}

unsafe extern "C" {
    fn turbo_new() -> *mut c_void;
    fn turbo_free(turbo: *mut c_void);
    fn turbo_message(turbo: *const c_void) -> *const c_char;
    fn turbo_warnings(turbo: *const c_void) -> c_long;
    fn turbo_size(
        turbo: *mut c_void,
        data: *const c_uchar,
        bytes: usize,
        mode: *const RawMode,
        size: *mut c_uint,
    ) -> c_int;
    fn turbo_decode(
        turbo: *mut c_void,
        out: *mut c_uchar,
        out_bytes: usize,
        finish: c_int,
    ) -> c_int;
    fn turbo_decode_region(
        turbo: *mut c_void,
        region: *const c_uint,
        out: *mut c_uchar,
        out_bytes: usize,
    ) -> c_int;
    fn turbo_read_coefficients(
        turbo: *mut c_void,
        data: *const c_uchar,
        bytes: usize,
        components: *mut c_uint,
        planes: *mut [c_uint; 2],
        arrays: *mut *mut c_void,
    ) -> c_int;
    fn turbo_quantisation(turbo: *const c_void, component: c_uint, out: *mut c_ushort);
    fn turbo_coefficient_row(
        turbo: *mut c_void,
        arrays: *mut c_void,
        component: c_uint,
        y: c_uint,
        out: *mut c_short,
        blocks: usize,
    ) -> c_int;
    fn turbo_encode(
        turbo: *mut c_void,
        rgb: *const c_uchar,
        width: c_uint,
        height: c_uint,
        how: *const RawEncoding,
        file: *mut *mut c_uchar,
        file_bytes: *mut c_ulong,
    ) -> c_int;
    fn turbo_free_file(file: *mut c_uchar);
}

/// The coefficients of one component as libjpeg has them: no padding to whole MCUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plane {
    /// Blocks across.
    pub blocks_wide: u32,
    /// Blocks down.
    pub blocks_high: u32,
    /// Quantisation values, natural order.
    pub quantisation: [u16; 64],
    /// Quantised values, natural order (row by row), block after block, row after row.
    pub blocks: Vec<[i16; 64]>,
}

/// libjpeg-turbo with its objects and memory, for many pictures one after another.
#[derive(Debug)]
pub struct Turbo {
    raw: NonNull<c_void>,
    /// Four channels before their conversion to three.
    inks: Vec<u8>,
}

impl Turbo {
    /// A new object. Panics when out of memory.
    pub fn new() -> Self {
        // SAFETY: it takes nothing and returns a new object or null.
        let raw = unsafe { turbo_new() };
        Self { raw: NonNull::new(raw).expect("libjpeg has memory to start"), inks: Vec::new() }
    }

    /// Decodes the whole picture to RGB; CMYK becomes RGB as Pillow makes it.
    pub fn decode(
        &mut self,
        encoded: &[u8],
        mode: Mode,
        out: &mut Picture,
    ) -> Result<(), TurboError> {
        let result = self.decode_all(encoded, mode, out, true)?;
        self.checked(result)
    }

    /// Decodes in spite of warnings, and returns their number. Bytes after the only scan of a file
    /// are ignored.
    pub fn decode_damaged(
        &mut self,
        encoded: &[u8],
        mode: Mode,
        out: &mut Picture,
    ) -> Result<u64, TurboError> {
        let result = self.decode_all(encoded, mode, out, false)?;
        self.checked_ignoring_warnings(result)?;
        // SAFETY: the object exists.
        Ok(unsafe { turbo_warnings(self.raw.as_ptr()) }.unsigned_abs())
    }

    /// What the C function returns is not checked yet.
    fn decode_all(
        &mut self,
        encoded: &[u8],
        mode: Mode,
        out: &mut Picture,
        finish: bool,
    ) -> Result<c_int, TurboError> {
        let [width, height, channels] = self.size(encoded, mode)?;
        let claimed = u64::from(width) * u64::from(height);
        if claimed > PIXELS_MAX {
            return Err(TurboError::TooLarge(claimed));
        }
        let pixels = width as usize * height as usize;
        (out.width, out.height) = (width, height);
        out.pixels.resize(pixels * 3, 0);
        let direct = channels == 3;
        self.inks.resize(if direct { 0 } else { pixels * channels as usize }, 0);
        let to = if direct { &mut out.pixels } else { &mut self.inks };
        // SAFETY: `to` is written within its length only.
        let result = unsafe {
            turbo_decode(self.raw.as_ptr(), to.as_mut_ptr(), to.len(), c_int::from(finish))
        };
        if result == 0 && !direct {
            super::cmyk_to_rgb(&self.inks, &mut out.pixels);
        }
        Ok(result)
    }

    /// Decodes a region of a picture whose pixels are RGB here, reading no further than needed.
    pub fn decode_region(
        &mut self,
        encoded: &[u8],
        region: Region,
        out: &mut Picture,
    ) -> Result<(), TurboError> {
        let [width, height, channels] = self.size(encoded, Mode::default())?;
        let fits = |from: u32, length: u32, whole: u32| {
            length > 0 && from.checked_add(length).is_some_and(|end| end <= whole)
        };
        let inside = fits(region.x, region.width, width) && fits(region.y, region.height, height);
        if !inside || channels != 3 {
            return Err(TurboError::Unsupported);
        }
        (out.width, out.height) = (region.width, region.height);
        out.pixels.resize(region.width as usize * region.height as usize * 3, 0);
        let words = [region.x, region.y, region.width, region.height];
        let (to, bytes) = (out.pixels.as_mut_ptr(), out.pixels.len());
        // SAFETY: the region lies inside the picture, `to` is written within its length only.
        let result = unsafe { turbo_decode_region(self.raw.as_ptr(), words.as_ptr(), to, bytes) };
        self.checked(result)
    }

    /// Decodes the entropy-coded data alone; returns the number of blocks.
    pub fn read_coefficients(&mut self, encoded: &[u8]) -> Result<u64, TurboError> {
        let (planes, _) = self.coefficient_arrays(encoded)?;
        Ok(planes.iter().map(|[wide, high]| u64::from(*wide) * u64::from(*high)).sum())
    }

    /// The quantised coefficients of every component.
    pub fn coefficients(&mut self, encoded: &[u8]) -> Result<Vec<Plane>, TurboError> {
        let (sizes, arrays) = self.coefficient_arrays(encoded)?;
        let mut planes = Vec::new();
        for (component, [wide, high]) in (0..).zip(sizes) {
            let mut blocks = vec![[0; 64]; wide as usize * high as usize];
            for (y, row) in (0..high).zip(blocks.chunks_exact_mut(wide as usize)) {
                let (to, count) = (row.as_mut_ptr().cast(), row.len());
                // SAFETY: the arrays are those of the last read, which has these many rows, and
                // `row` has room for `count` blocks.
                let result = unsafe {
                    turbo_coefficient_row(self.raw.as_ptr(), arrays, component, y, to, count)
                };
                self.checked(result)?;
            }
            let mut quantisation = [0; 64];
            // SAFETY: the component exists, and the array has room for 64 values.
            unsafe {
                turbo_quantisation(self.raw.as_ptr(), component, quantisation.as_mut_ptr());
            }
            planes.push(Plane { blocks_wide: wide, blocks_high: high, quantisation, blocks });
        }
        Ok(planes)
    }

    /// Encodes RGB with standard Huffman tables, unless the options request others.
    pub fn encode(&mut self, picture: &Picture, how: Encoding) -> Result<Vec<u8>, TurboError> {
        let Picture { width, height, ref pixels } = *picture;
        assert_eq!(pixels.len(), width as usize * height as usize * 3);
        let raw = RawEncoding {
            quality: c_int::from(how.quality),
            luma_across: c_int::from(how.luma_factors.0),
            luma_down: c_int::from(how.luma_factors.1),
            optimise: c_int::from(how.optimise),
            progressive: c_int::from(how.progressive),
            restart_interval: c_int::from(how.restart_interval),
        };
        let (mut file, mut bytes) = (std::ptr::null_mut(), 0);
        let from = pixels.as_ptr();
        // SAFETY: `from` has width * height * 3 bytes, and the other pointers are to locals.
        let result = unsafe {
            turbo_encode(self.raw.as_ptr(), from, width, height, &raw, &mut file, &mut bytes)
        };
        self.checked(result)?;
        // SAFETY: after success `file` has `bytes` bytes, which are copied before they are freed.
        let copy = unsafe { std::slice::from_raw_parts(file, bytes as usize) }.to_vec();
        // SAFETY: libjpeg allocated it, and no reference to it remains.
        unsafe { turbo_free_file(file) };
        Ok(copy)
    }

    /// Reads the header and sets the mode; gives width, height and channels of the output.
    fn size(&mut self, encoded: &[u8], mode: Mode) -> Result<[u32; 3], TurboError> {
        let raw = RawMode {
            scale_eighths: c_int::from(mode.scale_eighths),
            fast_idct: c_int::from(mode.fast_idct),
            plain_upsampling: c_int::from(mode.plain_upsampling),
        };
        let mut size = [0; 3];
        let (from, bytes) = (encoded.as_ptr(), encoded.len());
        // SAFETY: `from` has `bytes` bytes and outlives the decode that follows in the caller.
        let result = unsafe { turbo_size(self.raw.as_ptr(), from, bytes, &raw, size.as_mut_ptr()) };
        self.checked_ignoring_warnings(result)?;
        if matches!(size[2], 3 | 4) { Ok(size) } else { Err(TurboError::Unsupported) }
    }

    /// Blocks across and down of each component, and libjpeg's arrays of them.
    fn coefficient_arrays(
        &mut self,
        encoded: &[u8],
    ) -> Result<(Vec<[u32; 2]>, *mut c_void), TurboError> {
        let (mut components, mut planes) = (0, [[0; 2]; 4]);
        let mut arrays = std::ptr::null_mut();
        let (raw, from, bytes) = (self.raw.as_ptr(), encoded.as_ptr(), encoded.len());
        let sizes = planes.as_mut_ptr();
        // SAFETY: the data are read during the call only; `sizes` has room for four components,
        // the most that the shim writes.
        let result = unsafe {
            turbo_read_coefficients(raw, from, bytes, &mut components, sizes, &mut arrays)
        };
        self.checked(result)?;
        Ok((planes[..components as usize].to_vec(), arrays))
    }

    fn checked(&self, result: c_int) -> Result<(), TurboError> {
        self.checked_ignoring_warnings(result)?;
        // SAFETY: the object exists.
        match unsafe { turbo_warnings(self.raw.as_ptr()) } {
            0 => Ok(()),
            _ => Err(TurboError::Damaged),
        }
    }

    fn checked_ignoring_warnings(&self, result: c_int) -> Result<(), TurboError> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: the message is an array inside the living object and always ends with a zero.
        let message = unsafe { CStr::from_ptr(turbo_message(self.raw.as_ptr())) };
        Err(TurboError::Refused(message.to_string_lossy().into_owned()))
    }
}

impl Default for Turbo {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Turbo {
    fn drop(&mut self) {
        // SAFETY: no reference to the object remains.
        unsafe { turbo_free(self.raw.as_ptr()) }
    }
}
