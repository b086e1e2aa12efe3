// Receive callbacks. Put merchant.mjs into the same folder: node receiver.mjs 9000
import { createServer } from 'node:http';
import { verified } from './merchant.mjs';

const seen = new Set(); // in your shop: a unique column

createServer(async (request, response) => {
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
