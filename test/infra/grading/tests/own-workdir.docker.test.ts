import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ownWorkdir, requireOwnWorkdir } from '../../../../infra/grading/tests/own-workdir.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const stack = `own-${process.pid}`;
const limits = { timeoutMs: 120_000, maxOutputBytes: 4096, env: {} } as const;

it('gives tests a workdir of their own with the modes of the agent, and does nothing the second time', async () => {
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  const sandbox = await maker.make();
  const task = { id: 'a', workdir: '/workspace' };
  await requireOwnWorkdir(sandbox, task, limit());
  const made = ['sh', '-c', 'mkdir in && echo 1 >in/a && chmod 775 in && chmod 744 in/a'] as const;
  await sandbox.exec({ ...limits, account: 'agent', argv: [...made] }, limit());
  for (const attempt of [1, 2]) assert.equal(await ownWorkdir(sandbox, { ...task, attempt }, limit()), null);
  const look = 'stat -c "%a %U" . in in/a; echo 2 >in/b && rm in/a && ls -A / | grep -c "^workspace"';
  const { stdout, stderr } = await sandbox.exec({ ...limits, account: 'grader', argv: ['sh', '-c', look] }, limit());
  assert.equal(stdout.toString(), '755 root\n775 root\n744 root\n2\n', stderr.toString());
});

it('copies files and directories that the agent has closed', async () => {
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  const sandbox = await maker.make();
  const close = `echo 1 >.env; mkdir -p .git in/shut; echo 2 >.git/note; echo 3 >in/shut/a; echo 4 >in/open
chmod 600 .env .git/note; chmod 640 in/open; chmod 000 in/shut/a in/shut`;
  await sandbox.exec({ ...limits, account: 'agent', argv: ['sh', '-c', close] }, limit());
  assert.equal(await ownWorkdir(sandbox, { workdir: '/workspace', attempt: 1 }, limit()), null);
  const look = 'cat .env .git/note in/shut/a in/open; ls -A / | grep -c "^workspace"';
  const { stdout, stderr } = await sandbox.exec({ ...limits, account: 'grader', argv: ['sh', '-c', look] }, limit());
  assert.equal(stdout.toString(), '1\n2\n3\n4\n2\n', stderr.toString());
});

it('refuses tests that write in a workdir which only the agent can replace', async () => {
  const workdir = '/home/agent/work';
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm', workdir);
  const refused = requireOwnWorkdir(await maker.make(), { id: 'a', workdir }, limit());
  await assert.rejects(refused, { type: 'UnsupportedTask', message: /make that directory root's/ });
});

/** A sandbox whose commands get less time. */
const hurried = (sandbox: Sandbox): Sandbox =>
  new Proxy(sandbox, {
    get: (target, name: keyof Sandbox) => {
      if (name !== 'exec') return Reflect.get(target, name, target);
      return (...[request, ending]: Parameters<Sandbox['exec']>) =>
        target.exec({ ...request, timeoutMs: 3_000 }, ending);
    },
  });

/** Stands for a `cp` that takes long. It copies a part. */
const slowCp = `#!/bin/sh
[ "$1" != --help ] || exec /bin/cp --help
for last; do :; done
mkdir -m 0 "$last/half"
exec sleep 60
`;

it('leaves no half-made copy, neither of a copy that took too long nor of an interrupted attempt', async () => {
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  const sandbox = await maker.make();
  const look = async () => {
    const argv = ['sh', '-c', 'ls -A / | grep ^workspace'] as const;
    const { stdout } = await sandbox.exec({ ...limits, account: 'grader', argv: [...argv], cwd: '/' }, limit());
    return stdout.toString().replace(/copy\.\w{6}/, 'copy.X');
  };
  const tree = new Map([['cp', { mode: 0o755, bytes: Buffer.from(slowCp) }]]);
  await sandbox.putFiles({ tree, at: '/usr/sbin', owner: 'grader' }, limit());
  const copied = ownWorkdir(hurried(sandbox), { workdir: '/workspace', attempt: 1 }, limit());
  await assert.rejects(copied, { type: 'EvaluationTimedOut' });
  assert.equal(await look(), 'workspace\n');
  const leave = 'rm /usr/sbin/cp; mkdir /workspace.temper-copy.abcdef && touch /workspace.temper-copy.abcdef/half';
  await sandbox.exec({ ...limits, account: 'grader', argv: ['sh', '-c', leave], cwd: '/' }, limit());
  assert.equal(await ownWorkdir(sandbox, { workdir: '/workspace', attempt: 2 }, limit()), null);
  assert.equal(await look(), 'workspace\nworkspace.temper-copy.X.agent\n');
});
