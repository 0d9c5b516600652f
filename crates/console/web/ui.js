// Everything that views draw with. The parts are in ui/.
export * from './ui/html.js';
export { Icon, Mark } from './ui/icons.js';
export { Async, Card, Empty, Failure, Loading, Page } from './ui/page.js';
export {
  Button,
  Checkbox,
  Copy,
  Field,
  Filter,
  Input,
  Select,
  Slider,
  Tabs,
  TextArea,
  useField,
  wordsOf,
} from './ui/controls.js';
export { Pick } from './ui/pick.js';
export { Table } from './ui/table.js';
export { Badge, Bar, Progress, Stat } from './ui/figures.js';
export { Confirm, Dialog, Toasts, toast } from './ui/dialog.js';
export { Code, Json, Marked, Time } from './ui/text.js';
