import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { agentSpec } from '../../../helpers/sandbox/agent-spec.ts';
import { type DaemonProxy, startDaemonProxy } from '../../../helpers/sandbox/daemon-proxy.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const stack = `slow-${process.pid}`;
const name = `${stack}-sandbox`;
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
/** Two calls that start a command take longer together than the ten seconds after which a command counted as stuck. */
const slowMs = 6_000;

let directory: string;
let daemon: DaemonProxy;
let provider: SandboxProvider;
let slow = false;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'temper-slow-daemon-'));
  daemon = await startDaemonProxy(directory, async ({ path }) => {
    if (slow && /\/exec$|\/start$/.test(path)) await sleep(slowMs);
  });
  const docker = new Docker({ socketPath: daemon.address.replace('unix://', '') });
  provider = createDockerProvider({ stack, docker });
});
after(async () => {
  slow = false;
  await provider?.remove(name);
  await daemon?.close();
  await rm(directory, { recursive: true, force: true });
});

it('ends what an agent left behind, though the daemon is slow to start a command', async () => {
  const sandbox = await provider.ensure(agentSpec(stack, name), limit());
  const run = async (script: string) =>
    String((await sandbox.exec({ ...foreground, account: 'agent', argv: sh(script) }, limit())).stdout);
  await run('sleep 1000 >/dev/null 2>&1 & true');
  slow = true;
  await sandbox.killProcesses('agent');
  slow = false;
  // What was killed keeps its name until its parent has seen that.
  await until(async () => (await run('grep -l sleep /proc/[0-9]*/comm | grep -c . || true')).trim() === '1');
});
