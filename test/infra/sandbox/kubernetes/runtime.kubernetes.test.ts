import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { cutRuntimeStreams, signalShimOf } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

const { signal } = new AbortController();
/** Whether a failure is the cluster's, after which a stage is repeated. */
const isRetried = (error: unknown): boolean =>
  error instanceof SandboxFailure && error.type === 'SandboxUnavailable' && error.loss === undefined;

describe('a kubernetes sandbox on a node whose runtime has no time or is restarted', async () => {
  const { namespace, open, specOf } = await openTestSandboxes('runtime');
  const { core } = openTestCluster();
  const provider = open();
  const use = async (sandbox: Sandbox, timeoutMs: number = foreground.timeoutMs): Promise<void> => {
    assert.equal((await sandbox.exec({ ...foreground, timeoutMs, argv: ['true'] }, signal)).exitCode, 0);
  };
  const untilUsed = (sandbox: Sandbox): Promise<boolean> =>
    until(() =>
      use(sandbox).then(
        () => true,
        (error: unknown) => {
          assert(isRetried(error), String(error));
          return false;
        },
      ),
    );

  it('does not count as out of memory while the runtime starts no command in time, and is used again later', async () => {
    const sandbox = await provider.ensure(specOf('busy'), signal);
    const { metadata } = await core.readNamespacedPod({ namespace, name: sandbox.name });
    const uid = metadata?.uid ?? assert.fail();
    await signalShimOf(uid, 'STOP');
    try {
      await assert.rejects(use(sandbox, 20_000), isRetried);
    } finally {
      await signalShimOf(uid, 'CONT');
    }
    await untilUsed(sandbox);
  });

  it('does not count as ended by its agent that is root once the runtime has cut its streams, and is used again', async () => {
    const sandbox = await provider.ensure(specOf('cut', { root: true }), signal);
    const waits = sh('touch /tmp/began; exec sleep 600');
    const cut = assert.rejects(sandbox.exec({ ...foreground, timeoutMs: 600_000, argv: waits }, signal), isRetried);
    const other = (await open().attach(sandbox.name)) ?? assert.fail();
    const looks = sh('[ -e /tmp/began ]');
    await until(async () => (await other.exec({ ...foreground, argv: looks }, signal)).exitCode === 0);
    await cutRuntimeStreams();
    await cut;
    await untilUsed(sandbox);
  });
});
