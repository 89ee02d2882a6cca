import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import type { SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import { agentSpec } from '../../../helpers/sandbox/agent-spec.ts';
import { type DaemonProxy, startDaemonProxy } from '../../../helpers/sandbox/daemon-proxy.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const stack = `cancelled-${process.pid}`;
const limit = (): AbortSignal => AbortSignal.timeout(300_000);

describe('a call to a slow Docker daemon that is cancelled', () => {
  let directory: string;
  let daemon: DaemonProxy;
  let provider: SandboxProvider;
  /** The calls that are held back, and what ends that. */
  let held: { readonly path: RegExp; readonly arrived: () => void; readonly until: Promise<void> } | null = null;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-cancelled-'));
    daemon = await startDaemonProxy(directory, async ({ path }) => {
      if (held === null || !held.path.test(path)) return;
      held.arrived();
      await held.until;
    });
    provider = createDockerProvider({ stack, docker: new Docker({ socketPath: daemon.path }) });
  });
  after(async () => {
    held = null;
    for (const { name } of (await provider?.list(stack)) ?? []) await provider.remove(name);
    await daemon?.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Holds back calls with such a path. Returns what says that one has arrived, and what releases them. */
  function hold(path: RegExp) {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    held = { path, arrived: arrive, until: released };
    return {
      arrived,
      release(): void {
        held = null;
        release();
      },
    };
  }

  for (const [what, path] of [
    ['create', /^\/containers\/create$/],
    ['start', /^\/containers\/[^/]+\/start$/],
  ] as const) {
    it(`leaves no container behind after its sandbox is removed: ${what}`, async () => {
      const name = `${stack}-${what}`;
      const { arrived, release } = hold(path);
      const cancel = new AbortController();
      const ensured = provider.ensure(agentSpec(stack, name), cancel.signal).catch(() => null);
      await arrived;
      cancel.abort();
      release();
      await ensured;
      await provider.remove(name);
      assert.deepEqual(await provider.list(stack), []);
      await assert.rejects(new Docker({ socketPath: daemon.path }).getContainer(name).inspect(), { statusCode: 404 });
    });
  }

  it('leaves no process behind that writes after the agent has ended: exec', async () => {
    const sandbox = await provider.ensure(agentSpec(stack, `${stack}-exec`), limit());
    const run = async (script: string) =>
      String((await sandbox.exec({ ...foreground, account: 'agent', argv: sh(script) }, limit())).stdout);
    const cancel = new AbortController();
    const loop = 'echo begun >/workspace/begun; while :; do date >>/workspace/late; sleep 0.1; done';
    const running = sandbox.exec({ ...foreground, account: 'agent', argv: sh(loop) }, cancel.signal);
    const ended = assert.rejects(running);
    await until(async () => (await run('cat /workspace/begun 2>/dev/null || true')) === 'begun\n');
    cancel.abort();
    await ended;
    await sandbox.killProcesses('agent');
    const left = await run("grep -ls 'workspace/lat[e]' /proc/[0-9]*/cmdline | wc -l");
    assert.equal(left.trim(), '0');
  });
});
