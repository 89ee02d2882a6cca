import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { CollectedCommand, Spawner } from '../../../../infra/process/spawner/spawner.ts';
import { createHelperSpawner } from '../../../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { ProcessStatus, Sandbox, SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { until } from '../../../helpers/until.ts';

const stack = 'watched';
const sandboxCount = 8;
const limits = { cpus: 1, memoryMb: 256, diskMb: 8, pids: 64 };
const untilGo = 'while [ ! -e go ]; do sleep 0.02; done';

/** A spawner that records the commands that it starts. */
function recording(spawner: Spawner, commands: CollectedCommand[]): Spawner {
  const start: Spawner['start'] = (command) => {
    commands.push(command);
    return spawner.start(command);
  };
  return { ...spawner, start };
}

describe('the watcher of many local sandboxes', () => {
  const root = mkdtempSync(join(tmpdir(), 'temper-watcher-'));
  const commands: CollectedCommand[] = [];
  const stop = new AbortController();
  let provider: SandboxProvider;
  let sandboxes: readonly Sandbox[] = [];
  let waits: readonly Promise<ProcessStatus>[] = [];
  const measured = (): readonly (readonly string[])[] =>
    commands.map(({ argv }) => argv).filter(([program = '']) => program.endsWith('/du'));

  before(async () => {
    provider = createLocalProvider({ root, stack, spawner: recording(createHelperSpawner(), commands) });
    const labels = { stack, run: '', epoch: 1, purpose: 'agent' as const, expiresAtMs: Date.now() + 600_000 };
    const fixed = { image: 'none', workdir: '/workspace', mounts: [], ...limits };
    const make = async (index: number): Promise<Sandbox> => {
      const spec = { ...fixed, name: `watched-${index}`, labels: { ...labels, rollout: `${index}` } };
      const sandbox = await provider.ensure(spec, stop.signal);
      const argv = [
        'sh',
        '-c',
        `${untilGo}; for i in 1 2 3 4 5; do head -c 3000000 /dev/zero >f$i; done; ${untilGo.replace('go', 'end')}`,
      ] as const;
      await sandbox.start({ key: 'job', argv, env: {}, account: 'agent' }, stop.signal);
      return sandbox;
    };
    sandboxes = await Promise.all(Array.from({ length: sandboxCount }, (_, index) => make(index)));
    waits = sandboxes.map((sandbox) => sandbox.wait('job', { timeoutMs: 600_000 }, stop.signal));
    for (const wait of waits) wait.catch(() => undefined);
  });
  after(async () => {
    stop.abort();
    for (const { name } of sandboxes) await provider.remove(name);
    await provider.close();
    rmSync(root, { recursive: true, force: true });
  });

  const touch = async (sandbox: Sandbox | undefined, file: string): Promise<void> => {
    const command = { argv: ['touch', file] as const, env: {}, account: 'agent' as const };
    const touched = await sandbox?.exec({ ...command, timeoutMs: 120_000, maxOutputBytes: 1_000 }, stop.signal);
    assert.equal(touched?.exitCode, 0);
  };

  it('measures all of their disks by one command', async () => {
    await until(() => measured().some((argv) => argv.filter((path) => path.startsWith(root)).length === sandboxCount));
  });

  it('ends the one process that exceeds its disk limit', async () => {
    await touch(sandboxes[0], 'go');
    assert.deepEqual(await waits[0], { state: 'exited', exitCode: 137, signal: 'SIGKILL', limit: 'disk' });
    assert.deepEqual(await sandboxes[1]?.status('job'), { state: 'running' });
  });

  it('continues to wait and to measure when the helper that starts its commands is killed', async () => {
    const helper = Number(readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ')[0]);
    process.kill(helper, 'SIGKILL');
    const soFar = measured().length;
    await until(() => measured().length >= soFar + 2);
    await touch(sandboxes[1], 'go');
    const ended = await waits[1];
    assert.equal(ended?.state === 'exited' && ended.limit, 'disk');
    assert.deepEqual(await sandboxes[2]?.status('job'), { state: 'running' });
  });
});
