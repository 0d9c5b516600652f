import { html } from './html.js';

// One number with what it is. `tone`: good, warn, bad.
export function Stat({ label, value, unit, tone, note }) {
  return html`<div class=${tone ? `stat ${tone}` : 'stat'}>
    <dt>${label}</dt>
    <dd><span class="stat-value">${value}</span>${unit && html` <span class="stat-unit">${unit}</span>`}</dd>
    ${note && html`<dd class="soft small">${note}</dd>`}
  </div>`;
}

// Parts of a whole, each with its colour and its number: memory by part.
export function Bar({ parts, format = String, label = 'Parts' }) {
  const shown = parts.filter((part) => part.value > 0);
  const total = shown.reduce((sum, part) => sum + part.value, 0);
  const colour = (place) => `var(--c${(place % 8) + 1})`;
  return html`<figure class="bar" aria-label=${label}>
    <div class="bar-line" aria-hidden="true">
      ${shown.map(
        (part, place) => html`<span
          key=${part.label}
          style=${{ flexGrow: part.value / total, background: colour(place) }}
        ></span>`,
      )}
    </div>
    <ul class="bar-key">
      ${shown.map(
        (part, place) => html`<li key=${part.label}>
          <span class="dot" style=${{ background: colour(place) }} aria-hidden="true"></span>
          <span>${part.label}</span> <span class="soft number">${format(part.value)}</span>
        </li>`,
      )}
    </ul>
  </figure>`;
}

// Without a `max` it says only that something goes on.
export function Progress({ value, max, label }) {
  const known = max > 0;
  const share = known ? Math.min(1, Math.max(0, value / max)) : 0;
  return html`<div
    class=${known ? 'progress' : 'progress unknown'}
    role="progressbar"
    aria-label=${label}
    aria-valuemin="0"
    aria-valuemax="100"
    aria-valuenow=${known ? Math.round(share * 100) : undefined}
  >
    <span style=${{ width: known ? `${share * 100}%` : '30%' }}></span>
  </div>`;
}

export function Badge({ tone = 'quiet', children }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}
