// The editor of CQL: CodeMirror in a shadow root, where its style sheets are objects that the
// page's Content-Security-Policy lets in.

import {
  Decoration,
  EditorState,
  EditorView,
  ViewPlugin,
  acceptCompletion,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  completionStatus,
  defaultKeymap,
  drawSelection,
  highlightActiveLine,
  history,
  historyKeymap,
  indentOnInput,
  keymap,
  lineNumbers,
  lintGutter,
  placeholder,
  setDiagnostics,
  syntaxHighlighting,
} from '../../vendor/codemirror.js';
import { html, useEffect, useRef } from '../../ui.js';
import { completionsOf, cql, cqlColours } from './language.js';
import { SchemaCatalog } from './schema.js';
import { statementAt, statements } from './text.js';

const look = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--raised)', fontSize: '14px', height: '100%' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', overflow: 'auto' },
  '.cm-content': { padding: '12px 0', caretColor: 'var(--ink)' },
  '.cm-line': { padding: '0 16px 0 8px' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--ink-soft)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 8px 0 12px', minWidth: '24px' },
  '.cm-gutter-lint': { width: '12px' },
  '.cm-activeLine': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--ink) 4%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 25%, transparent)',
  },
  '.cm-statement': { boxShadow: 'inset 2px 0 0 var(--accent)' },
  '.cm-placeholder': { color: 'var(--ink-soft)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 25%, transparent)',
    outline: 'none',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)',
    color: 'var(--ink)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    overflow: 'hidden',
  },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '13px', maxHeight: '260px' },
  '.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px !important', display: 'flex', gap: '16px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent) !important',
    color: 'var(--accent-ink) !important',
  },
  '.cm-completionLabel': { flex: '1' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '0.75', marginLeft: '0' },
  '.cm-diagnostic': { padding: '8px 12px', maxWidth: '480px', fontFamily: 'var(--sans, system-ui)' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--bad)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad)',
    textDecorationSkipInk: 'none',
    textUnderlineOffset: '3px',
  },
});

// Marks the lines of the statement that would run, where the text has several.
const markedStatement = ViewPlugin.fromClass(
  class {
    constructor(view) {
      this.decorations = linesOfStatement(view.state);
    }
    update(update) {
      if (update.docChanged || update.selectionSet) this.decorations = linesOfStatement(update.state);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

function linesOfStatement(state) {
  const text = state.doc.toString();
  if (statements(text).length < 2) return Decoration.none;
  const { from, to } = statementAt(text, state.selection.main.head);
  const marks = [];
  for (let number = state.doc.lineAt(from).number; number <= state.doc.lineAt(to).number; number += 1) {
    marks.push(Decoration.line({ class: 'cm-statement' }).range(state.doc.line(number).from));
  }
  return Decoration.set(marks);
}

// Text typed over a selection. Left to itself, the browser gives what it types the style of what was there, as an inline
// style, which the page's Content-Security-Policy refuses.
const typedOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    const isText = event.inputType === 'insertText' && event.data;
    if (empty || !isText || view.composing) return false;
    event.preventDefault();
    const insert = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: 'input.type' });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, from, to, event.data, insert))) view.dispatch(insert());
    return true;
  },
});

// A list of completions that comes when the cursor has left the text is closed again: it would cover the page.
const noLateCompletion = EditorView.updateListener.of(({ view, state }) => {
  const isLate = completionStatus(state) === 'active' && !view.hasFocus;
  if (isLate) queueMicrotask(() => closeCompletion(view));
});

// What the page does with an editor, without knowing CodeMirror.
class EditorHandle {
  constructor(view) {
    this.view = view;
  }

  text() {
    return this.view.state.doc.toString();
  }

  // The text that is selected, as {from, to}; null if nothing is.
  selection() {
    const { from, to, empty } = this.view.state.selection.main;
    return empty ? null : { from, to };
  }

  cursor() {
    return this.view.state.selection.main.head;
  }

  replace(text) {
    const length = this.view.state.doc.length;
    this.view.dispatch({ changes: { from: 0, to: length, insert: text }, selection: { anchor: text.length } });
  }

  // Marks a place with a message and shows it. null takes the mark away.
  mark(error) {
    const marks = error ? [{ from: error.from, to: error.to, severity: 'error', message: error.message }] : [];
    this.view.dispatch(setDiagnostics(this.view.state, marks));
    if (error) this.view.dispatch({ effects: EditorView.scrollIntoView(error.from) });
  }

  focus() {
    this.view.focus();
  }
}

// The editor. `handle` is a ref that gets an EditorHandle. `schema` and `keyspace` feed completion.
// onRun gets true if all statements are to run. The text is the editor's own: `initial` is read once.
export function CqlEditor({ handle, initial, schema, keyspace, onChange, onRun, label }) {
  const host = useRef(null);
  const latest = useRef({});
  latest.current = { schema: schema ?? new SchemaCatalog(), keyspace, onChange, onRun };
  useEffect(() => {
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' });
    const view = new EditorView({ root, parent: root, state: stateOf(initial, label, latest) });
    handle.current = new EditorHandle(view);
    // Keys of the text are not keys of the page, which can't see into the shadow root.
    const keep = (event) => event.stopPropagation();
    host.current.addEventListener('keydown', keep);
    const element = host.current;
    return () => {
      element.removeEventListener('keydown', keep);
      handle.current = null;
      view.destroy();
    };
  }, []);
  return html`<div class="cql-editor" ref=${host}></div>`;
}

function stateOf(initial, label, latest) {
  const run = (all) => () => {
    latest.current.onRun(all);
    return true;
  };
  return EditorState.create({
    doc: initial,
    extensions: [
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      markedStatement,
      typedOverSelection,
      noLateCompletion,
      autocompletion({
        override: [
          completionsOf(
            () => latest.current.schema,
            () => latest.current.keyspace,
          ),
        ],
        icons: false,
      }),
      cql,
      syntaxHighlighting(cqlColours),
      placeholder('Type a statement of CQL'),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged || update.selectionSet) {
          latest.current.onChange(update.state.doc.toString(), update.state.selection.main.head);
        }
      }),
      look,
      keymap.of([
        { key: 'Mod-Enter', run: run(false) },
        { key: 'Shift-Mod-Enter', run: run(true) },
        { key: 'Tab', run: acceptCompletion },
        ...closeBracketsKeymap,
        ...defaultKeymap,
        ...historyKeymap,
        ...completionKeymap,
      ]),
    ],
  });
}
