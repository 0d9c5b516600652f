import { Async, Button, Card, Empty, Page, Tabs, html, navigate, useMemo, useState } from '../ui.js';
import { Chart } from './metrics/chart.js';
import { chartsOf } from './metrics/charts.js';
import { clockOf } from './metrics/drawing.js';
import { Figures } from './metrics/figures.js';
import { useHistory } from './metrics/history.js';

const RANGES = [
  { id: '900', label: '15 min' },
  { id: '3600', label: '1 hour' },
  { id: '10800', label: '3 hours' },
  { id: '21600', label: '6 hours' },
];
const USUAL = '3600';
// A server that has just started has a chart, too.
const SHORTEST_S = 120;

// The time of the first sample that is here.
function oldestOf(names) {
  let oldest = Infinity;
  for (const series of names.values()) {
    for (const { points } of series) oldest = Math.min(oldest, points[0][0]);
  }
  return oldest;
}

function Charts({ history, seconds, chosen, setChosen }) {
  const { names, newest } = history;
  const groups = useMemo(() => chartsOf(names), [history]);
  const begin = Math.max(newest - seconds, Math.min(oldestOf(names), newest - SHORTEST_S));
  const [from, to] = chosen ?? [begin, newest];
  const onSelect = (first, last) => setChosen([first, last]);
  return html`<${Figures} names=${names} newest=${newest} />
    ${groups.map(
      ({ group, charts }) => html`<section key=${group} class="chart-group" aria-label=${group}>
        <h2>${group}</h2>
        <div class="charts">
          ${charts.map(
            ({ chart, lines, leftOut }) => html`<${Chart}
              key=${chart.id}
              chart=${chart}
              lines=${lines}
              leftOut=${leftOut}
              from=${from}
              to=${to}
              onSelect=${onSelect}
            />`,
          )}
        </div>
      </section>`,
    )}`;
}

function View({ query }) {
  const asked = query.get('seconds');
  const range = RANGES.some((one) => one.id === asked) ? asked : USUAL;
  const [chosen, setChosen] = useState(null);
  const history = useHistory(Number(range));
  const choose = (id) => {
    setChosen(null);
    navigate(`#/metrics?seconds=${id}`);
  };
  const none = ({ newest }) =>
    newest === 0 &&
    html`<${Card}>
      <${Empty} title="No sample yet">The server takes one each 15 s. The page looks again by itself.<//>
    <//>`;
  return html`<${Page}
    title="Metrics"
    lead="The main figures of the last hours, from the server's own memory. A restart empties it. For longer times there is Prometheus, at /metrics."
  >
    <div class="row spread">
      <${Tabs} tabs=${RANGES} value=${range} onChange=${choose} label="Time" controls="metrics-charts" />
      ${chosen
        ? html`<div class="row">
            <span class="soft number">${clockOf(chosen[0])} to ${clockOf(chosen[1])}</span>
            <${Button} onClick=${() => setChosen(null)}>Show all<//>
          </div>`
        : html`<span class="soft small chart-hint">Drag over a chart to look closer.</span>`}
    </div>
    <div id="metrics-charts" class="page-body" role="tabpanel" aria-label=${RANGES.find((one) => one.id === range).label}>
      <${Async} of=${history} label="Loading the metrics" empty=${none}>
        ${(data) => html`<${Charts} history=${data} seconds=${Number(range)} chosen=${chosen} setChosen=${setChosen} />`}
      <//>
    </div>
  <//>`;
}

export default {
  id: 'metrics',
  title: 'Metrics',
  icon: 'metrics',
  group: 'Watch',
  needs: (session) => session.features.metrics,
  View,
};
