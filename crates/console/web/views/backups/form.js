// The form of a backup: once, or once and then by a schedule.
import { post } from '../../api.js';
import { bytes, count } from '../../format.js';
import { Button, Checkbox, Dialog, Field, Input, Select, html, toast, useState } from '../../ui.js';
import { EVERY, scheduleFields } from './times.js';

const EMPTY = {
  location: '',
  retention: '',
  every: '',
  cron: '',
  drill: '',
  drillCron: '',
  credentials: '',
  keyFile: '',
  ca: '',
  speed: '',
  compression: '',
  allowHttp: false,
  takeOver: false,
  fullCheck: false,
};

function requestOf(form) {
  const text = (name, value) => (value.trim() === '' ? {} : { [name]: value.trim() });
  const number = (name, value) => (value === '' ? {} : { [name]: Number(value) });
  const flag = (name, value) => (value ? { [name]: true } : {});
  return {
    location: form.location.trim(),
    ...number('retention', form.retention),
    ...scheduleFields(form.every, form.cron, ['interval_s', 'cron']),
    ...(form.every === '' ? {} : scheduleFields(form.drill, form.drillCron, ['drill_interval_s', 'drill_cron'])),
    ...text('credentials', form.credentials),
    ...text('key_file', form.keyFile),
    ...text('location_ca', form.ca),
    ...number('max_mib_per_second', form.speed),
    ...text('compression', form.compression),
    ...flag('allow_http', form.allowHttp),
    ...flag('take_over', form.takeOver),
    ...flag('full_check', form.fullCheck),
  };
}

function Plan({ plan }) {
  const deleted = plan.points_to_delete.length;
  return html`<p class="note" role="status">
    The point would have ${count(plan.files)} files, ${bytes(plan.bytes)}. The location lacks
    ${' '}${bytes(plan.bytes_to_send)} of it in ${count(plan.objects_to_send)} objects, before compression.
    ${deleted > 0 && html` ${count(deleted)} older ${deleted === 1 ? 'point' : 'points'} would be deleted.`}
  </p>`;
}

function Schedule({ form, input, set }) {
  return html`<div class="grid">
      <${Field} label="Again" hint="Replaces the schedule of this location, if it has one.">
        <${Select}
          options=${[{ value: '', label: 'Only now' }, ...EVERY]}
          value=${form.every}
          onChange=${(event) => set({ every: event.target.value })}
        />
      <//>
      <${Field} label="Newest points to hold" hint="Older ones are deleted after a backup. All stay if it is empty.">
        <${Input} type="number" min="1" ...${input('retention')} />
      <//>
    </div>
    ${form.every === 'cron' &&
    html`<${Field} label="Crontab line" hint="Minute, hour, day, month, day of the week, in UTC: 30 3 * * *">
      <${Input} class="input mono" ...${input('cron')} />
    <//>`}
    ${form.every !== '' &&
    html`<${Field} label="Drills" hint="A drill restores the newest point into a scratch directory, and compares it.">
      <${Select}
        options=${[{ value: '', label: 'None' }, ...EVERY]}
        value=${form.drill}
        onChange=${(event) => set({ drill: event.target.value })}
      />
    <//>`}
    ${form.every !== '' &&
    form.drill === 'cron' &&
    html`<${Field} label="Crontab line of drills" hint="In UTC: 0 5 * * 0"><${Input} class="input mono" ...${input('drillCron')} /><//>`}`;
}

function More({ form, input, set }) {
  const check = (name) => ({ checked: form[name], onChange: (event) => set({ [name]: event.target.checked }) });
  return html`<details class="more-fields">
    <summary>Credentials, encryption and speed</summary>
    <div class="stack">
      <p class="soft small">Files are files of the server. It reads them for each backup, and the page never sees what is in them.</p>
      <div class="grid">
        <${Field} label="File of credentials" hint="The server's environment counts without it."><${Input} ...${input('credentials')} /><//>
        <${Field} label="File of the key" hint="Encrypts all. Without the key no point can be read."><${Input} ...${input('keyFile')} /><//>
        <${Field} label="File of the location's CA"><${Input} ...${input('ca')} /><//>
        <${Field} label="MiB a second, at most"><${Input} type="number" min="1" ...${input('speed')} /><//>
        <${Field} label="Compression">
          <${Select}
            options=${[{ value: '', label: 'zstd' }, { value: 'none', label: 'None' }]}
            value=${form.compression}
            onChange=${(event) => set({ compression: event.target.value })}
          />
        <//>
      </div>
      <${Checkbox} label="Read all files and chunks again, and send damaged ones" ...${check('fullCheck')} />
      <${Checkbox} label="Take the location over from another server" ...${check('takeOver')} />
      <${Checkbox} label="Plain HTTP beyond this machine" ...${check('allowHttp')} />
    </div>
  </details>`;
}

// `place`: the location to begin with. `places`: locations that are offered. onStarted() after it has begun.
export function BackupForm({ open, place, places, onClose, onStarted }) {
  const [form, setForm] = useState({ ...EMPTY, location: place ?? '' });
  const [busy, setBusy] = useState(null);
  const [failure, setFailure] = useState(null);
  const [plan, setPlan] = useState(null);
  const set = (some) => {
    setForm((before) => ({ ...before, ...some }));
    setPlan(null);
    setFailure(null);
  };
  const input = (name) => ({ value: form[name], onInput: (event) => set({ [name]: event.target.value }) });
  const send = async (isPlan) => {
    setBusy(isPlan ? 'plan' : 'start');
    setFailure(null);
    try {
      const answer = await post('/api/v1/backups', { ...requestOf(form), ...(isPlan ? { dry_run: true } : {}) });
      if (isPlan) setPlan(answer);
      else {
        toast(`A backup to ${form.location.trim()} has begun.`, 'good');
        onClose();
        onStarted();
      }
    } catch (thrown) {
      setFailure(thrown);
    }
    setBusy(null);
  };
  const lacks = form.location.trim() === '';
  const actions = html`<${Button} busy=${busy === 'plan'} disabled=${lacks || busy !== null} onClick=${() => send(true)}>What would be sent<//>
    <${Button} kind="primary" busy=${busy === 'start'} disabled=${lacks || busy !== null} onClick=${() => send(false)}>
      ${form.every === '' ? 'Back up now' : 'Back up now, and then by schedule'}
    <//>`;
  return html`<${Dialog} title="Back up" open=${open} onClose=${onClose} actions=${actions} wide>
    <div class="stack">
      <${Field} label="Location" hint="file:///DIR, s3:BUCKET/PREFIX, gcs:BUCKET/PREFIX or azure:ACCOUNT/CONTAINER/PREFIX">
        <${Input} class="input mono" list="backup-places" spellcheck=${false} ...${input('location')} />
      <//>
      <datalist id="backup-places">${places.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
      <${Schedule} form=${form} input=${input} set=${set} />
      <${More} form=${form} input=${input} set=${set} />
      ${plan && html`<${Plan} plan=${plan} />`}
      ${failure && html`<p class="field-error" role="alert">${failure.message}</p>`}
    </div>
  <//>`;
}
