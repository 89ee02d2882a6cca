import assert from 'node:assert/strict';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { after, describe, it } from 'node:test';
import { ensureSandbox } from '../../../infra/sandbox/ensure-sandbox.ts';
import { SandboxFailure, wasEndedInside } from '../../../infra/sandbox/failure.ts';
import { createSightings, decideReaping, reap } from '../../../infra/sandbox/reap.ts';
import type { Sandbox, SandboxInfo, SandboxProvider, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import { ThrottledFailure } from '../../../workflows/contracts/failures.ts';
import { foreground, sh } from './contract.ts';

/** The pause that a provider asks for in seconds; null for none. */
export type RetryAfter = number | null;

/** The means to cause each fault of a provider; a sentence says why the fault cannot happen to this kind. */
export interface Faults {
  /** Makes the next creation succeed at the provider, while its answer is lost. */
  readonly loseCreation: (() => void) | string;
  /** Makes the provider refuse that many creations for now. */
  readonly throttle: ((times: number, retryAfterSec: RetryAfter) => void) | string;
  /** True if the kind learns the pause that its provider asks for; otherwise the reason why it does not. */
  readonly retryAfter: true | string;
  /** Makes lists show what they show now, until the returned function is called. */
  readonly lagLists: (() => Promise<() => void>) | string;
  /** Ends a sandbox from outside of temper, as its provider might. */
  readonly vanish: (name: string) => Promise<unknown>;
  /** Breaks the connections of all streams. */
  readonly cutStreams: (() => void) | string;
  /** Returns the time at which the provider itself ends a sandbox. */
  readonly endOf: ((name: string) => Promise<number>) | string;
  /** Moves the provider's clock ahead of this host's, until the returned function is called. */
  readonly skewClock: ((ms: number) => () => void) | string;
}

/** A kind of sandbox to which the faults happen. */
export interface FaultSubject {
  readonly title: string;
  readonly image: string;
  /** Opens a provider of this stack, as another worker process would. */
  open(stack: string): SandboxProvider;
  readonly faults: Faults;
}

const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
const minuteMs = 60_000;

/** Runs a test if the kind has the means; otherwise its title says why the fault cannot happen. */
function whereItHappens<Means>(title: string, means: Means | string, test: (means: Means) => Promise<void>): void {
  if (typeof means === 'string') it(`needs no answer to this: ${title} (${means})`, () => undefined);
  else it(title, () => test(means));
}

/** Checks on real sandboxes that the faults of a provider cost nothing but time. */
export function faultContract({ title, image, open, faults }: FaultSubject): void {
  describe(`${title} whose provider fails`, () => {
    const stack = `faults-${process.pid}-${Date.now().toString(36)}`;
    const provider = open(stack);
    const { signal } = new AbortController();
    const made = new Set<string>();
    const spec = (name: string): SandboxSpec => {
      const fullName = `${stack}-${name}`;
      made.add(fullName);
      const expiresAtMs = Date.now() + 10 * minuteMs;
      const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent' as const, expiresAtMs };
      return { name: fullName, image, labels, ...limits, workdir: '/workspace', mounts: [] };
    };
    const named = async (name: string) => (await provider.list(stack)).filter((found) => found.name === name);
    const say = async (sandbox: Sandbox, script: string) =>
      String((await sandbox.exec({ ...foreground, argv: sh(script) }, signal)).stdout);
    after(async () => {
      await Promise.all([...made].map((name) => provider.remove(name)));
      await provider.close();
    });

    whereItHappens('adopts the sandbox of a creation whose answer was lost', faults.loseCreation, async (lose) => {
      const asked = spec('answer-lost');
      lose();
      await provider.ensure(asked, signal).catch((error: unknown) => {
        assert.ok(error instanceof SandboxFailure && error.type === 'SandboxUnavailable', String(error));
      });
      const adopted = await provider.ensure(asked, signal);
      assert.equal(await say(adopted, 'echo here'), 'here\n');
      assert.equal((await named(asked.name)).length, 1);
    });

    const lost = faults.loseCreation;
    const bothHappen = typeof lost === 'string' ? lost : faults.lagLists;
    whereItHappens('adopts it also if no list shows it for ten seconds', bothHappen, async (lag) => {
      const asked = spec('answer-lost-unlisted');
      const catchUp = await lag();
      if (typeof lost === 'function') lost();
      const ensure = () => provider.ensure(asked, signal);
      const timer = setTimeout(catchUp, 10_000);
      const adopted = await ensure().catch((error: unknown) => {
        assert.ok(error instanceof SandboxFailure && error.type === 'SandboxUnavailable', String(error));
        return ensure();
      });
      clearTimeout(timer);
      catchUp();
      assert.equal(await say(adopted, 'echo here'), 'here\n');
      assert.equal((await named(asked.name)).length, 1);
      const other = open(stack);
      const attached = (await other.attach(asked.name)) ?? assert.fail('expected the sandbox');
      assert.equal(await say(attached, 'echo here'), 'here\n');
      await other.close();
    });

    whereItHappens(
      'waits while creations are throttled, and creates one sandbox',
      faults.throttle,
      async (throttle) => {
        const asked = spec('throttled');
        const pauses: number[] = [];
        const pause = async (ms: number) => void pauses.push(ms);
        throttle(1, null);
        const refused = await provider.ensure(asked, signal).catch((error: unknown) => error);
        assert.ok(refused instanceof ThrottledFailure && refused.retryAfterMs === null, String(refused));
        throttle(2, 17);
        assert.equal(await say(await ensureSandbox(provider, asked, signal, pause), 'echo here'), 'here\n');
        assert.equal(pauses.length, 2);
        if (faults.retryAfter === true)
          assert.ok(
            pauses.every((ms) => ms >= 17_000),
            String(pauses),
          );
        assert.equal((await named(asked.name)).length, 1);
      },
    );
    if (faults.retryAfter !== true)
      it(`does not learn the pause that is asked for (${faults.retryAfter})`, () => undefined);

    whereItHappens('removes nothing in use because of a list that lags', faults.lagLists, async (lag) => {
      const [old, young] = [spec('lag-old'), spec('lag-young')];
      await provider.ensure(old, signal);
      const catchUp = await lag();
      await provider.remove(old.name);
      const sandbox = await provider.ensure(young, signal);
      let nowMs = 0;
      const sightings = createSightings(() => nowMs);
      const removed: string[] = [];
      /** Looks as the reaper does, half a minute after the last look. */
      const look = async (liveness: 'over' | 'live') => {
        nowMs += minuteMs / 2;
        const sandboxes = (await provider.list(stack)).filter(({ name }) => name === old.name || name === young.name);
        const livenessOf = async (rollouts: readonly string[]) => new Map(rollouts.map((name) => [name, liveness]));
        const remove = async ({ name }: { readonly name: string }) => {
          await provider.remove(name);
          removed.push(name);
        };
        await reap({ stack, sandboxes, livenessOf, minAgeMs: 0, sightings, remove });
        return sandboxes.map(({ name }) => name);
      };
      assert.deepEqual(await look('over'), [old.name]);
      // Another creation by that name finds the sandbox, although no list shows it.
      await provider.ensure(young, signal);
      catchUp();
      // The second look is the first one with the new sandbox, whose rollout might not be listed as running yet.
      assert.deepEqual(await look('over'), [young.name]);
      await look('live');
      await look('over');
      assert.deepEqual(removed, []);
      assert.equal(await say(sandbox, 'echo here'), 'here\n');
      await look('over');
      assert.deepEqual(removed, [young.name]);
    });

    it('says that a sandbox vanished, with evidence from outside, early in its life, amid it and at its end', async () => {
      const job = { key: 'job', account: 'agent', env: {}, argv: sh('echo said; sleep 0.1') } as const;
      const isLoss = (error: unknown): boolean =>
        error instanceof SandboxFailure && error.type === 'SandboxLost' && !wasEndedInside(error);
      const vanished = async (name: string, until: (sandbox: Sandbox) => Promise<unknown>) => {
        const asked = spec(name);
        const sandbox = await provider.ensure(asked, signal);
        await until(sandbox);
        return { sandbox, vanish: () => faults.vanish(asked.name) };
      };
      const early = await vanished('vanishes-early', async () => undefined);
      await early.vanish();
      await assert.rejects(early.sandbox.start(job, signal), isLoss);
      const amid = await vanished('vanishes-amid', (sandbox) =>
        sandbox.start({ ...job, argv: ['sleep', '600'] }, signal),
      );
      const waiting = assert.rejects(amid.sandbox.wait('job', { timeoutMs: minuteMs }, signal), isLoss);
      await amid.vanish();
      await waiting;
      const late = await vanished('vanishes-late', async (sandbox) => {
        await sandbox.start(job, signal);
        assert.equal((await sandbox.wait('job', { timeoutMs: minuteMs }, signal)).state, 'exited');
      });
      await late.vanish();
      await assert.rejects(late.sandbox.readFile('/etc/passwd', 10_000, signal), isLoss);
    });

    whereItHappens(
      'keeps a detached process whose streams were cut, and opens others',
      faults.cutStreams,
      async (cut) => {
        const sandbox = await provider.ensure(spec('cut'), signal);
        const argv = sh('sleep 1; echo said');
        await sandbox.start({ key: 'job', account: 'agent', env: {}, argv }, signal);
        const cat = { account: 'agent', env: {}, argv: sh('echo ready; exec cat') } as const;
        const stream = (await sandbox.openStream?.(cat, signal)) ?? assert.fail('expected a stream');
        await once(stream, 'data');
        // A connection that was closed in order looks like the end of the command.
        stream.on('error', () => undefined);
        const closed = new Promise((resolve) => stream.once('close', resolve));
        stream.resume();
        cut();
        await closed;
        const status = await sandbox.wait('job', { timeoutMs: minuteMs }, signal);
        assert.deepEqual(status, { state: 'exited', exitCode: 0 });
        assert.equal(String((await sandbox.readLog('job', { fromByte: 0, maxBytes: 100 })).bytes), 'said\n');
        const again = (await sandbox.openStream?.(cat, signal)) ?? assert.fail('expected a stream');
        again.end('again\n');
        assert.equal(String(await buffer(again)), 'ready\nagain\n');
      },
    );

    it('gives one sandbox to two hosts that create one name at once', async () => {
      const asked = spec('raced');
      const other = open(stack);
      const [first, second] = await Promise.all([provider.ensure(asked, signal), other.ensure(asked, signal)]);
      await say(first, 'echo one >seen');
      assert.equal(await say(second, 'cat seen'), 'one\n');
      assert.equal((await named(asked.name)).length, 1);
      await other.close();
    });

    whereItHappens('has its sandboxes end at their time, and moves that', faults.endOf, async (endOf) => {
      const asked = spec('ends');
      await provider.ensure(asked, signal);
      const { expiresAtMs } = asked.labels;
      const near = (endMs: number, wantedMs: number) => Math.abs(endMs - wantedMs) < minuteMs;
      assert.ok(near(await endOf(asked.name), expiresAtMs));
      assert.equal(await provider.renew?.(asked.name, expiresAtMs + 5 * minuteMs), true);
      assert.ok(near(await endOf(asked.name), expiresAtMs + 5 * minuteMs));
      assert.equal(await provider.renew?.(`${stack}-never-made`, expiresAtMs), false);
    });

    whereItHappens('takes no young sandbox for an old one where clocks differ', faults.skewClock, async (skew) => {
      const back = skew(5 * minuteMs);
      const asked = spec('skewed');
      await provider.ensure(asked, signal);
      const sandboxes: readonly SandboxInfo[] = await named(asked.name);
      back();
      const decided = (nowMs: number) => decideReaping(stack, sandboxes, () => 'over', { nowMs, minAgeMs: minuteMs });
      assert.equal(sandboxes.length, 1);
      assert.deepEqual(decided(Date.now()), []);
      assert.equal(decided(Date.now() + 7 * minuteMs).length, 1);
    });
  });
}
