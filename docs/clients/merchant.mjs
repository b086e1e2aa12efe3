// Client of Tillbook, to copy. Needs Node 18 or newer, and no packages.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const BASE_URL = process.env.MERCHANT_URL || 'http://127.0.0.1:8000'; // with the API prefix, if there is one
const API_KEY = process.env.MERCHANT_KEY || 'demo';
const SECRET = process.env.MERCHANT_SECRET || 'demo-secret';
const CALLBACK_SECRET = process.env.MERCHANT_CALLBACK_SECRET || ''; // if empty, no callback is accepted

function leaves(value, path = '') {
  if (value === null || value === undefined || value === '') return [];
  if (typeof value !== 'object') return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, item]) => leaves(item, path ? `${path}.${name}` : name));
}

export function stringToSign(endpoint, fields) {
  const pairs = leaves(fields).sort(([a], [b]) => (a < b ? -1 : 1)); // not localeCompare: it sorts by language
  return [endpoint, ...pairs.map(([path, value]) => `${path}=${value}`)].join('\n');
}

export function sign(endpoint, fields) {
  return createHmac('sha256', SECRET).update(stringToSign(endpoint, fields)).digest('hex');
}

/** Return the response, also if it is a refusal. Throws if there is no response: send the same request again with the same key. */
export async function call(endpoint, fields, idempotencyKey = '') {
  const now = Math.floor(Date.now() / 1000);
  const body = { ...fields, api_key: API_KEY, timestamp: now, nonce: randomBytes(16).toString('hex') };
  body.signature = sign(endpoint, body);
  const answer = await fetch(`${BASE_URL}/merchant/${endpoint}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }) },
    body: JSON.stringify(body),
    redirect: 'error', // a signed request goes nowhere else
    signal: AbortSignal.timeout(30_000),
  });
  return answer.json();
}

/** Return whether a callback is genuine. `headers` are in lower case, as in Node; `body` is the raw Buffer. */
export function verified(headers, body) {
  const timestamp = headers['webhook-timestamp'] ?? '';
  const key = Buffer.from(CALLBACK_SECRET.replace(/^whsec_/, ''), 'base64');
  const late = Math.abs(Date.now() / 1000 - Number(timestamp)) > 300;
  if (!key.length || !/^[0-9]{1,12}$/.test(timestamp) || late) return false;
  const mac = createHmac('sha256', key).update(`${headers['webhook-id']}.${timestamp}.`).update(body);
  const expected = Buffer.from('v1,' + mac.digest('base64'));
  return (headers['webhook-signature'] ?? '').split(' ').some((text) => {
    const given = Buffer.from(text);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** Return whether the fields of the address to which a payer returns are genuine: URLSearchParams. Credit on the callback only. */
export function verifiedReturn(fields) {
  const of = (name) => fields.get(name) ?? '';
  const headers = { 'webhook-id': of('order_no'), 'webhook-timestamp': of('timestamp'), 'webhook-signature': of('signature') };
  return verified(headers, Buffer.from(`${of('status')}.${of('merchant_order_no')}`));
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const number = `A-${Date.now()}-${randomBytes(3).toString('hex')}`; // your own number of the order
  const order = { order_type: 1, cny_amount: '100.00', paychannel_id: 2, paychannel_paymethod: 'wxpay' };
  const created = await call('createOrder', { ...order, merchant_order_no: number }, number);
  console.log(JSON.stringify(created));
  if (created.code === 1) {
    console.log(JSON.stringify(await call('orderQueryDetail', { order_no: created.data.order_no })));
  }
}
