import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ROOT } from '../../helpers/sources.ts';
import { sandboxContract } from './contract.ts';
import { localSubject } from './local-subject.ts';

const nobody = 65_534;

/** Checkout and Node may lie where only root may look: shown to the other user under names of their own, for this one process. */
const asNobody = `
mount --bind "$1" "$3/checkout" && mount --bind "$2" "$3/node"
exec setpriv --reuid ${nobody} --regid ${nobody} --clear-groups \\
  "$3/node" --test-reporter=spec "$3/checkout/test/infra/sandbox/local-unprivileged.test.ts"
`;

if (process.getuid?.() === 0) {
  describe('local sandboxes of a user without rights', () => {
    it('keep the contract', () => {
      const directory = mkdtempSync(join(tmpdir(), 'temper-nobody-'));
      try {
        chmodSync(directory, 0o755);
        mkdirSync(join(directory, 'checkout'));
        writeFileSync(join(directory, 'node'), '');
        const command = ['sh', '-c', asNobody, 'sh', ROOT, process.execPath, directory];
        const run = spawnSync('unshare', ['--mount', '--propagation', 'private', ...command], {
          cwd: '/',
          env: { PATH: `${process.env.PATH}`, HOME: '/tmp' },
          encoding: 'utf8',
          timeout: 300_000,
        });
        assert.equal(run.status, 0, run.stdout + run.stderr);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
  });
} else {
  sandboxContract(localSubject('local sandboxes of a user without rights'));
}
