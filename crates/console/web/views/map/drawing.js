// Draws points on a canvas, and finds them again. It knows nothing of rows.

import { DiscRaster } from './raster.js';

// Cells of the grid in which points are looked up, along each side.
const GRID = 64;
// How opaque points are: all of them, and those that are not selected while others are.
const PLAIN = 0.85;
const FAINT = 0.14;
const MARK_WIDTH = 2;
const SCALE_MAX = 200;

export class MapDrawing {
  #canvas;
  #context;
  #x;
  #y;
  #cells;
  #raster = new DiscRaster();
  // Of one pixel: it turns the name of a colour into numbers.
  #probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  #channels = null;
  #ground = null;
  // What a redraw took of script time, and how many points it drew.
  lastMs = 0;
  view = { scale: 1, x: 0, y: 0 };
  groups = null;
  colours = [];
  selected = new Set();
  hovered = -1;
  lasso = [];
  // The ring around the middle with which the keyboard selects, in pixels; null without.
  ring = null;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
  }

  setPoints(x, y) {
    this.#x = x;
    this.#y = y;
    this.#cells = Array.from({ length: GRID * GRID }, () => []);
    for (let i = 0; i < x.length; i += 1) this.#cells[cellOf(x[i]) + GRID * cellOf(y[i])].push(i);
  }

  // `groups`: the number of each point's colour; `colours`: names of CSS variables or colours.
  setColours(groups, colours) {
    this.groups = groups;
    this.colours = colours;
    this.#channels = null;
    this.#ground = null;
  }

  get size() {
    return { width: this.#canvas.clientWidth, height: this.#canvas.clientHeight };
  }

  // Pixels of one unit of the map: both directions have the same.
  #unit() {
    const { width, height } = this.size;
    return (Math.min(width, height) / 2 - 16) * this.view.scale;
  }

  toScreen(i) {
    const { width, height } = this.size;
    const unit = this.#unit();
    return [width / 2 + (this.#x[i] - this.view.x) * unit, height / 2 - (this.#y[i] - this.view.y) * unit];
  }

  toMap(left, top) {
    const { width, height } = this.size;
    const unit = this.#unit();
    return [(left - width / 2) / unit + this.view.x, (height / 2 - top) / unit + this.view.y];
  }

  // Zooms by a factor around a place of the canvas, which stays where it is.
  zoom(factor, left = this.size.width / 2, top = this.size.height / 2) {
    const [beforeX, beforeY] = this.toMap(left, top);
    this.view.scale = Math.min(SCALE_MAX, Math.max(0.5, this.view.scale * factor));
    const [afterX, afterY] = this.toMap(left, top);
    this.view.x += beforeX - afterX;
    this.view.y += beforeY - afterY;
  }

  pan(right, down) {
    const unit = this.#unit();
    this.view.x = Math.min(1.2, Math.max(-1.2, this.view.x - right / unit));
    this.view.y = Math.min(1.2, Math.max(-1.2, this.view.y + down / unit));
  }

  fit() {
    this.view = { scale: 1, x: 0, y: 0 };
  }

  // The point that is nearest to a place of the canvas, within some pixels; -1 without one.
  nearest(left, top, within = 14) {
    let best = -1;
    let bestSquare = within * within;
    for (const i of this.#around(left, top, within)) {
      const [x, y] = this.toScreen(i);
      const square = (x - left) ** 2 + (y - top) ** 2;
      if (square < bestSquare) [best, bestSquare] = [i, square];
    }
    return best;
  }

  within(left, top, radius) {
    return this.#around(left, top, radius).filter((i) => {
      const [x, y] = this.toScreen(i);
      return (x - left) ** 2 + (y - top) ** 2 <= radius * radius;
    });
  }

  #around(left, top, radius) {
    const [fromX, toY] = this.toMap(left - radius, top - radius);
    const [toX, fromY] = this.toMap(left + radius, top + radius);
    const found = [];
    for (let row = cellOf(fromY); row <= cellOf(toY); row += 1) {
      for (let column = cellOf(fromX); column <= cellOf(toX); column += 1) found.push(...this.#cells[column + GRID * row]);
    }
    return found;
  }

  // The points inside of a line around them, whose places are [x, y] of the map.
  inside(line) {
    const found = [];
    for (let i = 0; i < this.#x.length; i += 1) if (isInside(line, this.#x[i], this.#y[i])) found.push(i);
    return found;
  }

  draw() {
    const began = performance.now();
    const ratio = globalThis.devicePixelRatio || 1;
    const { width, height } = this.size;
    if (width === 0 || height === 0) return;
    if (this.#canvas.width !== Math.round(width * ratio)) this.#canvas.width = Math.round(width * ratio);
    if (this.#canvas.height !== Math.round(height * ratio)) this.#canvas.height = Math.round(height * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.#x) {
      this.#points(ratio);
      this.#marks();
    }
    this.lastMs = performance.now() - began;
  }

  #radius() {
    const crowd = this.#x.length > 8000 ? 1.6 : this.#x.length > 2500 ? 2.1 : 2.8;
    return Math.min(6, crowd * Math.sqrt(Math.max(1, this.view.scale)) ** 0.7);
  }

  // Selected points come last, over the others, which are faint.
  #points(ratio) {
    const unit = this.#unit() * ratio;
    const [dx, dy] = [this.#canvas.width / 2 - this.view.x * unit, this.#canvas.height / 2 + this.view.y * unit];
    const { width, height } = this.#canvas;
    const raster = this.#raster;
    const radius = this.#radius() * ratio;
    this.#channels ??= this.colours.map((name) => this.#channelsOf(name));
    raster.begin(this.#context, width, height, (this.#ground ??= this.#channelsOf('--raised')), radius);
    const dims = this.selected.size > 0;
    const paint = (i, opacity) => {
      const x = dx + this.#x[i] * unit;
      const y = dy - this.#y[i] * unit;
      if (x < -radius || y < -radius || x > width + radius || y > height + radius) return;
      raster.disc(x, y, this.#channels[this.groups ? this.groups[i] : 0], opacity);
    };
    for (let i = 0; i < this.#x.length; i += 1) if (!dims || !this.selected.has(i)) paint(i, dims ? FAINT : PLAIN);
    for (const i of this.selected) paint(i, 1);
    raster.end(this.#context);
  }

  #channelsOf(name) {
    this.#probe.fillStyle = this.colour(name);
    this.#probe.fillRect(0, 0, 1, 1);
    return [...this.#probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  }

  colour(name) {
    return name.startsWith('--') ? getComputedStyle(this.#canvas).getPropertyValue(name).trim() : name;
  }

  // The ring of the keyboard, the lasso, and the point under the pointer.
  #marks() {
    const context = this.#context;
    context.lineWidth = MARK_WIDTH;
    context.strokeStyle = this.colour('--ink');
    if (this.hovered >= 0) {
      const [x, y] = this.toScreen(this.hovered);
      context.beginPath();
      context.arc(x, y, this.#radius() + 3, 0, 2 * Math.PI);
      context.stroke();
    }
    if (this.ring !== null) {
      const { width, height } = this.size;
      context.strokeStyle = this.colour('--accent');
      context.setLineDash([6, 4]);
      context.beginPath();
      context.arc(width / 2, height / 2, this.ring, 0, 2 * Math.PI);
      context.stroke();
      context.setLineDash([]);
    }
    if (this.lasso.length > 1) {
      context.strokeStyle = this.colour('--accent');
      context.beginPath();
      for (const [left, top] of this.lasso) context.lineTo(left, top);
      context.closePath();
      context.globalAlpha = 0.12;
      context.fillStyle = this.colour('--accent');
      context.fill();
      context.globalAlpha = 1;
      context.stroke();
    }
  }
}

function cellOf(place) {
  return Math.min(GRID - 1, Math.max(0, Math.floor(((place + 1) / 2) * GRID)));
}

// Whether a place is inside of a line: a ray from it crosses the line an odd number of times.
function isInside(line, x, y) {
  let inside = false;
  for (let i = 0, before = line.length - 1; i < line.length; before = i, i += 1) {
    const [ax, ay] = line[i];
    const [bx, by] = line[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
