// Places a signed deposit with the types that openapi-typescript generated, and reads the responses through them.
import { randomBytes } from 'node:crypto';
import { sign } from './merchant.mjs';
import type { operations } from './api.js';

type Name = 'createOrder' | 'orderQueryDetail' | 'orderQueryList';
type Body<N extends Name> = operations[N]['requestBody']['content']['application/json'];
type Own<N extends Name> = Body<N> extends infer B ? (B extends Body<N> ? Omit<B, Signing> : never) : never;
type Signing = 'api_key' | 'timestamp' | 'nonce' | 'signature';
type Success<N extends Name> = operations[N]['responses'][200]['content']['application/json'];
type Invalid<N extends Name> = operations[N]['responses'][422]['content']['application/json'];

async function call<N extends Name>(name: N, own: Own<N>): Promise<Success<N> | Invalid<N>> {
  const timestamp = Math.floor(Date.now() / 1000);
  const body = { ...own, api_key: 'demo', timestamp, nonce: randomBytes(16).toString('hex') };
  const response = await fetch(`${process.env.MERCHANT_URL}/merchant/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, signature: sign(name, body) }),
  });
  return (await response.json()) as Success<N> | Invalid<N>;
}

function ok<T extends { code: number; msg: string }>(response: T): Extract<T, { code: 1 }> {
  if (response.code !== 1) throw new Error(`${response.code} ${response.msg}`);
  return response as Extract<T, { code: 1 }>;
}

const deposit = { order_type: 1, cny_amount: '12.50', paychannel_id: 2, paychannel_paymethod: 'wxpay' } as const;
const created = ok(await call('createOrder', deposit));
if (!('pay_url' in created.data)) throw new Error('a withdrawal was created');
const { order_no, pay_url, merchant_actual_amount } = created.data;
const found = ok(await call('orderQueryDetail', { order_no }));
const page = ok(await call('orderQueryList', { order_type: 1, limit: 1 }));
const refused = await call('createOrder', { ...deposit, cny_amount: '9000000000.00' });
if (refused.code === 1) throw new Error('an amount above the limit was accepted');
const created_at: string = created.time;
const first: string | undefined = page.data.list[0]?.order_no;

console.log(
  JSON.stringify({
    order_no, pay_url, merchant_actual_amount, created_at, status: found.data.status, first,
    refused: { code: refused.code, data: refused.data },
  }),
);
