import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { ageMs } from '../../../../infra/sandbox/local/processes.ts';

it('counts the age of a process by the boot clock, whatever the wall clock showed at its start', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'temper-age-'));
  t.after(() => rmSync(directory, { recursive: true }));
  assert.equal(ageMs(directory), 0);
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const tick = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  for (const [name, text] of Object.entries({ account: 'agent', pid: `${process.pid} ${tick}\n` })) {
    const file = join(directory, name);
    writeFileSync(file, text);
    // As if the clock had been set forward by an hour since.
    utimesSync(file, Date.now() / 1000 - 3_600, Date.now() / 1000 - 3_600);
  }
  const expectedMs = process.uptime() * 1000;
  const foundMs = ageMs(directory);
  // The kernel counts from the fork, Node from when it has begun to run.
  assert.ok(foundMs >= expectedMs - 100 && foundMs < expectedMs + 60_000, `${foundMs} ms, expected ${expectedMs} ms`);
});
