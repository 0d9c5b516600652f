// The canvas of the map, with its buttons and the label of the row under the pointer.
import { Button, html, useEffect, useRef, useState } from '../../ui.js';
import { count } from '../../format.js';
import { MapDrawing } from './drawing.js';
import { resolved } from './colours.js';
import { listen } from './input.js';

const KEYS_TEXT =
  'Arrow keys move the map, plus and minus zoom, 0 shows all. The ring in the middle selects: Enter takes the rows in it, Shift and Enter adds them, [ and ] change its size, Escape selects nothing.';

// Redraws once a frame, however often it is called.
function useFrames(draw) {
  const pending = useRef(0);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => () => cancelAnimationFrame(pending.current), []);
  return () => {
    cancelAnimationFrame(pending.current);
    pending.current = requestAnimationFrame(() => latest.current());
  };
}

// Draws `map` on the canvas, and listens there.
function useDrawing({ map, colours, selected, isLasso, onSelect, onHover, onLassoDone, onDrawn }) {
  const canvas = useRef(null);
  const drawing = useRef(null);
  const latest = useRef({});
  latest.current = { isLasso, onSelect, onHover, onLassoDone };
  const redraw = useFrames(() => {
    drawing.current.draw();
    onDrawn(drawing.current.lastMs);
  });
  useEffect(() => {
    const made = (drawing.current = new MapDrawing(canvas.current));
    const end = listen(canvas.current, made, {
      draw: redraw,
      hover: (point, left, top) => {
        if (made.hovered !== point) redraw();
        made.hovered = point;
        latest.current.onHover(point, left, top);
      },
      select: (points, adds) => latest.current.onSelect(points, adds),
      isLasso: () => latest.current.isLasso,
      lassoDone: () => latest.current.onLassoDone(),
    });
    const resized = new ResizeObserver(redraw);
    resized.observe(canvas.current);
    return () => {
      end();
      resized.disconnect();
    };
  }, []);
  useEffect(() => {
    drawing.current.setPoints(map.x, map.y);
    drawing.current.fit();
    drawing.current.hovered = -1;
    redraw();
  }, [map]);
  useEffect(() => {
    const paint = () => {
      const { groups, colours: names } = colours;
      drawing.current.setColours(groups, resolved(names, (name) => drawing.current.colour(name)));
      redraw();
    };
    paint();
    window.addEventListener('annulus:theme', paint);
    return () => window.removeEventListener('annulus:theme', paint);
  }, [colours]);
  useEffect(() => {
    drawing.current.selected = selected;
    redraw();
  }, [selected]);
  const act = (work) => () => {
    work(drawing.current);
    redraw();
  };
  return { canvas, act };
}

// `label(point)`: what is shown of the row under the pointer.
export function MapChart({ map, colours, selected, onSelect, onHover, label, name }) {
  const [isLasso, setLasso] = useState(false);
  const [hover, setHover] = useState({ point: -1 });
  const drawn = useRef(null);
  const { canvas, act } = useDrawing({
    map,
    colours,
    selected,
    isLasso,
    onSelect,
    onHover: (point, left, top) => {
      setHover({ point, left, top });
      onHover(point);
    },
    onLassoDone: () => setLasso(false),
    // Not by the state of a component: that would redraw the page at each redraw of the map.
    onDrawn: (ms) => {
      drawn.current.textContent = `${count(map.x.length)} points on one canvas, redrawn in ${ms.toFixed(1)} ms of script time.`;
    },
  });
  return html`<div class="map-chart">
    <div class="map-field">
      <canvas
        ref=${canvas}
        class=${isLasso ? 'map-canvas lasso' : 'map-canvas'}
        tabindex="0"
        role="application"
        aria-label=${`Map of ${name}: ${count(map.x.length)} rows`}
        aria-describedby="map-keys"
      ></canvas>
      <div class="map-tools">
        <${Button} icon="plus" label="Zoom in" onClick=${act((drawing) => drawing.zoom(1.4))} />
        <${Button} icon="minus" label="Zoom out" onClick=${act((drawing) => drawing.zoom(1 / 1.4))} />
        <${Button} icon="fit" label="Show all" onClick=${act((drawing) => drawing.fit())} />
        <${Button} icon="lasso" label="Lasso: draw around rows" aria-pressed=${String(isLasso)} onClick=${() => setLasso(!isLasso)} />
      </div>
      <${HoverCard} hover=${hover} field=${canvas} label=${label} />
    </div>
    <p id="map-keys" class="hidden">${KEYS_TEXT}</p>
    <p class="soft small map-drawn"><span ref=${drawn} data-redraw></span> <span class="map-hint">Drag to move, scroll to zoom, hold Shift and drag for a lasso. By keyboard: arrows, <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd>, <kbd>Enter</kbd> takes the rows in the ring, <kbd>[</kbd> <kbd>]</kbd> change it.</span><span class="map-hint touch">Drag to move, pinch to zoom, tap a point to select it. The lasso takes the rows that you draw around.</span></p>
  </div>`;
}

function HoverCard({ hover, field, label }) {
  const shown = hover.point >= 0;
  const width = field.current?.clientWidth ?? 0;
  const height = field.current?.clientHeight ?? 0;
  const style = shown
    ? {
        left: hover.left > width / 2 ? 'auto' : `${hover.left + 16}px`,
        right: hover.left > width / 2 ? `${width - hover.left + 16}px` : 'auto',
        top: hover.top > height / 2 ? 'auto' : `${hover.top + 16}px`,
        bottom: hover.top > height / 2 ? `${height - hover.top + 16}px` : 'auto',
      }
    : {};
  return html`<div class=${shown ? 'map-hover' : 'hidden'} style=${style} role="status">${shown && label(hover.point)}</div>`;
}
