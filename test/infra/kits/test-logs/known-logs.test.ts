import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { logParsers } from '../../../../infra/kits/test-logs/index.ts';
import { knownLogs } from '../../../helpers/tasks/known-logs.ts';

const folder = join(import.meta.dirname, '../../../fixtures/logs/known');
const readLog = (name: string): string => readFileSync(join(folder, `${name}.log`), 'utf8');

describe('the log of a known set of tests', () => {
  for (const { logs, parser, tests, printed = [], crashed } of knownLogs) {
    for (const name of logs) {
      it(`${name} has the right status of each test`, () => {
        const parsed = logParsers[parser].parse(readLog(name));
        const found = [...parsed.tests].filter(([id]) => !printed.includes(id));
        assert.deepEqual(found.sort(), Object.entries(tests).sort());
        const wronged = [...parsed.failedElsewhere.keys()].filter((id) => Object.hasOwn(tests, id));
        assert.deepEqual(wronged, []);
        if (crashed) assert.ok(parsed.problems.some(({ kind }) => kind === 'crashed'));
      });
    }
  }

  it('is expected for each recorded file', () => {
    const recorded = readdirSync(folder).filter((file) => file.endsWith('.log'));
    const expected = knownLogs.flatMap(({ logs }) => logs.map((name) => `${name}.log`));
    assert.deepEqual(recorded.sort(), expected.sort());
  });
});
