import assert from 'node:assert/strict';
import { it } from 'node:test';
import { attachAgentSandbox } from '../../activities/host/host.ts';
import { createSlots } from '../../activities/host/slots.ts';
import type { Sandbox, SandboxKind, SandboxProvider } from '../../infra/sandbox/sandbox.ts';

it('a host worker that was started again counts a sandbox that it had adopted, once a stage works in it', async () => {
  const epoch = { rollout: 'adopted', epoch: 1 };
  const labels = { stack: 's', run: 'r', ...epoch, purpose: 'agent', expiresAtMs: 1, fence: 'lost/1' } as const;
  const provider: Pick<SandboxProvider, 'attach'> = { attach: async () => ({ labels }) as Sandbox };
  const all = new Map([['kubernetes', provider]]) as unknown as ReadonlyMap<SandboxKind, SandboxProvider>;
  const slots = createSlots(1);
  const host = { name: 'box', fence: () => 'box/1', providers: { all, seen: async () => all }, slots };
  await attachAgentSandbox(host, { epoch, kind: 'kubernetes' });
  assert.equal(slots.taken, 0);
  await attachAgentSandbox(host, { epoch, kind: 'kubernetes', adoptedAs: 'box/1' });
  await attachAgentSandbox(host, { epoch, kind: 'kubernetes', adoptedAs: 'box/1' });
  assert.deepEqual([slots.taken, slots.isTakenBy(epoch)], [1, true]);
  const voidHere = attachAgentSandbox(host, { epoch, kind: 'kubernetes', adoptedAs: 'box/0' });
  await assert.rejects(voidHere, { type: 'HostLost' });
});
