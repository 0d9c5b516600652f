// What the console uses of CodeMirror, as one module. `npm run build` makes web/vendor/codemirror.js
// of it. The language (web/views/query/language.js) is plain source, not a part of this file.
export { EditorState, StateEffect, StateField, Compartment, Prec, RangeSetBuilder } from '@codemirror/state';
export {
  Decoration,
  EditorView,
  ViewPlugin,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view';
export { defaultKeymap, history, historyKeymap, toggleLineComment } from '@codemirror/commands';
export {
  HighlightStyle,
  StreamLanguage,
  bracketMatching,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
export {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  completionStatus,
  startCompletion,
} from '@codemirror/autocomplete';
export { lintGutter, setDiagnostics } from '@codemirror/lint';
export { tags } from '@lezer/highlight';
