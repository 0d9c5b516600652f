import { get, mayOperate, useData } from '../api.js';
import { Async, Button, Card, Code, Empty, Failure, Page, html, useState } from '../ui.js';
import { BackupForm } from './backups/form.js';
import { Location } from './backups/location.js';
import { taskHref } from './links.js';
import { TaskProgress } from './tasks/parts.js';
import { Stop } from './tasks/stop.js';
import { objectOf, titleOf, tookText } from './tasks/words.js';

const RUNNING_MS = 2000;
const QUIET_MS = 10000;
const FIRST = `annulus backup --location file:///var/backups/annulus \\
    --retention 7 --interval 1d --drill-interval 7d`;
const BOUND = `annulus serve \\
    --backup-locations file:///var/backups/annulus,s3:backups/shop`;

// The locations that the setting --backup-locations names. Only who may back up has a use for them.
async function allowedPlaces(signal) {
  if (!mayOperate()) return [];
  try {
    const { settings } = await get('/api/v1/settings', { signal });
    const value = settings.find(({ name }) => name === 'backup-locations')?.value ?? '';
    return value.split(',').map((one) => one.trim()).filter((one) => one.includes(':'));
  } catch (failure) {
    if (failure.kind !== 'refused' && failure.kind !== 'missing') throw failure;
    return [];
  }
}

// A schedule whose first backup has not begun has no results: its location is shown all the same.
function placesOf({ locations, schedules }) {
  const known = new Set(locations.map((one) => one.location));
  const planned = schedules.filter((one) => !known.has(one.location));
  const blank = { duration_s: 0, sent_bytes: 0, sent_objects: 0, points: 0, failures: 0, drill_failures: 0 };
  return [...locations, ...planned.map(({ location }) => ({ location, ...blank }))];
}

function Running({ task, onStopped }) {
  return html`<${Card} title=${`${titleOf(task)} runs`} actions=${html`<${Stop} task=${task} onStopped=${onStopped} />`}>
    <div class="stack tight">
      <${TaskProgress} task=${task} uncounted="reads what there is" />
      <div class="row spread">
        <span class="mono soft">${objectOf(task)}</span>
        <span class="soft number">for ${tookText(task)}</span>
      </div>
      <div><a href=${taskHref(task)}>Open the task</a></div>
    </div>
  <//>`;
}

function FirstBackup({ places, onBackup }) {
  return html`<${Card}>
    <${Empty}
      title="Nothing is backed up yet"
      action=${mayOperate() && html`<${Button} kind="primary" onClick=${() => onBackup('')}>Make a backup<//>`}
    >
      A backup is a point: all rows, the schema, the roles and the indexes as they were at one moment. Later points send
      only what is new.
    <//>
    <div class="stack first-backup">
      <h2>From a shell, with a schedule and drills</h2>
      <${Code} text=${FIRST} language="bash" label="First backup" />
      ${places.length === 0
        ? html`<p class="soft">
              Now every location may be named; where clients need no login, a directory only from the server's own
              machine. The setting <code class="flag">--backup-locations</code> bounds it:
            </p>
            <${Code} text=${BOUND} language="bash" label="Bound of locations" />`
        : html`<p class="soft">This server allows: <code>${places.join(', ')}</code></p>`}
    </div>
  <//>`;
}

function Backups({ status, places, reload, onBackup }) {
  const all = placesOf(status);
  const schedules = new Map(status.schedules.map((one) => [one.location, one]));
  return html`${status.running && html`<${Running} task=${status.running} onStopped=${reload} />`}
    ${status.leaves_out && html`<p class="note">These backups leave out: ${status.leaves_out}</p>`}
    ${all.map(
      (place) => html`<${Location}
        key=${place.location}
        place=${place}
        schedule=${schedules.get(place.location)}
        busy=${status.running !== undefined}
        onBackup=${onBackup}
        onChanged=${reload}
      />`,
    )}
    ${all.length === 0 && html`<${FirstBackup} places=${places} onBackup=${onBackup} />`}`;
}

function View() {
  const [running, setRunning] = useState(false);
  // The location that the form begins with; null while it is closed.
  const [form, setForm] = useState(null);
  const allowed = useData(allowedPlaces);
  const backups = useData(
    async (signal) => {
      const status = await get('/api/v1/backups', { signal });
      setRunning(status.running !== undefined);
      return status;
    },
    [],
    { every: running ? RUNNING_MS : QUIET_MS },
  );
  const places = allowed.data ?? [];
  const known = backups.data ? placesOf(backups.data).map((one) => one.location) : [];
  const another = known.length > 0 && mayOperate();
  return html`<${Page}
    title="Backups"
    lead="Points in locations outside of this server, their schedules, and the drills that prove that they restore."
    actions=${another && html`<${Button} icon="plus" disabled=${running} onClick=${() => setForm('')}>Another location<//>`}
  >
    ${allowed.failure && html`<${Failure} failure=${allowed.failure} retry=${allowed.reload} />`}
    <${Async} of=${backups} label="Loading the backups">
      ${(status) => html`<${Backups} status=${status} places=${places} reload=${backups.reload} onBackup=${setForm} />`}
    <//>
    <${BackupForm}
      key=${form ?? 'closed'}
      open=${form !== null}
      place=${form}
      places=${[...new Set([...known, ...places])]}
      onClose=${() => setForm(null)}
      onStarted=${backups.reload}
    />
  <//>`;
}

export default {
  id: 'backups',
  title: 'Backups',
  icon: 'backups',
  group: 'Administer',
  needs: (session) => session.features.backups,
  View,
};
