import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { it } from 'node:test';
import type Docker from 'dockerode';
import { type ExecEnd, runExec } from '../../../../infra/sandbox/docker/exec.ts';

interface Look {
  readonly Running: boolean;
  readonly ExitCode: number | null;
  readonly Pid: number;
}

/** A container whose command ends its output at once, and is looked at with these results, of which the last one stays. */
function containerOf(looks: readonly [Look, ...Look[]]): Docker.Container {
  let index = 0;
  const exec = {
    start: async () => new PassThrough().end(),
    inspect: async () => looks[Math.min(index++, looks.length - 1)],
  };
  const modem = { demuxStream: (stream: PassThrough) => void stream.resume() };
  return { exec: async () => exec, modem } as unknown as Docker.Container;
}

const run = (container: Docker.Container): Promise<ExecEnd> =>
  runExec(
    container,
    { uid: 0, argv: ['true'], onStdout: () => undefined, onStderr: () => undefined },
    new AbortController().signal,
  );

const running = { Running: true, ExitCode: null, Pid: 12 };

it('a command that still runs when its output ends has lost its connection, and was not killed', async () => {
  await assert.rejects(run(containerOf([running])), { type: 'SandboxUnavailable', message: /was cut/ });
});

it('a command whose end the daemon notes after its output has its own exit code', async () => {
  const ended = { Running: false, ExitCode: 3, Pid: 12 };
  assert.deepEqual(await run(containerOf([running, ended])), { exitCode: 3, hasRun: true });
});

it('a command that ended without an exit code was killed', async () => {
  const killed = { Running: false, ExitCode: null, Pid: 12 };
  assert.deepEqual(await run(containerOf([killed])), { exitCode: 137, hasRun: true });
});
