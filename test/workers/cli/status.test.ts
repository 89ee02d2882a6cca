import assert from 'node:assert/strict';
import { it } from 'node:test';
import { shortExit } from '../../../workers/cli/commands/status.ts';

it('temper status prints the reason for an exit on one line, without the whole log that it quotes', () => {
  assert.equal(shortExit('exit code 1'), 'exit code 1');
  const quoted = `gateway ended during its start (exit code 1); its log:\n${'temper: cannot write\n'.repeat(50)}`;
  const shown = shortExit(quoted);
  assert.match(shown, /^gateway ended during its start \(exit code 1\); its log: temper: cannot write .*…$/);
  assert.equal(shown.length, 100);
});
