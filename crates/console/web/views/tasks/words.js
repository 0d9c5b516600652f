// Tasks in words: what a kind of work does, on what, how far it is.
import { bytes, count, duration } from '../../format.js';

// title: the name of the work. about: a sentence. stop: what stopping it means.
const KINDS = {
  backup: {
    title: 'Backup',
    about: 'Saves all rows, the schema, the roles and the indexes to a location.',
    stop: 'No point is made. What was sent stays, so that the next backup sends less.',
  },
  build: {
    title: 'Build of an index',
    about: 'From the moment the index was found until it serves searches.',
  },
  catch_up: { title: 'Catch-up with the log', about: 'Reads the writes that came before the reader of the log began.' },
  drill: {
    title: 'Drill',
    about: 'Restores a point into a scratch directory, compares it, and removes it.',
    stop: 'The scratch directory is removed. The point stays unproven.',
  },
  entries: { title: 'Entries of a secondary index', about: 'Fills a new secondary index with the rows of its table.' },
  expiry: { title: 'Expiry of rows', about: 'Deletes rows whose time has come.' },
  map: {
    title: 'Map of an index',
    about: 'Lays a sample of the index out in two dimensions.',
    stop: 'No map is made. Maps that are there stay.',
  },
  mend: { title: 'Mending', about: 'Reads rows again that looked different, and mends them.' },
  merge: { title: 'Merge of segments', about: 'Merges the segments of a full-text index.' },
  partitions: {
    title: 'Sizes of partitions',
    about: 'Reads the tables to find large partitions.',
    stop: 'The sizes that were known before stay.',
  },
  recall: {
    title: 'Check of the recall',
    about: 'Compares the answers of searches with the true nearest rows.',
    stop: 'Who waits for the check gets no figure.',
  },
  repair: {
    title: 'Repair of an index',
    about: 'Compares the index with its table, and mends each difference.',
    stop: 'What was mended stays. The next repair begins from the start.',
  },
  restore: {
    title: 'Restore',
    about: 'Brings tables of a point back, next to those that are there.',
    stop: 'Tables that are not complete are removed.',
  },
  sample: { title: 'Sample data', about: 'Loads the films.', stop: 'Rows that were written stay.' },
  scan: { title: 'Scan of a table', about: 'Reads the rows of a table.' },
  scrub: {
    title: 'Check of all files',
    about: 'Reads every file, and compares it with its checksums.',
    stop: 'Files that were not read stay unchecked.',
  },
  snapshot: {
    title: 'Snapshot',
    about: 'Saves an index, so that a restart needs no new build; or links all files into another directory.',
    stop: 'The last snapshot stays. The next one comes at its time.',
  },
};

export function titleOf(task) {
  return KINDS[task.kind]?.title ?? task.kind.replaceAll('_', ' ');
}

export function aboutOf(task) {
  return KINDS[task.kind]?.about ?? 'Long work of this server.';
}

export function stopOf(task) {
  return KINDS[task.kind]?.stop ?? 'What was done up to now is not taken back.';
}

// The keyspace and the index or table of a task; its location or reader; or that it is of the whole server.
export function objectOf(task) {
  const name = task.index ?? task.table;
  if (name !== undefined) return `${task.keyspace}.${name}`;
  return task.keyspace ?? task.entity ?? 'the whole server';
}

export function rangeOf(task) {
  return task.token_range ? `tokens ${task.token_range.start} to ${task.token_range.end}` : null;
}

const STATES = {
  running: { label: 'Running', tone: 'quiet' },
  stopping: { label: 'Stopping', tone: 'warn' },
  done: { label: 'Done', tone: 'good' },
  failed: { label: 'Failed', tone: 'bad' },
  aborted: { label: 'Stopped', tone: 'warn' },
};

export function stateOf(task) {
  const state = task.state === 'running' && task.abort_requested ? 'stopping' : task.state;
  return STATES[state] ?? { label: state, tone: 'quiet' };
}

const FORMS = { bytes, seconds: (n) => duration(n * 1000) };

// "3 of 17 token ranges", "61 MiB", or nothing where nothing is counted.
export function progressOf(task) {
  const { progress_units: units, progress_completed: done, progress_total: total } = task;
  if (!units || (done === 0 && (total ?? null) === null)) return null;
  const form = FORMS[units] ?? count;
  const unit = FORMS[units] ? '' : ` ${units.replaceAll('_', ' ')}`;
  return (total ?? null) === null ? `${form(done)}${unit}` : `${form(done)} of ${form(total)}${unit}`;
}

// Milliseconds from the beginning to the end, or to now.
export function tookOf(task) {
  const end = task.end_time ? Date.parse(task.end_time) : Date.now();
  return Math.max(0, end - Date.parse(task.start_time));
}

export function tookText(task) {
  const took = tookOf(task);
  return took < 1 ? 'under 1 ms' : duration(took);
}

export function counterOf([name, value]) {
  const isBytes = name.endsWith('bytes');
  const isTime = name.endsWith('_us');
  return {
    label: name.replace(/_us$/, '').replaceAll('_', ' '),
    value: isBytes ? bytes(value) : isTime ? duration(value / 1000) : count(value),
  };
}
