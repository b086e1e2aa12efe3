import { readFileSync } from 'node:fs';
import { sign, stringToSign } from './merchant.mjs';

for (const [endpoint, fields] of JSON.parse(readFileSync(0, 'utf8'))) {
  process.stdout.write(`${stringToSign(endpoint, fields)}\0${sign(endpoint, fields)}\0`);
}
