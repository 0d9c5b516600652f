import { count } from '../../format.js';
import { html } from '../../ui.js';

const RAMP_SHOWN = 20;

// What the colours mean. A category is a button, which selects its rows.
export function Legend({ legend, column, colours, onSelect }) {
  if (legend.kind === 'ramp') {
    const ramp = colours.slice(0, RAMP_SHOWN);
    return html`<div class="legend" role="group" aria-label=${`Colours of ${column}`}>
      <div class="legend-ramp" aria-hidden="true">${ramp.map((colour) => html`<span key=${colour} style=${{ background: colour }}></span>`)}</div>
      <div class="row spread small number"><span>${legend.low}</span><span>${legend.high}</span></div>
      ${legend.missing > 0 && html`<p class="soft small">${count(legend.missing)} rows have no value, and are grey.</p>`}
    </div>`;
  }
  if (legend.kind !== 'categories') return null;
  return html`<ul class="legend" aria-label=${`Colours of ${column}`}>
    ${legend.items.map(
      (item) => html`<li key=${item.label}>
        <button type="button" class="legend-item" title=${`Select: ${item.label}`} onClick=${() => onSelect(item.group)}>
          <span class="dot" style=${{ background: `var(${item.colour})` }} aria-hidden="true"></span>
          <span class="legend-label">${item.label}</span>
          <span class="soft number">${count(item.points)}</span>
        </button>
      </li>`,
    )}
  </ul>`;
}
