import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type TimedAgent, waitInTime } from '../../activities/host/agent-time.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';

const never = new AbortController().signal;

interface Course {
  readonly timeoutMs: number;
  readonly waitingMs: number;
  /** The spells in which the agent waits for an engine: the time before each, and its length. */
  readonly waits: readonly (readonly [beforeMs: number, forMs: number])[];
  readonly endsAtMs: number;
}

/** Runs an agent's course by a clock that each wait moves. Returns the time of its end, and what was found. */
async function follow({ timeoutMs, waitingMs, waits, endsAtMs }: Course) {
  let nowMs = 0;
  let questions = 0;
  const waitedBy = (atMs: number): number => {
    let beganMs = 0;
    let sum = 0;
    for (const [beforeMs, forMs] of waits) {
      beganMs += beforeMs;
      sum += Math.min(forMs, Math.max(0, atMs - beganMs));
      beganMs += forMs;
    }
    return sum;
  };
  const sandbox = {
    wait: async (_key: string, options: { readonly timeoutMs: number }): Promise<ProcessStatus> => {
      nowMs = Math.min(nowMs + options.timeoutMs, Math.max(nowMs, endsAtMs));
      return nowMs >= endsAtMs ? { state: 'exited', exitCode: 0 } : { state: 'running' };
    },
  } satisfies Partial<Sandbox> as unknown as Sandbox;
  const agent: TimedAgent = {
    sandbox,
    key: 'agent',
    diskBeforeMb: 0,
    timeoutMs,
    waitingMs,
    elapsedMs: () => nowMs,
    waitedMs: async () => {
      questions += 1;
      return waitedBy(nowMs);
    },
  };
  const { status, waitedMs } = await waitInTime(agent, never);
  return { state: status.state, atMs: nowMs, waitedMs, usedMs: nowMs - waitedBy(nowMs), questions };
}

const forever = Number.POSITIVE_INFINITY;
const limits = { timeoutMs: 10_000, waitingMs: 60_000 } as const;

describe('the time of an agent', () => {
  it('is its limit, if it waits for no engine', async () => {
    const found = await follow({ ...limits, waits: [], endsAtMs: forever });
    assert.deepEqual([found.state, found.atMs, found.waitedMs], ['running', 10_000, 0]);
  });

  it('does not pass while it waits, and costs no question if it ends in time', async () => {
    const course = { ...limits, waits: [[9_900, 30_000]] } as const;
    const ended = await follow({ ...course, endsAtMs: 39_950 });
    assert.deepEqual([ended.state, ended.atMs], ['exited', 39_950]);
    const cut = await follow({ ...course, endsAtMs: forever });
    assert.ok(cut.usedMs >= 10_000 && cut.usedMs <= 11_000, JSON.stringify(cut));
    assert.equal((await follow({ ...course, endsAtMs: 9_000 })).questions, 0);
  });

  it('ends when it has waited longer than its clock stands still', async () => {
    const { state, atMs, waitedMs } = await follow({ ...limits, waits: [[0, forever]], endsAtMs: forever });
    assert.deepEqual([state, atMs, (waitedMs ?? 0) > limits.waitingMs], ['running', 70_000, true]);
  });

  it('is neither shorter than its limit beside its waits, nor longer by more than a second a wait', async () => {
    const course = fc.record({
      timeoutMs: fc.integer({ min: 1, max: 50_000 }),
      waitingMs: fc.integer({ min: 0, max: 50_000 }),
      waits: fc.array(fc.tuple(fc.nat(20_000), fc.nat(20_000)), { maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(course, async (one) => {
        const { atMs, usedMs, waitedMs } = await follow({ ...one, endsAtMs: forever });
        if ((waitedMs ?? 0) <= one.waitingMs) assert.ok(usedMs >= one.timeoutMs);
        else assert.ok(atMs >= one.timeoutMs + one.waitingMs);
        assert.ok(atMs <= one.timeoutMs + one.waitingMs + 1_000);
        assert.ok(usedMs <= one.timeoutMs + Math.max(1_000, (waitedMs ?? 0) - one.waitingMs));
      }),
    );
  });
});
