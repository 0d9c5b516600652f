// Paints many small discs into the pixels of a picture. Each disc is a mask that is computed once: a path or a picture for each
// of 20,000 points takes ten times as long, above all where no graphics processor draws.

// A disc's middle is at one of so many places of a pixel along each side.
const PLACES = 4;

export class DiscRaster {
  #masks = [];
  #radius = 0;
  #size = 0;

  constructor() {
    this.image = null;
    this.pixels = null;
  }

  // Begins a picture of one colour, [red, green, blue], with discs of a radius in pixels.
  begin(context, width, height, ground, radius) {
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = context.createImageData(width, height);
      this.pixels = new Uint8ClampedArray(this.image.data.buffer);
    }
    new Uint32Array(this.image.data.buffer).fill(packed(ground));
    if (radius !== this.#radius) this.#prepare(radius);
  }

  #prepare(radius) {
    this.#radius = radius;
    this.#size = 2 * Math.ceil(radius) + 3;
    this.#masks = [];
    const middle = (this.#size - 1) / 2;
    for (let place = 0; place < PLACES * PLACES; place += 1) {
      const x = middle + (place % PLACES) / PLACES;
      const y = middle + Math.floor(place / PLACES) / PLACES;
      this.#masks.push(maskOf(this.#size, x, y, radius));
    }
  }

  // Paints a disc around a place, in pixels, with a colour [red, green, blue] and an opacity from 0 to 1.
  disc(x, y, colour, opacity) {
    const { width, height } = this.image;
    const left = Math.floor(x);
    const top = Math.floor(y);
    const mask = this.#masks[Math.floor((x - left) * PLACES) + PLACES * Math.floor((y - top) * PLACES)];
    const size = this.#size;
    const half = (size - 1) >> 1;
    const { pixels } = this;
    for (let row = 0; row < size; row += 1) {
      const py = top + row - half;
      if (py < 0 || py >= height) continue;
      for (let column = 0; column < size; column += 1) {
        const cover = mask[row * size + column];
        const px = left + column - half;
        if (cover === 0 || px < 0 || px >= width) continue;
        const at = (py * width + px) * 4;
        const share = cover * opacity;
        pixels[at] += (colour[0] - pixels[at]) * share;
        pixels[at + 1] += (colour[1] - pixels[at + 1]) * share;
        pixels[at + 2] += (colour[2] - pixels[at + 2]) * share;
      }
    }
  }

  end(context) {
    context.putImageData(this.image, 0, 0);
  }
}

// The share of each pixel that a disc covers, about.
function maskOf(size, x, y, radius) {
  const mask = new Float32Array(size * size);
  for (let at = 0; at < mask.length; at += 1) {
    const distance = Math.hypot((at % size) + 0.5 - x, Math.floor(at / size) + 0.5 - y);
    mask[at] = Math.min(1, Math.max(0, radius + 0.5 - distance));
  }
  return mask;
}

// The bytes of a pixel as a word of the machine, which is little-endian wherever a browser runs.
function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
