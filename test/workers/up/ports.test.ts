import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readConfig } from '../../../infra/settings/config.ts';
import type { PartName } from '../../../workers/up/part.ts';
import { portsOf } from '../../../workers/up/ports.ts';

it('a machine needs the metrics ports of its own workers, and not those of workers elsewhere', () => {
  const config = readConfig({ TEMPER_HOME: '/tmp/temper-ports', TEMPER_METRICS_PORT: '9464' });
  const portsFor = (...parts: PartName[]) => portsOf(config, parts).map(({ port }) => port);
  assert.deepEqual(portsFor('control', 'trainer'), [9464, 9466]);
  assert.deepEqual(portsFor('gateway', 'host'), [9465]);
});
