// One chart with its key, and its twin as a table.
import { Button, Table, html, useEffect, useMemo, useRef, useState } from '../../ui.js';
import { clockOf, colourOf, dataOf, draw } from './drawing.js';
import { aligned, lastOf, pieces } from './series.js';

const ROWS_SHOWN = 24;
// A screen reader reads all of them.
const ROWS_READ = 8;

const textOf = (chart, value) => (value === null || value === undefined ? 'none' : chart.form(value));

function Key({ chart, lines, data, at }) {
  const hovered = at !== null && data.times[at] !== undefined;
  return html`<ul class="chart-key">
    ${lines.map(
      (line, place) => html`<li key=${line.label}>
        <span class="dot" style=${{ background: `var(${colourOf(place)})` }} aria-hidden="true"></span>
        <span class="chart-key-label">${line.label}</span>
        <span class="number soft">${textOf(chart, hovered ? data.rows[place][at] : lastOf(line.points))}</span>
      </li>`,
    )}
  </ul>`;
}

// What the canvas shows, for who does not see it.
function Twin({ chart, lines, data, from, to }) {
  const rows = pieces(data, from, to, ROWS_READ);
  return html`<div class="hidden">
    <table>
      <caption>${chart.title}: means of ${rows.length} pieces of the time shown, the newest first</caption>
      <thead>
        <tr><th scope="col">Until</th>${lines.map((line) => html`<th key=${line.label} scope="col">${line.label}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ end, means }) => html`<tr key=${end}>
            <th scope="row">${clockOf(end)}</th>
            ${means.map((value) => html`<td>${textOf(chart, value)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function Rows({ chart, lines, data, from, to }) {
  const rows = pieces(data, from, to, ROWS_SHOWN);
  const columns = [
    { key: 'end', label: 'Until', sort: true, render: (row) => html`<span class="number">${clockOf(row.end)}</span>` },
    ...lines.map((line, place) => ({
      key: line.label,
      label: line.label,
      align: 'right',
      sort: (row) => row.means[place],
      render: (row) => (row.means[place] === null ? html`<span class="soft">none</span>` : chart.form(row.means[place])),
    })),
  ];
  return html`<div class="chart-rows"><${Table} caption=${`${chart.title}, means`} columns=${columns} rows=${rows} rowKey="end" /></div>`;
}

function Drawing({ chart, lines, data, from, to, onMove, onSelect }) {
  const box = useRef(null);
  const plot = useRef(null);
  const timeWindow = useRef([from, to]);
  timeWindow.current = [from, to];
  const names = lines.map((line) => line.label).join('\n');
  const drawn = useMemo(() => dataOf(chart, data), [chart, data]);
  useEffect(() => {
    plot.current = draw(box.current, { chart, lines, data: drawn, window: () => timeWindow.current, onMove, onSelect });
    const observer = new ResizeObserver(() => {
      const width = box.current?.clientWidth;
      if (width > 0 && width !== plot.current.width) plot.current.setSize({ width, height: plot.current.height });
    });
    observer.observe(box.current);
    const redraw = () => plot.current.redraw(false, true);
    window.addEventListener('annulus:theme', redraw);
    return () => {
      window.removeEventListener('annulus:theme', redraw);
      observer.disconnect();
      plot.current.destroy();
    };
  }, [names]);
  useEffect(() => plot.current.setData(drawn), [drawn, from, to]);
  return html`<div ref=${box} class="chart-canvas" aria-hidden="true"></div>`;
}

// `from` and `to`: the time shown, in seconds. onSelect(from, to): a part of it was chosen.
export function Chart({ chart, lines, leftOut, from, to, onSelect }) {
  const [at, setAt] = useState(null);
  const [isTable, setIsTable] = useState(false);
  const data = useMemo(() => aligned(lines), [lines]);
  const hovered = at !== null && data.times[at] !== undefined;
  const parts = { chart, lines, data, from, to };
  const isEmpty = lines.length === 0 || data.times.length === 0;
  return html`<section class="card chart" aria-label=${chart.title}>
    <header class="card-head">
      <h3>${chart.title}</h3>
      <div class="row">
        ${hovered && !isTable && html`<span class="soft small number" aria-hidden="true">${clockOf(data.times[at])}</span>`}
        ${!isEmpty &&
        html`<${Button}
          icon=${isTable ? 'metrics' : 'tables'}
          label=${isTable ? `${chart.title} as a chart` : `${chart.title} as a table`}
          onClick=${() => setIsTable(!isTable)}
        />`}
      </div>
    </header>
    ${isEmpty && html`<p class="chart-empty soft">${chart.empty ?? 'No sample yet. The server takes one each 15 s.'}</p>`}
    ${!isEmpty && isTable && html`<${Rows} ...${parts} />`}
    ${!isEmpty &&
    !isTable &&
    html`<${Drawing} ...${parts} onMove=${setAt} onSelect=${onSelect} />
      <${Key} chart=${chart} lines=${lines} data=${data} at=${at} />
      <${Twin} ...${parts} />`}
    ${leftOut > 0 && html`<p class="soft small">${leftOut} more are not drawn: they are better than these.</p>`}
  </section>`;
}
