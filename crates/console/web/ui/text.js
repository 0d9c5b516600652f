import { html, useEffect, useState } from './html.js';
import { ago, count } from '../format.js';
import { jsonText } from '../json.js';
import { Copy } from './controls.js';

const KEYWORDS = {
  cql: /^(?:SELECT|FROM|WHERE|AND|OR|NOT|ORDER|BY|ANN|OF|BM25|LIMIT|INSERT|INTO|VALUES|UPDATE|SET|DELETE|CREATE|ALTER|DROP|TABLE|INDEX|CUSTOM|KEYSPACE|ON|USING|WITH|OPTIONS|IF|EXISTS|PRIMARY|KEY|IN|CONTAINS|ALLOW|FILTERING|AS|JSON|DISTINCT|GRANT|REVOKE|ROLE|TTL|TIMESTAMP|BEGIN|BATCH|APPLY|TRUNCATE|USE)$/i,
  python: /^(?:import|from|as|def|return|for|in|with|if|else|print|None|True|False|class|while|not|and|or|try|except|lambda)$/,
  java: /^(?:import|package|public|static|void|class|new|try|for|if|else|return|var|final|int|float|throws|private|long|String)$/,
  go: /^(?:package|import|func|return|for|range|if|else|defer|var|type|struct|nil|err|const)$/,
  node: /^(?:import|from|const|let|await|async|for|of|new|if|else|return|function|export|class|null|true|false)$/,
  rust: /^(?:use|fn|let|mut|async|await|for|in|if|else|match|pub|struct|impl|return|mod|as|Ok|Some|None)$/,
  bash: /^(?:curl|echo|export|for|do|done|if|then|fi|docker|pip|cargo|go|npm|mvn|annulus|cqlsh)$/,
  json: /^(?:true|false|null)$/,
};
const COMMENTS = { cql: '--[^\\n]*|/\\*[\\s\\S]*?\\*/', python: '#[^\\n]*', bash: '#[^\\n]*', json: '(?!)' };
// A longer text would be many elements for little colour.
const LONGEST_COLOURED = 60000;

function piecesOf(text, language) {
  const keywords = KEYWORDS[language];
  if (!keywords || text.length > LONGEST_COLOURED) return [text];
  const comment = COMMENTS[language] ?? '//[^\\n]*|/\\*[\\s\\S]*?\\*/';
  const token = new RegExp(
    `(${comment})|("""[^]*?"""|"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`[^\`]*\`)|(\\b\\d[\\d_.]*(?:e[+-]?\\d+)?\\b)|([A-Za-z_]\\w*)`,
    'g',
  );
  const pieces = [];
  let end = 0;
  for (const found of text.matchAll(token)) {
    const [whole, commented, string, number, word] = found;
    // The name of a program in a path is no command.
    const isPart = language === 'bash' && /[^\s|;&(]/.test(text[found.index - 1] ?? ' ');
    const isKeyword = !isPart && keywords.test(word);
    const kind = commented ? 'comment' : string ? 'string' : number ? 'number' : isKeyword ? 'keyword' : null;
    if (!kind) continue;
    pieces.push(text.slice(end, found.index), html`<span class=${`code-${kind}`}>${whole}</span>`);
    end = found.index + whole.length;
  }
  pieces.push(text.slice(end));
  return pieces;
}

// A text to read and copy: language is cql, python, java, go, node, rust, bash or json. `wrap`: long
// lines go on below. `whole`: what is copied, where the text is only a part of it.
export function Code({ text, language, label = 'Code', bare, wrap, whole = text }) {
  const pre = html`<pre class=${wrap ? 'code wrap' : 'code'} tabindex="0" role="region" aria-label=${label}><code>${piecesOf(text, language)}</code></pre>`;
  if (bare) return pre;
  return html`<div class="code-box">
    ${pre}
    <div class="code-copy"><${Copy} text=${whole} label="Copy the code" /></div>
  </div>`;
}

// More characters than this would hold the browser up, and no one reads them.
const LONGEST_SHOWN = 500000;

export function Json({ value, label = 'JSON' }) {
  const whole = jsonText(value, 2) ?? 'null';
  const text = whole.slice(0, LONGEST_SHOWN);
  return html`<${Code} text=${text} whole=${whole} language="json" label=${label} />
    ${text.length < whole.length &&
    html`<p class="soft small">The first ${count(text.length)} of ${count(whole.length)} characters are shown. The copy has all.</p>`}`;
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#x27': "'", '#39': "'", '#x2F': '/', nbsp: ' ' };

function withoutEntities(text) {
  return text.replace(/&([#\w]+);/g, (whole, name) => {
    if (Object.hasOwn(ENTITIES, name)) return ENTITIES[name];
    const code = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(name);
    const point = code ? parseInt(code[1] ?? code[2], code[1] ? 16 : 10) : NaN;
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}

// A highlight of the server. It comes as HTML, whose marks are two characters that no text has; it is shown as text.
export function Marked({ text, pre = '\u0001', post = '\u0002' }) {
  const parts = (text ?? '').split(pre).map((part, place) => {
    if (place === 0) return withoutEntities(part);
    const end = part.indexOf(post);
    const [marked, rest] = end < 0 ? [part, ''] : [part.slice(0, end), part.slice(end + post.length)];
    return html`<mark>${withoutEntities(marked)}</mark>${withoutEntities(rest)}`;
  });
  return html`<span class="marked">${parts}</span>`;
}

// How long ago something was; the exact time is its title.
export function Time({ at }) {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 15000);
    return () => clearInterval(timer);
  }, []);
  if (at === null || at === undefined) return html`<span class="soft">never</span>`;
  // CQL writes a space between the day and the time.
  const date = new Date(typeof at === 'string' ? at.replace(' ', 'T') : at);
  if (Number.isNaN(date.getTime())) return html`<span>${String(at)}</span>`;
  return html`<time datetime=${date.toISOString()} title=${date.toLocaleString()}>${ago(date)}</time>`;
}
