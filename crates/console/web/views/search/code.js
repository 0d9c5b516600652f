// A request as code to copy: curl, and Python with its standard library.

// The address of the server as this page reached it.
const origin = () => globalThis.location?.origin ?? 'http://127.0.0.1:6080';

// A login in the form that a program needs: "none", "password" or "token".
export function curlOf(path, body, login) {
  const auth =
    { password: ' \\\n    -u USER:PASSWORD', token: " \\\n    -H 'Authorization: Bearer TOKEN'" }[login] ?? '';
  return `curl -s '${origin()}${path.replaceAll("'", '%27')}' \\\n    -H 'Content-Type: application/json'${auth} -d @- <<'JSON'\n${compact(body)}\nJSON\n`;
}

export function pythonOf(path, body, login) {
  const auth =
    {
      password:
        'import base64\n\nlogin = base64.b64encode(b"USER:PASSWORD").decode()\nheaders = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}',
      token: '\nheaders = {"Content-Type": "application/json", "Authorization": "Bearer TOKEN"}',
    }[login] ?? '\nheaders = {"Content-Type": "application/json"}';
  return `import json
import urllib.request
${auth}
body = ${pythonLiteral(body)}
request = urllib.request.Request("${origin()}${path}", json.dumps(body).encode(), headers)
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
${answerLines(path)}`;
}

function answerLines(path) {
  if (path.endsWith('/search'))
    return 'for row, score in zip(answer["rows"], answer["scores"]):\n    print(f"{score:.4f}", row)\n';
  const scores = path.endsWith('/ann') ? 'similarity_scores' : 'scores';
  return `keys = [dict(zip(answer["primary_keys"], key)) for key in zip(*answer["primary_keys"].values())]
for key, score in zip(keys, answer["${scores}"]):
    print(f"{score:.4f}", key)
`;
}

// JSON with a field a line.
function compact(body) {
  const fields = Object.entries(body).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${literal(value, JSON_WORDS)}`,
  );
  return `{\n${fields.join(',\n')}\n}`;
}

function pythonLiteral(body) {
  const fields = Object.entries(body).map(
    ([name, value]) => `    ${JSON.stringify(name)}: ${literal(value, PYTHON_WORDS)},`,
  );
  return `{\n${fields.join('\n')}\n}`;
}

const JSON_WORDS = { null: 'null', true: 'true', false: 'false' };
const PYTHON_WORDS = { null: 'None', true: 'True', false: 'False' };

// A value on one line. JSON and Python differ in three words.
function literal(value, words) {
  if (value === null || typeof value === 'boolean') return words[String(value)];
  if (Array.isArray(value)) return `[${value.map((one) => literal(one, words)).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, words)}`);
  return `{${fields.join(', ')}}`;
}

// A text with its long lists of numbers shortened, to be looked at and not to be run.
export function shortened(text) {
  return text.replace(/\[(-?[\d.e+-]+(?:,\s*-?[\d.e+-]+){11,})\]/gi, (_, list) => {
    const numbers = list.split(/,\s*/);
    return `[${numbers.slice(0, 3).join(', ')}, … ${numbers.length - 6} more …, ${numbers.slice(-3).join(', ')}]`;
  });
}
