import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import Docker from 'dockerode';
import { endAllOf, endAllOfRoot } from '../../../../infra/sandbox/docker/end-processes.ts';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { Sandbox, SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { uidOf } from '../../../../infra/sandbox/shell/accounts.ts';
import { agentSpec } from '../../../helpers/sandbox/agent-spec.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const stack = `frozen-${process.pid}`;
const docker = new Docker();
/** Leaves three processes, each in a session of its own. */
const left = 'for n in 1 2 3; do (setsid sleep 1000 >/dev/null 2>&1 &) ; done';
/** A command inside that runs out of time. */
const late = async (): Promise<boolean> => false;

let provider: SandboxProvider;
before(() => {
  provider = createDockerProvider({ stack, docker });
});

for (const root of [false, true]) {
  const name = `${stack}-${root ? 'root' : 'agent'}`;
  after(() => provider.remove(name));

  it(`ends the processes of ${root ? 'root' : 'an agent'} from the host, though the daemon is starting commands in the container`, async () => {
    const signal = AbortSignal.timeout(300_000);
    const spec = agentSpec(stack, name, { pids: 128, ...(root && { root }) });
    const sandbox = await provider.ensure(spec, signal);
    const container = docker.getContainer(name);
    let isOver = false;
    const starting = Array.from({ length: 4 }, async () => {
      while (!isOver) await startCommand(container);
    });
    for (let round = 0; round < 3; round++) {
      await runAs(sandbox, left, signal);
      // They may not be programs of that name yet; one that was killed keeps it until its parent has seen that.
      await until(async () => (await count(sandbox, signal)) === '4');
      await (root ? endAllOfRoot(container, late) : endAllOf(container, uidOf(name, 'agent'), late));
      await until(async () => (await count(sandbox, signal)) === '1');
    }
    isOver = true;
    await Promise.all(starting);
    const { State } = await container.inspect();
    assert.deepEqual([State.Running, State.Paused], [true, false]);
  });
}

/** Starts a command and waits for its end, also if the container, frozen at that moment, refuses it. */
async function startCommand(container: Docker.Container): Promise<void> {
  const exec = await container.exec({ Cmd: ['true'], AttachStdout: true });
  const stream = await exec.start({});
  await new Promise((resolve) => stream.on('close', resolve).resume());
}

async function runAs(sandbox: Sandbox, script: string, signal: AbortSignal): Promise<string> {
  const { stdout } = await sandbox.exec({ ...foreground, account: 'agent', argv: sh(script) }, signal);
  return String(stdout).trim();
}

/** Counts the processes named sleep, of which one keeps the container alive. */
const count = (sandbox: Sandbox, signal: AbortSignal): Promise<string> =>
  runAs(sandbox, 'grep -l sleep /proc/[0-9]*/comm | grep -c . || true', signal);
