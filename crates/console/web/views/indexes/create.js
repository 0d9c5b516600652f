// A form for a new index. It shows the statement that does the same.
import { get, path, put, useData } from '../../api.js';
import { cqlLiteral, cqlName } from '../../format.js';
import { Async, Button, Card, Checkbox, Code, Confirm, Field, Input, Page, Pick, Select, Tabs, html, navigate, toast, useState } from '../../ui.js';
import { indexHref, newIndexHref } from '../links.js';
import { isLog, isVector, keyColumns, orderedColumns } from '../tables/definition.js';
import { isText } from '../tables/values.js';

const KINDS = [
  { id: 'vector', label: 'Nearest vectors' },
  { id: 'text', label: 'Words of a text' },
  { id: 'secondary', label: 'A value' },
];

const CLASSES = { vector: 'vector_index', text: 'fulltext_index', secondary: null };

// The options of each kind that are worth a choice here: {name, label, choices or range, hint}.
const OPTIONS = {
  vector: [
    { name: 'similarity_function', label: 'Similarity', choices: ['cosine', 'euclidean', 'dot_product'] },
    { name: 'quantization', label: 'Form of the full vectors', choices: ['f32', 'f16', 'bf16', 'i8', 'b1'], hint: 'A smaller form takes less disk, and measures less exactly.' },
    { name: 'maximum_node_connections', label: 'Connections', range: [1, 512], standard: 16, hint: 'Half of the links of a vector. More find more, for memory.' },
    { name: 'construction_beam_width', label: 'Width of the build', range: [1, 4096], standard: 128, hint: 'More make a better graph, and builds take longer.' },
  ],
  text: [
    { name: 'analyzer', label: 'Words by', choices: ['standard', 'simple', 'whitespace', 'english', 'german', 'french', 'spanish', 'italian', 'portuguese', 'russian', 'cjk'], hint: 'A language finds other forms of a word, too.' },
    { name: 'positions', label: 'Phrases', choices: ['true', 'false'], hint: 'false takes less room, and finds no phrases.' },
  ],
  secondary: [],
};

const FITS = {
  vector: ({ type }) => isVector(type),
  text: ({ type }) => isText(type),
  secondary: ({ type }) => !isVector(type) && !/^(counter|duration)$/.test(type),
};

const standardOf = (option) => String(option.standard ?? option.choices[0]);

// The options that differ from the defaults.
function chosenOptions(kind, given) {
  return Object.fromEntries(OPTIONS[kind].filter((option) => given[option.name] && given[option.name] !== standardOf(option)).map(({ name }) => [name, given[name]]));
}

function statementOf({ keyspace, table, name, kind, column, localKey, filters, options }) {
  const named = [column, ...filters].map(cqlName);
  const target = localKey.length ? `(${localKey.map(cqlName).join(', ')}), ${named.join(', ')}` : named.join(', ');
  const on = `INDEX ${cqlName(name)} ON ${cqlName(keyspace)}.${cqlName(table)} (${target})`;
  if (!CLASSES[kind]) return `CREATE ${on};`;
  const pairs = Object.entries(options).map(([key, value]) => `${cqlLiteral(key)}: ${cqlLiteral(value)}`);
  const withOptions = pairs.length ? `\n    WITH OPTIONS = {${pairs.join(', ')}}` : '';
  return `CREATE CUSTOM ${on}\n    USING '${CLASSES[kind]}'${withOptions};`;
}

function Options({ kind, given, onChange }) {
  return OPTIONS[kind].map((option) => {
    const set = (event) => onChange({ ...given, [option.name]: event.target.value });
    const value = given[option.name] ?? standardOf(option);
    return html`<${Field} key=${option.name} label=${option.label} hint=${option.hint}>
      ${option.choices
        ? html`<${Select} value=${value} options=${option.choices} onChange=${set} />`
        : html`<${Input} type="number" min=${option.range[0]} max=${option.range[1]} value=${value} onInput=${set} />`}
    <//>`;
  });
}

function ColumnChoices({ legend, hint, columns, chosen, onChange }) {
  if (columns.length === 0) return null;
  const toggle = (name) => onChange(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`<fieldset class="choices">
    <legend>${legend}</legend>
    <p class="soft small">${hint}</p>
    <div class="row">${columns.map((name) => html`<${Checkbox} key=${name} label=${name} checked=${chosen.includes(name)} onChange=${() => toggle(name)} />`)}</div>
  </fieldset>`;
}

function Form({ keyspace, table, definition }) {
  const columns = orderedColumns(definition);
  const [kind, setKind] = useState(() => KINDS.find(({ id }) => columns.some(FITS[id]))?.id ?? 'secondary');
  const [form, setForm] = useState({ filters: [], localKey: [], options: {} });
  const [open, setOpen] = useState(false);
  const set = (changes) => setForm({ ...form, ...changes });
  const key = keyColumns(definition);
  const fitting = columns.filter((column) => FITS[kind](column) && (kind === 'secondary' ? !(definition.key.partition.length === 1 && definition.key.partition[0] === column.name) : !key.includes(column.name)));
  const column = fitting.some(({ name }) => name === form.column) ? form.column : fitting[0]?.name;
  const name = form.name ?? (column ? `${table}_${column}` : '');
  const others = columns.filter((one) => one.name !== column && !isVector(one.type)).map((one) => one.name);
  const searches = kind !== 'secondary';
  const wanted = { keyspace, table, name, kind, column, options: chosenOptions(kind, form.options), filters: searches ? form.filters.filter((one) => others.includes(one)) : [], localKey: searches ? form.localKey.filter((one) => others.includes(one)) : [] };
  const create = async () => {
    const { localKey, filters, options } = wanted;
    const body = { column, kind, options, ...(searches ? { filter_columns: filters } : {}), ...(localKey.length ? { key: localKey } : {}) };
    await put(path('/api/v1/tables', keyspace, table, 'indexes', name), body);
    toast(`${keyspace}.${name} is being built.`, 'good');
    navigate(indexHref(keyspace, name));
  };
  return html`<${Tabs} tabs=${KINDS} value=${kind} label="What the index finds by" controls="index-form" onChange=${setKind} />
    <div id="index-form" role="tabpanel" aria-label="The index" class="stack">
      ${column === undefined
        ? html`<p class="soft">${keyspace}.${table} has no column for such an index.</p>`
        : html`<div class="index-form">
              <${Field} label="Column"><${Select} value=${column} options=${fitting.map((one) => ({ value: one.name, label: `${one.name}, ${one.type}` }))} onChange=${(event) => set({ column: event.target.value })} /><//>
              <${Field} label="Name"><${Input} value=${name} onInput=${(event) => set({ name: event.target.value })} /><//>
              <${Options} kind=${kind} given=${form.options} onChange=${(options) => set({ options })} />
            </div>
            ${searches && html`
              <${ColumnChoices} legend="Filter columns" hint="The index has their values, so that a search can be filtered by them. Columns of the key always filter." columns=${others.filter((one) => !key.includes(one))} chosen=${form.filters} onChange=${(filters) => set({ filters })} />
              <${ColumnChoices} legend="Local key" hint="With one, every search names the values of these columns, and looks only at rows that have them." columns=${others} chosen=${form.localKey} onChange=${(localKey) => set({ localKey })} />`}
            <${Code} language="cql" label="The same as CQL" text=${statementOf(wanted)} />
            <div class="row"><${Button} kind="primary" disabled=${name.trim() === ''} onClick=${() => setOpen(true)}>Create the index<//></div>`}
    </div>
    <${Confirm} title="Create this index?" open=${open} onClose=${() => setOpen(false)} onConfirm=${create} confirmLabel="Create the index">
      <div class="stack">
        <p>The table <code>${keyspace}.${table}</code> is read once for it. Writes go on meanwhile.</p>
        <${Code} bare language="cql" label="Statement" text=${statementOf(wanted)} />
      </div>
    <//>`;
}

function TableChoice({ tables, chosen }) {
  const own = tables.filter(({ table }) => !isLog(table));
  const options = own.map((one) => ({ ...one, value: `${one.keyspace}.${one.table}`, label: `${one.keyspace}.${one.table}` }));
  const choose = (value) => {
    const { keyspace, table } = options.find((one) => one.value === value);
    navigate(newIndexHref(keyspace, table));
  };
  return html`<${Pick} label="Table" of="tables" options=${options} value=${chosen} onChange=${choose} />`;
}

export function NewIndex({ query }) {
  const keyspace = query.get('keyspace');
  const table = query.get('table');
  const tables = useData((signal) => get('/api/v1/tables', { signal }), []);
  const definition = useData((signal) => (table ? get(path('/api/v1/tables', keyspace, table), { signal }) : null), [keyspace, table]);
  return html`<${Page} title="New index" actions=${html`<a class="button quiet" href="#/indexes">All indexes</a>`}>
    <${Card}>
      <${Async} of=${tables} label="Loading the tables">${(all) => html`<div class="index-form"><${TableChoice} tables=${all} chosen=${table ? `${keyspace}.${table}` : ''} /></div>`}<//>
    <//>
    ${table && html`<${Card}><${Async} of=${definition} label="Loading the schema">${(data) => data && html`<div class="stack"><${Form} key=${`${keyspace}.${table}`} keyspace=${keyspace} table=${table} definition=${data} /></div>`}<//><//>`}
  <//>`;
}
