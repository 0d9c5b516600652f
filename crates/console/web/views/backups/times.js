// Times of schedules in words, and back.
const UNITS = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

// 86400 as "each day", 7200 as "each 2 hours".
function everyText(seconds) {
  const [unit, length] = UNITS.find(([, size]) => seconds % size === 0);
  const number = seconds / length;
  return number === 1 ? `each ${unit}` : `each ${number} ${unit}s`;
}

export function scheduleText(seconds, cron) {
  if (cron) return `at ${cron} (UTC)`;
  return seconds ? everyText(seconds) : null;
}

// What a person chose of a list, as fields of a request: "86400" are seconds, "cron" has its line in another field.
export function scheduleFields(choice, cron, [interval, line]) {
  if (choice === '') return {};
  return choice === 'cron' ? { [line]: cron.trim() } : { [interval]: Number(choice) };
}

export const EVERY = [
  { value: '3600', label: 'Each hour' },
  { value: '86400', label: 'Each day' },
  { value: '604800', label: 'Each week' },
  { value: 'cron', label: 'By a crontab line' },
];
