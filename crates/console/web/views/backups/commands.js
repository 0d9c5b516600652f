// Commands that do with a location what the console does not: they need a machine of their own, or the location's files.
import { session } from '../../api.js';

const USUAL_HTTP = '127.0.0.1:6080';
// A command of one line would not be seen whole.
const NEXT_LINE = ' \\\n    ';

// A word of a shell as it is.
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// Where commands find this server, unless it is where they look by themselves.
function serverFlag() {
  const http = session.current?.http;
  const scheme = location.protocol === 'https:' ? 'https' : 'http';
  return !http || http === USUAL_HTTP ? '' : `${NEXT_LINE}--http ${scheme}://${http}`;
}

// Ways to restore: {title, about, text}.
export function restores(place, point) {
  const at = `--location ${quoted(place)}`;
  const of = point ? `${NEXT_LINE}--point ${quoted(point)}` : '';
  return [
    {
      title: 'A table as it was, next to the present one',
      about: 'Name the keyspace and the table. They appear once they are complete; nothing is overwritten.',
      text: `annulus restore ${at}${of}${NEXT_LINE}--keyspace shop --table products --to-keyspace shop_before${serverFlag()}`,
    },
    {
      title: 'All into this server',
      about: 'Tables whose name is there already are not touched.',
      text: `annulus restore ${at}${of}${serverFlag()}`,
    },
    {
      title: 'A new server',
      about: 'The directory must be missing or empty. No running server is needed.',
      text: `annulus restore ${at}${of}${NEXT_LINE}--data /var/lib/annulus-copy\nannulus serve --data-dir /var/lib/annulus-copy`,
    },
    {
      title: 'Any CQL cluster, Cassandra too',
      about: 'Rows go by CQL, with their write times and TTLs.',
      text: `annulus restore ${at}${of}${NEXT_LINE}--cql 10.0.0.1:9042,10.0.0.2:9042`,
    },
  ];
}

export function looks(place) {
  const at = `--location ${quoted(place)}`;
  return [
    { title: 'List the points', about: 'Reads the location itself, without a server.', text: `annulus backup list ${at}` },
    { title: 'Verify', about: 'Reads every byte, and names each damaged or missing object.', text: `annulus backup verify ${at}` },
  ];
}
