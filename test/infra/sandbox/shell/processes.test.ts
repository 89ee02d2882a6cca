import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StoredSpec } from '../../../../infra/sandbox/labels.ts';
import { createProcesses } from '../../../../infra/sandbox/shell/processes.ts';
import { createReports } from '../../../../infra/sandbox/shell/reports.ts';
import * as scripts from '../../../../infra/sandbox/shell/scripts.ts';
import type { Shell } from '../../../../infra/sandbox/shell/shell.ts';

const signal = new AbortController().signal;
const request = { key: 'agent', account: 'agent', argv: ['true'], env: {} } as const;

/** The processes of a sandbox whose recorder's stream the test holds, and the scripts that were run there to their end. */
function createProcessesOfTest() {
  const run: string[] = [];
  const stream = Promise.withResolvers<number>();
  let isHeard = true;
  let say: (line: string) => void = () => undefined;
  const shell = {
    name: 'one',
    quietTasks: null,
    follow: (_script: unknown, onStdout: (chunk: Buffer) => void, ending: AbortSignal) => {
      ending.addEventListener('abort', () => {
        isHeard = false;
        stream.reject(ending.reason);
      });
      say = (line) => onStdout(Buffer.from(`${line}\n`));
      for (const line of ['claimed', 'live']) say(line);
      return stream.promise;
    },
    start: async () => ({ detached: Promise.resolve(undefined), release: () => undefined }),
    run: async ({ text }: { readonly text: string }) => {
      run.push(text);
      return { exitCode: 0, stdout: Buffer.from('running\n'), stderr: Buffer.alloc(0), truncated: false };
    },
  } as unknown as Shell;
  const spec = { pids: 10, diskMb: 10, workdir: '/work' } as StoredSpec;
  const processes = createProcesses(shell, spec, createReports().of('one'));
  const cut = (): void => stream.resolve(137);
  return { processes, run, say: (line: string) => say(line), cut, isHeard: () => isHeard };
}

describe('a detached process', () => {
  it('is waited for by its stream, without a command in its sandbox', async () => {
    const { processes, run, say } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    const ended = processes.watch(request.key, signal);
    say('exited 3 ');
    assert.deepEqual(await ended, { state: 'exited', exitCode: 3 });
    assert.deepEqual(run, []);
  });

  it('is looked at once if its stream says nothing for long', async () => {
    const { processes, run } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    assert.deepEqual(await processes.watch(request.key, signal, 10), { state: 'running' });
    assert.deepEqual(run, [scripts.status]);
  });

  it('is polled inside its sandbox once its stream is cut', async () => {
    const { processes, run, cut } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    const watched = processes.watch(request.key, signal);
    cut();
    assert.deepEqual(await watched, { state: 'running' });
    assert.deepEqual(run, [scripts.watchStatus]);
  });

  it('is polled inside its sandbox once its recorder writes a line that no recorder writes', async () => {
    const { processes, run, say, isHeard } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    const watched = processes.watch(request.key, signal);
    say('1'.repeat(2_000));
    assert.deepEqual(await watched, { state: 'running' });
    assert.deepEqual([run, isHeard()], [[scripts.watchStatus], false]);
  });

  it('reports the end, and reads the log from its file, if its recorder sends more than the log that it may', async () => {
    const { processes, run, say, isHeard } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    say('exited 3 ');
    say('quiet 20000');
    say('x'.repeat(20_000));
    assert.deepEqual(await processes.watch(request.key, signal), { state: 'exited', exitCode: 3 });
    await processes.readLog(request.key, { fromByte: 0, maxBytes: 100 }, signal);
    assert.deepEqual([run, isHeard()], [[scripts.readLog], false]);
  });

  it('counts as killed if its exit code is no number', async () => {
    const { processes, say } = createProcessesOfTest();
    await processes.start(request, async () => undefined, signal);
    say('exited 0x3 ');
    assert.deepEqual(await processes.watch(request.key, signal), { state: 'exited', exitCode: 137, signal: 'SIGKILL' });
  });
});
