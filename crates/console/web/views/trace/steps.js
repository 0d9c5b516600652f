// What the steps of a trace mean. The server notes a step as a sentence; here a sentence gets a part
// of the work (`stage`), and the numbers in it. A sentence that is not known keeps the stage
// `other`, and is shown as it is.
//
// A step is noted either when work begins ("Asking index ...") or when it has ended ("Read 4 rows
// ..."). The time between two steps belongs to the one that ended, else to the one that began.

// The parts of the work, in the order of a legend. `colour` is a variable of the style sheet.
export const STAGES = {
  parse: { label: 'Parse and prepare', colour: '--ink-soft' },
  plan: { label: 'Plan', colour: '--c8' },
  wait: { label: 'Wait for the index', colour: '--c6' },
  walk: { label: 'Search of the index', colour: '--c1' },
  filter: { label: 'Filtered search', colour: '--c7' },
  candidates: { label: 'Candidates', colour: '--c3' },
  rows: { label: 'Rows read', colour: '--c4' },
  rescore: { label: 'Rescoring', colour: '--c5' },
  refill: { label: 'Refill', colour: '--c2' },
  write: { label: 'Write', colour: '--c7' },
  answer: { label: 'Answer', colour: '--ink-soft' },
  other: { label: 'Other steps', colour: '--line' },
};

// What each stage is, for a reader who does not know the server.
export const MEANINGS = {
  parse: 'The text of the statement is read and checked.',
  plan: 'The server decides how to find the rows.',
  wait: 'The index takes in all acknowledged writes, so that the answer knows them.',
  walk: 'The index is searched: by a walk of the graph, or by a scan of the codes.',
  filter: 'The index looks only at the rows that the filter admits.',
  candidates: 'The index names rows. More than LIMIT are requested where some may drop out.',
  rows: 'The named rows are read from the table, and checked for all of WHERE.',
  rescore: 'Rows or texts get their exact scores.',
  refill: 'Too few rows satisfied WHERE, so that more candidates are requested.',
  write: 'Changes are written to the disk.',
  answer: 'The answer is put together.',
  other: 'Steps that the console has no picture for.',
};

// Sentences of steps: [pattern, stage, "begins" or "ended", numbers of the match]. All of them are
// written in crates/query, crates/node and crates/store.
const SENTENCES = [
  [/^Parsing /, 'parse', 'begins'],
  [/^Preparing statement/, 'parse', 'begins'],
  [/^Decided: /, 'plan', 'begins'],
  [/^Nothing to read/, 'plan', 'begins'],
  [/^The access path leads to few rows/, 'plan', 'begins'],
  [/^Finding rows by (\d+) lookups/, 'plan', 'begins'],
  [/^Asking index (\S+) for (\d+) candidates \(k = (\d+)/, 'candidates', 'begins', ['index', 'requested', 'limit']],
  [/^Asking index (\S+) for (\d+) rows with words/, 'candidates', 'begins', ['index', 'requested']],
  [/^Asking index (\S+) for \w+ of (\d+) texts/, 'rescore', 'begins', ['index', 'texts']],
  [/^Scoring (\d+) texts/, 'rescore', 'begins', ['texts']],
  [/^Waited (\d+) microseconds/, 'wait', 'ended', ['waited']],
  [
    /^Searched the index by an? (exact search|\w+), which the filter admitted (\d+) rows/,
    'filter',
    'ended',
    ['way', 'admitted'],
  ],
  [/^Searched the index by an? (filtered_\w+)/, 'filter', 'ended', ['way']],
  [/^Searched the index by an? (exact search|\w+)/, 'walk', 'ended', ['way']],
  [/^The index named (\d+) rows with their values/, 'candidates', 'ended', ['named']],
  [/^The index named (\d+) rows/, 'candidates', 'ended', ['named']],
  [/^The indexes named \[([\d, ]*)\] rows/, 'candidates', 'ended', ['named']],
  [/^Read (\d+) rows by their keys, of which (\d+) are gone/, 'rows', 'ended', ['read', 'gone']],
  [/^Read (\d+) rows by their keys, of which (\d+) are there/, 'rows', 'ended', ['read']],
  [/^Read (\d+) live rows/, 'rows', 'ended', ['read']],
  [/^Executing single-partition query/, 'rows', 'begins'],
  [/^Reading /, 'rows', 'begins'],
  [/^Ranked (\d+) rows of the access path/, 'rescore', 'ended', ['ranked']],
  [/^Too few rows match: refilling with (.*) candidates/, 'refill', 'begins', ['requested']],
  [/^The index can't name enough rows/, 'refill', 'begins'],
  [/^The index has had no room for some rows/, 'refill', 'begins'],
  [/^Committing changes/, 'write', 'begins'],
  [/^Checking the conditions and committing/, 'write', 'begins'],
  [/^The commit is acknowledged/, 'write', 'ended'],
  [/^The conditions hold, and the commit/, 'write', 'ended'],
  [/^A condition does not hold/, 'write', 'ended'],
  [/^Changing the schema/, 'write', 'begins'],
  [/^Returning (\d+) rows/, 'answer', 'ended', ['returned']],
];

// The stage of a sentence, whether it is noted when work begins, and the values that it names.
function meaningOf(activity) {
  for (const [pattern, stage, when, names = []] of SENTENCES) {
    const match = pattern.exec(activity);
    if (!match) continue;
    const values = Object.fromEntries(names.map((name, at) => [name, match[at + 1]]));
    return { stage, begins: when === 'begins', values };
  }
  return { stage: 'other', begins: false, values: {} };
}

// The picture of a trace. `events` are rows of system_traces.events in their order; `duration` is
// that of system_traces.sessions, in microseconds. Each step of the answer has {activity, thread,
// stage, values, at, from, to, round}: the bar of its time is from `from` to `to`.
export function pictureOf(events, duration) {
  const steps = events.map(({ activity, source_elapsed: at, thread }) => ({
    activity,
    thread,
    at,
    from: at,
    to: at,
    round: 0,
    ...meaningOf(activity),
  }));
  let round = 0;
  for (const step of steps) {
    if (step.stage === 'refill') round += 1;
    step.round = round;
  }
  const total = Math.max(duration ?? 0, ...steps.map((step) => step.at), 1);
  steps.forEach((step, at) => giveTime(step, steps[at + 1], at === 0 ? 0 : steps[at - 1].at, total));
  return { steps, total, parts: partsOf(steps, total), facts: factsOf(steps) };
}

// Gives the time before a step that ended, and the time after one that began and that no other
// step's end accounts for. A wait knows its own length; what is before it belongs to the request.
function giveTime(step, next, before, total) {
  if (!step.begins) {
    const waited = step.stage === 'wait' ? Number(step.values.waited) : Infinity;
    step.from = Math.max(before, step.at - waited);
  } else if (!next) {
    step.to = total;
  } else if (next.begins) {
    step.to = next.at;
  } else if (next.stage === 'wait') {
    step.to = Math.max(step.at, next.at - Number(next.values.waited));
  }
}

// How long each stage took, in the order of the legend, with the time that no step accounts for as
// `other`.
function partsOf(steps, total) {
  const times = {};
  let known = 0;
  for (const { stage, from, to } of steps) {
    times[stage] = (times[stage] ?? 0) + (to - from);
    known += to - from;
  }
  times.other = (times.other ?? 0) + Math.max(total - known, 0);
  const order = Object.keys(STAGES).filter((stage) => times[stage] > 0);
  return order.map((stage) => ({ stage, micros: times[stage], share: times[stage] / total }));
}

const sum = (steps, name) =>
  steps.flatMap((step) => (step.values[name] ?? '').split(',')).reduce((all, one) => all + (Number(one) || 0), 0);

// What a search did, in numbers; null for a trace without a search.
function factsOf(steps) {
  const searches = steps.filter((step) => step.values.way);
  const requests = steps.filter((step) => step.stage === 'candidates' && step.values.requested);
  if (searches.length + requests.length === 0) return null;
  const ways = {};
  for (const { values } of searches) {
    const way = values.way.replaceAll('_', ' ');
    ways[way] = (ways[way] ?? 0) + 1;
  }
  const admitted = searches.map((step) => step.values.admitted).filter(Boolean);
  return {
    indexes: [...new Set(requests.map((step) => step.values.index))],
    ways: Object.entries(ways),
    admitted: admitted.length ? Number(admitted.at(-1)) : null,
    requested: sum(requests, 'requested'),
    named: sum(steps, 'named'),
    read: sum(
      steps.filter((step) => step.stage === 'rows'),
      'read',
    ),
    gone: sum(steps, 'gone'),
    rescored: sum(steps, 'texts') + sum(steps, 'ranked'),
    refills: steps.filter((step) => step.stage === 'refill' && step.values.requested).length,
  };
}
