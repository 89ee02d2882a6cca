import type { Sandbox } from '../sandbox/sandbox.ts';

const timeoutMs = 120_000;
const outputBytes = 64 * 1024;

const applyScript = `
cd "$1" && git apply --binary --whitespace=nowarn /tmp/temper.patch
`;

/** Applies a diff to a fresh workspace at its base commit. Null when it applied, else what git said. */
export async function applyPatch(
  sandbox: Sandbox,
  workdir: string,
  patch: Uint8Array,
  signal: AbortSignal,
): Promise<string | null> {
  if (patch.byteLength === 0) return null;
  const tree = new Map([['temper.patch', { mode: 0o644, bytes: patch }]]);
  await sandbox.putFiles({ tree, at: '/tmp', owner: 'agent' }, signal);
  const result = await sandbox.exec(
    {
      account: 'agent',
      cwd: workdir,
      argv: ['sh', '-c', applyScript, 'sh', workdir],
      env: { GIT_CONFIG_NOSYSTEM: '1' },
      timeoutMs,
      maxOutputBytes: outputBytes,
    },
    signal,
  );
  if (result.exitCode === 0) return null;
  return result.stderr.toString('utf8').trim().slice(-2000) || `git apply ended with exit code ${result.exitCode}`;
}
