// Receive callbacks and returning payers. Put merchant.mjs into the same folder: node receiver.mjs 9000
import { createServer } from 'node:http';
import { verified, verifiedReturn } from './merchant.mjs';

const seen = new Set(); // in your shop: a unique column

createServer(async (request, response) => {
  if (request.method === 'GET') { // a payer returns: show the order, and credit it on the callback
    const fields = new URL(request.url, 'http://localhost').searchParams;
    const returned = verifiedReturn(fields);
    if (returned) console.log('return', fields.get('order_no'), fields.get('status'));
    response.writeHead(returned ? 200 : 401).end();
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const good = verified(request.headers, body);
  const id = request.headers['webhook-id'];
  if (good && !seen.has(id)) {
    seen.add(id);
    const event = JSON.parse(body);
    console.log(event.type, event.data.order_no);
  }
  response.writeHead(good ? 204 : 401).end();
}).listen(Number(process.argv[2]), '127.0.0.1');
