// Requests that a test makes as it wants them, in place of a browser.
import { request } from 'node:http';
import { once } from 'node:events';

// The header that no page of another origin can send.
export const guard = { 'X-Requested-With': 'annulus' };

// The status of an answer. fetch() sets Host and Origin by itself: this sends them as they are given.
export async function statusOf(url, headers = {}, method = 'GET') {
  const sent = request(url, { method, headers });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  return answer.statusCode;
}
