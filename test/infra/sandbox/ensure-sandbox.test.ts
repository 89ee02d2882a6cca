import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ensureSandbox } from '../../../infra/sandbox/ensure-sandbox.ts';
import { SandboxFailure } from '../../../infra/sandbox/failure.ts';
import type { Sandbox, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import { ThrottledFailure } from '../../../workflows/contracts/throttled-failure.ts';

const labels = { stack: 's', run: 'r', rollout: 'r', epoch: 1, purpose: 'agent' as const, expiresAtMs: 1_000 };
const limits = { cpus: 1, memoryMb: 1, diskMb: 1, pids: 1 };
const spec: SandboxSpec = { name: 'box', image: 'image', labels, ...limits, workdir: '/workspace', mounts: [] };
const never = new AbortController().signal;

/** Ensures a sandbox of a provider that fails with these errors first, and returns the pauses and the last spec asked for. */
async function ensure(errors: readonly Error[]) {
  const left = [...errors];
  const pauses: number[] = [];
  let expiresAtMs = 0;
  const provider = {
    ensure: async ({ labels: asked }: SandboxSpec) => {
      expiresAtMs = asked.expiresAtMs;
      const error = left.shift();
      if (error) throw error;
      return {} as Sandbox;
    },
  };
  const ending = await ensureSandbox(provider, spec, never, async (ms) => void pauses.push(ms)).then(
    () => null,
    (error: unknown) => error,
  );
  return { ending, pauses, waitedMs: pauses.reduce((sum, ms) => sum + ms, 0), expiresAtMs };
}

const throttled = (retryAfterMs: number | null) => new ThrottledFailure('busy', retryAfterMs);

it('waits as long as a throttling provider asks, and adds the wait to the lifetime', async () => {
  const { ending, pauses, waitedMs, expiresAtMs } = await ensure([throttled(20_000), throttled(7_000)]);
  assert.equal(ending, null);
  assert.ok((pauses[0] ?? 0) >= 20_000 && (pauses[0] ?? 0) <= 25_000, String(pauses));
  assert.ok((pauses[1] ?? 0) >= 7_000 && (pauses[1] ?? 0) <= 8_750, String(pauses));
  assert.equal(expiresAtMs, 1_000 + waitedMs);
});

it('waits longer each time if the provider asks for no pause, and gives up after five minutes', async () => {
  const { ending, pauses, waitedMs } = await ensure(Array.from({ length: 100 }, () => throttled(null)));
  assert.ok(ending instanceof ThrottledFailure);
  assert.ok(waitedMs > 200_000 && waitedMs <= 300_000, String(waitedMs));
  assert.ok(
    pauses.every((ms, index) => ms >= Math.min(30_000, 1_000 * 2 ** index) / 2),
    String(pauses),
  );
});

it('does not wait for a pause beyond its time limit, nor after another failure', async () => {
  const long = throttled(3_600_000);
  assert.deepEqual(await ensure([long]).then(({ ending, pauses }) => [ending, pauses]), [long, []]);
  const away = new SandboxFailure('SandboxUnavailable', 'away');
  assert.deepEqual(await ensure([away]).then(({ ending, pauses }) => [ending, pauses]), [away, []]);
});
