import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import Docker from 'dockerode';
import { createFailingKinds } from '../../../activities/host/failing-kinds.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { watchProvider } from '../../../infra/sandbox/watch-provider.ts';
import { type DaemonFault, type DaemonProxy, startDaemonProxy } from '../../helpers/sandbox/daemon-proxy.ts';
import { until } from '../../helpers/until.ts';

const never = Promise.withResolvers<undefined>().promise;

describe('a host whose Docker daemon', () => {
  let directory: string;
  let daemon: DaemonProxy;
  let fault: () => DaemonFault | Promise<DaemonFault>;
  const opened: SandboxProvider[] = [];
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-watch-'));
    daemon = await startDaemonProxy(directory, () => fault());
  });
  after(async () => {
    for (const provider of opened) await provider.close();
    await daemon?.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Watches the daemon, which works. */
  function watch(everyMs: number) {
    fault = () => undefined;
    const failing = createFailingKinds();
    const docker = createDockerProvider({ stack: 'watched', docker: new Docker({ socketPath: daemon.path }) });
    const provider = watchProvider(docker, { onChange: failing.note, everyMs });
    opened.push(provider);
    return { failing, provider };
  }

  it('refuses what it is asked takes no new work after the third time, until it answers again', async () => {
    // No call takes as long as until the first look.
    const { failing, provider } = watch(2_000);
    const told: (string | null)[] = [];
    failing.onChange(() => told.push(failing.reason));
    assert.equal(await provider.attach('none'), undefined);
    fault = () => ({ status: 503 });
    for (const failures of [1, 2]) {
      await assert.rejects(provider.attach('none'), { type: 'SandboxUnavailable' });
      assert.equal(failing.reason, null, `${failures}`);
    }
    await assert.rejects(provider.attach('none'), { type: 'SandboxUnavailable' });
    assert.match(failing.reason ?? '', /^its docker sandboxes fail: expected the Docker daemon to answer/);
    fault = () => undefined;
    await until(() => failing.reason === null);
    assert.deepEqual(
      told.map((reason) => reason === null),
      [false, true],
    );
    // A sandbox that it gives meanwhile ends a row of failures.
    for (const status of [503, 503, null, 503, 503]) {
      fault = () => (status === null ? undefined : { status });
      await provider.attach('none').catch(() => undefined);
    }
    assert.equal(failing.reason, null);
  });

  it('hangs takes no new work, although no call has failed, and takes some once it answers', async () => {
    const { failing, provider } = watch(100);
    const goOn = Promise.withResolvers<undefined>();
    fault = () => goOn.promise;
    const waiting = provider.attach('none');
    await until(() => failing.reason !== null);
    assert.match(failing.reason ?? '', /^its docker sandboxes fail: it does not answer within 0\.1 s/);
    fault = () => undefined;
    goOn.resolve(undefined);
    assert.equal(await waiting, undefined);
    assert.equal(failing.reason, null);
  });

  it('never answers a question is asked again', async () => {
    const { failing, provider } = watch(100);
    fault = () => never;
    const lost = provider.attach('none');
    lost.catch(() => undefined);
    await until(() => failing.reason !== null);
    fault = () => undefined;
    await until(() => failing.reason === null);
  });
});
