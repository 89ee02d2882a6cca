import assert from 'node:assert/strict';
import { it } from 'node:test';
import { freePort } from '../../../infra/temporal/ports.ts';

it('gives each port once, since the earlier ones may not be in use yet', async () => {
  const ports = await Promise.all(Array.from({ length: 1_000 }, () => freePort()));
  assert.equal(new Set(ports).size, ports.length);
});
