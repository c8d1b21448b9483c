//! The content of a picture: a sky, ridges of land, lit objects with edges, a lens and a sensor.

use super::noise::{Field, RandomNumbers};

type Colour = [f32; 3];

/// Colours of a class: sky above and at the horizon, then land from far to near, then objects.
struct Palette {
    sky: [Colour; 2],
    land: [Colour; 3],
    objects: [Colour; 3],
}

const PALETTES: [Palette; 4] = [
    Palette {
        sky: [[92.0, 140.0, 205.0], [205.0, 220.0, 232.0]],
        land: [[86.0, 128.0, 150.0], [52.0, 104.0, 132.0], [196.0, 178.0, 138.0]],
        objects: [[236.0, 236.0, 230.0], [178.0, 52.0, 44.0], [70.0, 84.0, 96.0]],
    },
    Palette {
        sky: [[120.0, 160.0, 214.0], [240.0, 214.0, 176.0]],
        land: [[186.0, 134.0, 96.0], [204.0, 154.0, 98.0], [222.0, 184.0, 126.0]],
        objects: [[120.0, 74.0, 50.0], [96.0, 112.0, 66.0], [210.0, 196.0, 170.0]],
    },
    Palette {
        sky: [[150.0, 182.0, 206.0], [214.0, 222.0, 214.0]],
        land: [[84.0, 112.0, 88.0], [58.0, 92.0, 52.0], [88.0, 104.0, 46.0]],
        objects: [[92.0, 66.0, 46.0], [168.0, 150.0, 60.0], [44.0, 66.0, 36.0]],
    },
    Palette {
        sky: [[132.0, 146.0, 166.0], [206.0, 204.0, 200.0]],
        land: [[128.0, 122.0, 118.0], [104.0, 98.0, 96.0], [72.0, 72.0, 76.0]],
        objects: [[188.0, 96.0, 62.0], [216.0, 206.0, 186.0], [42.0, 58.0, 84.0]],
    },
];

/// RGB pixels of a scene, `width * height * 3` bytes.
pub(super) fn draw(class: usize, width: u32, height: u32, random: &mut RandomNumbers) -> Vec<u8> {
    let palette = &PALETTES[class];
    let coarse = width.max(height) / 3;
    let texture = Field::fractal(width, height, coarse, 2, 0.62, random);
    let detail = Field::fractal(width, height, 32, 2, 0.8, random);
    let tint = Field::fractal(width, height, coarse, 24, 0.5, random);
    let ridges = ridge_lines(width, height, random);
    let objects: Vec<Object> = (0..3 + random.below(6))
        .map(|_| Object::new(width as f32, height as f32, palette, random))
        .collect();
    let sensor = Sensor::new(random);
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height as usize {
        let mut before = 0.0;
        for x in 0..width as usize {
            let noise = (texture.at(x, y), detail.at(x, y), tint.at(x, y));
            let mut colour = background(palette, &ridges, x, y, height as usize, noise);
            for object in &objects {
                object.paint(&mut colour, x as f32, y as f32, noise.1);
            }
            let light = sensor.falloff(x as f32 / width as f32, y as f32 / height as f32);
            // Neighbours on a sensor share some of their noise once the camera has sharpened.
            let grain = random.normal() * 0.8 + before * 0.45;
            before = grain;
            for channel in colour {
                let exposed = channel * light;
                let noise = sensor.grain * (0.6 + exposed / 400.0);
                pixels.push((exposed + (grain + random.normal() * 0.35) * noise) as u8);
            }
        }
    }
    pixels
}

/// Sky or land at a pixel; `noise` is (texture, detail, tint).
fn background(
    palette: &Palette,
    ridges: &[Vec<f32>; 3],
    x: usize,
    y: usize,
    height: usize,
    noise: (f32, f32, f32),
) -> Colour {
    let (texture, detail, tint) = noise;
    let land = ridges.iter().rposition(|ridge| y as f32 > ridge[x]);
    let (base, strength) = match land {
        None => {
            let down = y as f32 / height as f32;
            (blend(palette.sky[0], palette.sky[1], (down * 1.6).min(1.0)), (14.0, 1.0))
        }
        Some(layer) => {
            (palette.land[layer], (26.0 + layer as f32 * 8.0, 14.0 + layer as f32 * 14.0))
        }
    };
    let light = texture * strength.0 + detail * strength.1;
    [base[0] + light + tint * 9.0, base[1] + light, base[2] + light - tint * 9.0]
}

/// Heights at which far, middle and near land begin, column by column.
fn ridge_lines(width: u32, height: u32, random: &mut RandomNumbers) -> [Vec<f32>; 3] {
    let mut top = random.between(0.3, 0.5);
    std::array::from_fn(|layer| {
        let line = Field::fractal(width, 1, width / 2, 4, 0.5, random);
        let swing = height as f32 * (0.12 - layer as f32 * 0.03);
        let middle = height as f32 * top;
        top += random.between(0.12, 0.24);
        (0..width as usize).map(|x| middle + line.at(x, 0) * swing).collect()
    })
}

fn blend(from: Colour, to: Colour, share: f32) -> Colour {
    std::array::from_fn(|channel| from[channel] + (to[channel] - from[channel]) * share)
}

/// An ellipse or a rectangle, turned, lit from one side, with a surface.
struct Object {
    round: bool,
    centre: (f32, f32),
    half: (f32, f32),
    turn: (f32, f32),
    colour: Colour,
    relief: f32,
    stripes: f32,
}

impl Object {
    fn new(width: f32, height: f32, palette: &Palette, random: &mut RandomNumbers) -> Self {
        let size = width.min(height);
        let angle = random.between(-0.5, 0.5);
        Self {
            round: random.uniform() < 0.55,
            centre: (random.between(0.05, 0.95) * width, random.between(0.35, 0.95) * height),
            half: (random.between(0.04, 0.2) * size, random.between(0.04, 0.24) * size),
            turn: (angle.cos(), angle.sin()),
            colour: palette.objects[random.below(3) as usize],
            relief: random.between(10.0, 40.0),
            stripes: if random.uniform() < 0.4 { random.between(0.5, 2.0) } else { 0.0 },
        }
    }

    /// Mixes the object into a pixel: fully inside, partly on the edge.
    fn paint(&self, colour: &mut Colour, x: f32, y: f32, detail: f32) {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let reach = self.half.0 + self.half.1;
        if dx.abs() > reach || dy.abs() > reach {
            return;
        }
        let u = (dx * self.turn.0 + dy * self.turn.1) / self.half.0;
        let v = (dy * self.turn.0 - dx * self.turn.1) / self.half.1;
        let distance = if self.round { u.hypot(v) } else { u.abs().max(v.abs()) };
        // One pixel of transition: edges of photographs are never harder.
        let cover = ((1.0 - distance) * self.half.0.min(self.half.1) + 0.5).clamp(0.0, 1.0);
        if cover == 0.0 {
            return;
        }
        let lit = 1.0 - 0.35 * (u * 0.6 + v * 0.8);
        let stripe = (dx * self.stripes).sin() * self.stripes.min(1.0) * 14.0;
        for (channel, own) in colour.iter_mut().zip(self.colour) {
            let own = own * lit + detail * self.relief + stripe;
            *channel += (own - *channel) * cover;
        }
    }
}

/// The lens darkens corners, the sensor adds grain.
struct Sensor {
    vignette: f32,
    grain: f32,
}

impl Sensor {
    fn new(random: &mut RandomNumbers) -> Self {
        Self { vignette: random.between(0.1, 0.5), grain: random.between(5.0, 13.0) }
    }

    fn falloff(&self, x: f32, y: f32) -> f32 {
        let (dx, dy) = (x - 0.5, y - 0.5);
        1.0 - self.vignette * (dx * dx + dy * dy)
    }
}
