// The state of an index, as the list and the page of one show it.
import { duration } from '../../format.js';
import { Badge, html } from '../../ui.js';

// Searches may miss writes that are older than this, which is worth a look.
const LAG_WORTH_A_LOOK_S = 30;

export const memoryOf = ({ memory = {} }) => {
  const { mapped = 0, ...parts } = memory;
  return { own: Object.values(parts).reduce((sum, part) => sum + part, 0), mapped, parts };
};

export const lagTone = (index) => (index.lag_seconds > LAG_WORTH_A_LOOK_S ? 'warn' : undefined);

export const lagText = (index) => (index.lag_seconds === undefined || index.lag_seconds === null ? 'unknown' : index.lag_seconds === 0 ? 'none' : duration(index.lag_seconds * 1000));

const WORDS = { SERVING: 'serving', BOOTSTRAPPING: 'building', INITIALIZING: 'starting' };

export function StateBadge({ index }) {
  if (!index.status) return html`<${Badge}>in the storage<//>`;
  const serves = index.status === 'SERVING';
  if (index.rows_without_room > 0) return html`<${Badge} tone="bad">rows without room<//>`;
  const text = WORDS[index.status] ?? index.status.toLowerCase();
  const progress = index.status === 'BOOTSTRAPPING' && index.build_progress !== undefined ? ` ${Math.floor(index.build_progress)} %` : '';
  return html`<${Badge} tone=${serves ? 'good' : 'warn'}>${text}${progress}<//>`;
}

export const kindOf = (index) => (index.options?.type === 'vector' ? 'vector' : index.options?.type === 'fulltext' ? 'words' : 'secondary');
