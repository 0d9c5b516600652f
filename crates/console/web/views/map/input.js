// What pointer, wheel, fingers and keys do on the map.

const PAN_STEP = 60;
const ZOOM_STEP = 1.4;
const RING = { first: 60, step: 1.25, min: 12, max: 400 };
// A pointer that moves less than this has clicked.
const CLICK_PX = 4;

// Listens on the canvas; returns a function that ends it. `on`: {draw, hover(i, left, top), select(points, adds), isLasso(), lassoDone()}.
export function listen(canvas, drawing, on) {
  const fingers = new Map();
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;

  const down = (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const here = place(event);
    fingers.set(event.pointerId, here);
    const isLasso = fingers.size === 1 && (event.shiftKey || on.isLasso());
    drag = { isLasso, adds: event.ctrlKey || event.metaKey, moved: 0, line: [drawing.toMap(...here)] };
    drawing.lasso = isLasso ? [here] : [];
  };

  const move = (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) return on.hover(drawing.nearest(...now), ...now);
    if (fingers.size === 2) pinch(event.pointerId, before, now);
    else if (drag.isLasso) {
      drawing.lasso.push(now);
      drag.line.push(drawing.toMap(...now));
    } else if (drag.moved > CLICK_PX || Math.hypot(now[0] - before[0], now[1] - before[1]) > 0) {
      drawing.pan(now[0] - before[0], now[1] - before[1]);
    }
    drag.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    fingers.set(event.pointerId, now);
    return on.draw();
  };

  function pinch(id, before, now) {
    const [, other] = [...fingers].find(([finger]) => finger !== id);
    const distance = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    drawing.zoom(distance(now) / Math.max(1, distance(before)), ...middle);
    drawing.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  const up = (event) => {
    if (!fingers.delete(event.pointerId) || fingers.size > 0) return;
    drawing.lasso = [];
    if (drag.isLasso && drag.line.length > 2) {
      on.select(drawing.inside(drag.line), drag.adds);
      on.lassoDone();
    } else if (drag.moved <= CLICK_PX) {
      const point = drawing.nearest(...place(event));
      if (point >= 0) on.select([point], drag.adds);
    }
    drag = null;
    on.draw();
  };

  const leave = () => on.hover(-1);
  const cancel = (event) => {
    fingers.delete(event.pointerId);
    drawing.lasso = [];
    on.draw();
  };

  const wheel = (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    drawing.zoom(Math.exp((-event.deltaY * lines) / 400), ...place(event));
    on.draw();
  };

  const key = (event) => {
    if (event.altKey || event.metaKey || !keyed(event, drawing, on)) return;
    event.preventDefault();
    event.stopPropagation();
    on.draw();
  };

  const focus = () => {
    // Only a focus that came by the keyboard needs the ring.
    if (canvas.matches(':focus-visible')) drawing.ring ??= RING.first;
    announce(drawing, on);
    on.draw();
  };
  const blur = () => {
    drawing.ring = null;
    on.draw();
  };

  const events = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: cancel, pointerleave: leave, keydown: key, focus, blur };
  for (const [name, listener] of Object.entries(events)) canvas.addEventListener(name, listener);
  canvas.addEventListener('wheel', wheel, { passive: false });
  return () => {
    for (const [name, listener] of Object.entries(events)) canvas.removeEventListener(name, listener);
    canvas.removeEventListener('wheel', wheel);
  };
}

// The point in the middle is the one under the keyboard.
function announce(drawing, on) {
  if (drawing.ring === null) return;
  const { width, height } = drawing.size;
  on.hover(drawing.nearest(width / 2, height / 2, drawing.ring), width / 2, height / 2);
}

// What a key does; whether it does anything.
function keyed(event, drawing, on) {
  const { width, height } = drawing.size;
  const pans = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  if (pans[event.key]) {
    drawing.ring ??= RING.first;
    const [right, down] = pans[event.key];
    drawing.pan(right * PAN_STEP, down * PAN_STEP);
  } else if (event.key === '+' || event.key === '=') drawing.zoom(ZOOM_STEP);
  else if (event.key === '-') drawing.zoom(1 / ZOOM_STEP);
  else if (event.key === '0') drawing.fit();
  else if (event.key === '[' || event.key === ']') {
    const factor = event.key === ']' ? RING.step : 1 / RING.step;
    drawing.ring = Math.min(RING.max, Math.max(RING.min, (drawing.ring ?? RING.first) * factor));
  } else if (event.key === 'Enter' || event.key === ' ') {
    drawing.ring ??= RING.first;
    on.select(drawing.within(width / 2, height / 2, drawing.ring), event.shiftKey || event.ctrlKey);
  } else if (event.key === 'Escape') on.select([], false);
  else return false;
  announce(drawing, on);
  return true;
}
