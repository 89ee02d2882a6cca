import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { Confinement } from '../../../../infra/sandbox/local/confinement.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { ExecResult } from '../../../../infra/sandbox/sandbox.ts';
import { repositoryRoot } from '../../../helpers/sources.ts';
import { foreground, sandboxContract, sh } from '../contract.ts';
import { localSubject } from './subject.ts';

const unprivilegedUid = 65_534;
const stack = 'noexec';
const labels = {
  stack,
  run: 'run',
  rollout: 'r',
  epoch: 1,
  purpose: 'agent',
  expiresAtMs: Date.now() + 600_000,
} as const;
const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
const spec = { name: 'b1', image: 'none', workdir: '/workspace', labels, ...limits };

/** Mounts checkout and Node where the other user can read them, since only root may read their own directories. */
const runUnprivileged = `
mount --bind "$1" "$3/checkout" && mount --bind "$2" "$3/node"
mount -t tmpfs -o noexec,nosuid,nodev,mode=1777 none "$3/noexec"
exec setpriv --reuid ${unprivilegedUid} --regid ${unprivilegedUid} --clear-groups \\
  env NOEXEC="$3/noexec" "$3/node" --test-reporter=spec "$3/checkout/$4"
`;

/**
 * Checks the contract of local sandboxes with this confinement for an unprivileged user. If run as root, starts `file` again as
 * such a user: the test file that calls this function, relative to the checkout.
 */
export function unprivilegedSuite(title: string, file: string, create: (root: string) => Confinement): void {
  if (process.getuid?.() === 0) {
    it(`local sandboxes of an unprivileged user keep the contract, with ${title}`, () => rerunUnprivileged(file));
    return;
  }
  sandboxContract(localSubject(`local sandboxes of an unprivileged user, with ${title}`, { confine: create }));

  describe(`local sandboxes of an unprivileged user, with ${title}, whose agent has closed its own files`, () => {
    it('refuse to write or read there, and can be removed', async () => {
      const root = mkdtempSync(join(tmpdir(), 'temper-closed-'));
      const provider = createLocalProvider({ root, stack, confinement: create(root) });
      const { signal } = new AbortController();
      const sandbox = await provider.ensure({ ...spec, mounts: [] }, signal);
      try {
        const close = sh(
          'mkdir -p open/closed && echo x >open/file && chmod 000 open/closed open/file && chmod 555 open',
        );
        assert.equal((await sandbox.exec({ ...foreground, argv: close }, signal)).exitCode, 0);
        const refused = { name: 'FileRefused', reason: 'outside' };
        const put = (path: string) => {
          const tree = new Map([[path, { mode: 0o644, bytes: Buffer.from('x') }]]);
          return sandbox.putFiles({ tree, at: '/workspace', owner: 'agent' }, signal);
        };
        for (const path of ['open/new', 'open/file', 'open/closed/new', 'open/new/below']) {
          await assert.rejects(put(path), refused, path);
        }
        await assert.rejects(sandbox.readFile('/workspace/open/file', 10, signal), refused);
        const all = sh('chmod 000 /workspace');
        assert.equal((await sandbox.exec({ ...foreground, argv: all }, signal)).exitCode, 0);
        await assert.rejects(put('setup.sh'), refused);
        const files = [{ tree: new Map(), at: '/workspace/made', owner: 'agent' }] as const;
        const start = { key: 'step-2', account: 'agent', argv: sh('true'), env: {}, cwd: '/', files } as const;
        await assert.rejects(sandbox.start(start, signal), refused);
      } finally {
        // A host that could not remove what its agents close would fill up.
        assert.equal(await provider.remove(spec.name), true);
        assert.deepEqual(readdirSync(join(root, stack)), []);
        rmSync(root, { recursive: true, force: true });
      }
    });
  });

  describe(`local sandboxes on a file system whose flags the user can't clear, with ${title}`, () => {
    it('run the programs of the host, but not their own', async () => {
      const ran = await runOn(create, 'echo "echo ran" >f && chmod +x f && sh f && ./f');
      assert.deepEqual([ran.exitCode, ran.stdout.toString()], [126, 'ran\n'], ran.stderr.toString());
    });

    it('show mounts below a read-only directory as read-only', async () => {
      const ran = await runOn(create, 'ls -d /runtime/noexec/* && : >/runtime/noexec/written');
      assert.notEqual(ran.exitCode, 0);
      assert.match(ran.stdout.toString(), /^\/runtime\/noexec\/root /);
      assert.match(ran.stderr.toString(), /Read-only file system/);
    });
  });
}

function rerunUnprivileged(file: string): void {
  const directory = mkdtempSync(join(tmpdir(), 'temper-unprivileged-'));
  try {
    chmodSync(directory, 0o755);
    for (const name of ['checkout', 'noexec']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'node'), '');
    const command = ['sh', '-c', runUnprivileged, 'sh', repositoryRoot, process.execPath, directory, file];
    const run = spawnSync('unshare', ['--mount', '--propagation', 'private', ...command], {
      cwd: '/',
      env: { PATH: `${process.env.PATH}`, HOME: '/tmp' },
      encoding: 'utf8',
      timeout: 900_000,
    });
    assert.equal(run.status, 0, run.stdout + run.stderr);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs a command in a sandbox whose path must be escaped in a table of mounts. */
async function runOn(create: (root: string) => Confinement, script: string): Promise<ExecResult> {
  const noexec = process.env.NOEXEC ?? '';
  const root = mkdtempSync(join(noexec, 'root with \\ and # '));
  const provider = createLocalProvider({ root, stack, confinement: create(root) });
  const { signal } = new AbortController();
  const mounts = [{ source: dirname(noexec), target: '/runtime', readOnly: true }] as const;
  const sandbox = await provider.ensure({ ...spec, mounts }, signal);
  try {
    return await sandbox.exec({ ...foreground, argv: sh(script) }, signal);
  } finally {
    await provider.remove(spec.name);
  }
}
