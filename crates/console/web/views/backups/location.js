// One location: its last results, its schedule, and what can be done with it.
import { del, mayOperate, path, post } from '../../api.js';
import { bytes, count, duration } from '../../format.js';
import { Badge, Button, Code, Confirm, Dialog, Stat, Tabs, Time, html, toast, useState } from '../../ui.js';
import { looks, restores } from './commands.js';
import { scheduleText } from './times.js';

function backupState(place) {
  if (place.last_error) return { tone: 'bad', label: 'Last backup failed' };
  if (!place.last_success_time) return { tone: 'quiet', label: 'No point yet' };
  return { tone: 'good', label: 'Backed up' };
}

function drillState(place) {
  if (place.drill_ok === false) return { tone: 'bad', label: 'Drill failed' };
  return place.drill_ok ? { tone: 'good', label: 'Restore proven' } : null;
}

function Results({ place }) {
  return html`<dl class="stats">
    <${Stat} label="Last success" value=${html`<${Time} at=${place.last_success_time} />`} />
    <${Stat} label="Points" value=${count(place.points)} />
    <${Stat} label="Sent last" value=${bytes(place.sent_bytes)} note=${`${count(place.sent_objects)} ${place.sent_objects === 1 ? 'object' : 'objects'}`} />
    <${Stat} label="Took" value=${place.last_success_time ? duration(place.duration_s * 1000) : 'none yet'} />
    <${Stat} label="Last drill" value=${html`<${Time} at=${place.last_drill_time} />`} />
    ${place.failures + place.drill_failures > 0 &&
    html`<${Stat} label="Failed since the start" value=${count(place.failures + place.drill_failures)} tone="warn" />`}
  </dl>`;
}

function Planned({ schedule, onRemove }) {
  const drills = scheduleText(schedule.drill_interval_s, schedule.drill_cron);
  return html`<div class="row spread planned">
    <p>
      Backup ${scheduleText(schedule.interval_s, schedule.cron)}, next <${Time} at=${schedule.next_time} />.
      ${drills ? html` Drill ${drills}, next <${Time} at=${schedule.next_drill_time} />.` : ' No drills.'}
      ${schedule.retention ? ` The newest ${count(schedule.retention)} points stay.` : ' All points stay.'}
    </p>
    ${mayOperate() && html`<${Button} icon="trash" onClick=${onRemove}>Remove the schedule<//>`}
  </div>`;
}

function Commands({ title, tabs, open, onClose }) {
  const [tab, setTab] = useState('restore');
  return html`<${Dialog} title=${title} open=${open} onClose=${onClose} wide>
    <div class="stack">
      <${Tabs}
        tabs=${[{ id: 'restore', label: 'Restore' }, { id: 'look', label: 'List and verify' }]}
        value=${tab}
        onChange=${setTab}
        label="Commands"
        controls="backup-commands"
      />
      <div id="backup-commands" class="stack" role="tabpanel" aria-label=${tab === 'restore' ? 'Restore' : 'List and verify'}>
        ${tabs[tab].map(
          (one) => html`<section key=${one.title} class="stack tight">
            <h3>${one.title}</h3>
            <p class="soft">${one.about}</p>
            <${Code} text=${one.text} language="bash" label=${one.title} />
          </section>`,
        )}
        <p class="soft small">
          Where a key, credentials or a CA file belong to the location, add <code class="flag">--key-file</code>,
          ${' '}<code class="flag">--credentials</code> or <code class="flag">--location-ca</code>.
        </p>
      </div>
    </div>
  <//>`;
}

// `place`: what the server says of a location. `busy`: a backup, a drill or a restore runs. onBackup(location) opens the form.
export function Location({ place, schedule, busy, onBackup, onChanged }) {
  const [commands, setCommands] = useState(false);
  const [removing, setRemoving] = useState(false);
  const [starting, setStarting] = useState(false);
  const drill = async () => {
    setStarting(true);
    try {
      await post('/api/v1/drills', { location: place.location });
      toast(`A drill of ${place.location} has begun.`, 'good');
      onChanged();
    } catch (failure) {
      toast(failure.message, 'bad');
    }
    setStarting(false);
  };
  const remove = async () => {
    await del(path('/api/v1/backups/schedules', schedule.id));
    toast(`The schedule of ${place.location} is removed.`, 'good');
    onChanged();
  };
  const states = [backupState(place), drillState(place)].filter(Boolean);
  return html`<section class="card location" aria-label=${place.location}>
    <header class="card-head">
      <h2 class="mono">${place.location}</h2>
      <div class="row">${states.map(({ tone, label }) => html`<${Badge} key=${label} tone=${tone}>${label}<//>`)}</div>
    </header>
    <div class="stack">
      <${Results} place=${place} />
      ${place.last_error && html`<p class="task-error">Backup: ${place.last_error}</p>`}
      ${place.drill_error && html`<p class="task-error">Drill: ${place.drill_error}</p>`}
      ${schedule
        ? html`<${Planned} schedule=${schedule} onRemove=${() => setRemoving(true)} />`
        : html`<p class="soft planned">No schedule. A backup that is made by hand is one that is forgotten.</p>`}
      <div class="row">
        ${mayOperate() &&
        html`<${Button} kind="primary" disabled=${busy} onClick=${() => onBackup(place.location)}>Back up now<//>
          <${Button} busy=${starting} disabled=${busy || !place.last_point} onClick=${drill}>Drill now<//>`}
        <${Button} onClick=${() => setCommands(true)}>Commands to restore<//>
        ${place.last_point && html`<span class="soft small">Newest point <code>${place.last_point}</code></span>`}
      </div>
    </div>
    <${Commands}
      title="Restore from this location"
      tabs=${{ restore: restores(place.location, place.last_point), look: looks(place.location) }}
      open=${commands}
      onClose=${() => setCommands(false)}
    />
    <${Confirm} title="Remove this schedule?" open=${removing} onClose=${() => setRemoving(false)} onConfirm=${remove} confirmLabel="Remove it" danger>
      <p>No backup of <code>${place.location}</code> is made by itself any more. Points that are there stay.</p>
    <//>
  </section>`;
}
