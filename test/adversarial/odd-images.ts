import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { byImage } from '../../infra/sandbox/image-environment.ts';
import type { Sandbox, SandboxSpec } from '../../infra/sandbox/sandbox.ts';

const run = promisify(execFile);

/** Builds an image from the text of a Dockerfile, and returns its name. */
export async function buildImage(name: string, dockerfile: string): Promise<string> {
  const image = `temper-planted-${name}:${process.pid}`;
  const built = run('docker', ['build', '--quiet', '--tag', image, '-']);
  built.child.stdin?.end(dockerfile);
  await built;
  return image;
}

export const removeImage = async (image: string): Promise<void> =>
  void (await run('docker', ['image', 'rm', '--force', image]));

/** An image as of Nix, Conda or BusyBox: its shell and git are in directories that only its PATH names. */
export const elsewhere = `FROM temper-tasks:bookworm
RUN mkdir -p /opt/store/tools /opt/conda/bin && ln -s /opt/store/tools /opt/tools && cp /bin/dash /opt/store/tools/sh && \\
  mv /usr/bin/git /opt/conda/bin/git && rm /bin/sh
ENV PATH=/opt/tools:/opt/conda/bin:$PATH
`;

/** An image whose variables have every program load a file of the agent. */
export const preloading = `FROM temper-tasks:bookworm
ENV LD_PRELOAD=/workspace/hook.so BASH_ENV=/workspace/hook.sh NODE_OPTIONS=--no-warnings PERL5OPT=-w odd.name=kept
`;

/** Returns the fixed part of a sandbox's spec. */
export function specOf(image: string, stack: string, name: string): SandboxSpec {
  const expiresAtMs = Date.now() + 600_000;
  const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
  const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
  return { name, image, labels, ...limits, workdir: '/workspace', mounts: [] };
}

const limits = { cwd: '/', env: {}, timeoutMs: 60_000, maxOutputBytes: 2 ** 16 } as const;
const never = new AbortController().signal;

/** Checks that temper's own programs run in an image that has them elsewhere. */
export async function checkElsewhere(sandbox: Sandbox): Promise<void> {
  for (const account of ['agent', 'grader'] as const) {
    const argv = ['sh', '-c', 'command -v git && git --version && tar --version >/dev/null && echo "$PATH"'] as const;
    const { stdout, stderr, exitCode } = await sandbox.exec({ ...limits, account, argv: [...argv] }, never);
    assert.equal(exitCode, 0, String(stderr));
    const [git, , path] = String(stdout).split('\n');
    assert.equal(git, '/opt/conda/bin/git');
    assert.match(`${path}:`, /^\/usr\/sbin:\/usr\/bin:\/sbin:\/bin:\/opt\/store\/tools:\/opt\/conda\/bin:/);
  }
  const { stdout } = await sandbox.exec(
    { ...limits, account: 'agent', ...byImage(['sh', '-c', 'echo "$PATH"']) },
    never,
  );
  assert.match(String(stdout), /^\/opt\/tools:\/opt\/conda\/bin:/);
}

/** Checks that temper's own programs have no variable of their image, and those that are started for others all of them. */
export async function checkPreloading(sandbox: Sandbox): Promise<void> {
  for (const account of ['agent', 'grader'] as const) {
    const own = await sandbox.exec(
      { ...limits, account, argv: ['bash', '-c', 'env; cat /proc/$$/environ | tr "\\0" "\\n"'] },
      never,
    );
    assert.equal(String(own.stderr), '');
    assert.doesNotMatch(String(own.stdout), /^(LD_PRELOAD|BASH_ENV|NODE_OPTIONS|PERL5OPT)=/m);
  }
  const { stdout, stderr } = await sandbox.exec({ ...limits, account: 'agent', ...byImage(['/usr/bin/env']) }, never);
  for (const line of preloading
    .split('ENV ')[1]
    ?.trim()
    .split(' ')
    .filter((one) => !one.includes('.')) ?? []) {
    assert.ok(String(stdout).split('\n').includes(line), `${line}\n${stdout}`);
  }
  assert.match(String(stderr), /hook\.so/);
}
