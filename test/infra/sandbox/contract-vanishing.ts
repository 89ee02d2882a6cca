import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { it } from 'node:test';
import { SandboxFailure, wasEndedInside } from '../../../infra/sandbox/failure.ts';
import type { Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { until } from '../../helpers/until.ts';
import { foreground, sh } from './contract.ts';
import { type FaultBench, minuteMs, whereItHappens } from './fault-bench.ts';

/** Longer than a busy machine takes until the sandbox is gone. */
const longWait = { timeoutMs: 10 * minuteMs } as const;
const cat = { account: 'agent', env: {}, argv: sh('echo ready; exec cat') } as const;

/** Waits until a stream has ended, or broke. */
const endOf = (stream: Duplex): Promise<unknown> =>
  new Promise((resolve) => {
    stream.on('error', () => undefined).once('close', resolve);
    stream.resume();
  });

/** Checks that the loss of a sandbox or of its connections has its own type, and counts as no deed of what runs in it. */
export function vanishContract({ provider, signal, faults, spec, say }: FaultBench): void {
  it('says that a sandbox vanished, with evidence from outside, early in its life, amid it and at its end', async () => {
    const job = { key: 'job', account: 'agent', env: {}, argv: sh('echo said; sleep 0.1') } as const;
    const isLoss = (error: unknown): boolean =>
      error instanceof SandboxFailure && error.type === 'SandboxLost' && !wasEndedInside(error);
    const vanished = async (name: string, prepare: (sandbox: Sandbox) => Promise<unknown>) => {
      const asked = spec(name);
      const sandbox = await provider.ensure(asked, signal);
      await prepare(sandbox);
      return { sandbox, vanish: () => faults.vanish(asked.name) };
    };
    const early = await vanished('vanishes-early', async () => undefined);
    await early.vanish();
    await assert.rejects(early.sandbox.start(job, signal), isLoss);
    const amid = await vanished('vanishes-amid', (sandbox) =>
      sandbox.start({ ...job, argv: ['sleep', '600'] }, signal),
    );
    const waiting = assert.rejects(amid.sandbox.wait('job', longWait, signal), isLoss);
    const sleeping = { ...foreground, timeoutMs: 10 * minuteMs, argv: sh('touch on; sleep 600') };
    const running = assert.rejects(amid.sandbox.exec(sleeping, signal), isLoss);
    await until(async () => (await say(amid.sandbox, 'ls on')) !== '');
    const stream = await amid.sandbox.openStream?.(cat, signal);
    const closed = stream && endOf(stream);
    await amid.vanish();
    await Promise.all([waiting, running, closed]);
    const late = await vanished('vanishes-late', async (sandbox) => {
      await sandbox.start(job, signal);
      assert.equal((await sandbox.wait('job', longWait, signal)).state, 'exited');
    });
    await late.vanish();
    const { sandbox } = late;
    const files = {
      tree: new Map([['file', { mode: 0o644, bytes: new Uint8Array(1) }]]),
      at: '/workspace',
      owner: 'agent',
    } as const;
    for (const use of [
      () => sandbox.readFile('/etc/passwd', 10_000, signal),
      () => sandbox.putFiles(files, signal),
      () => sandbox.status('other'),
      () => sandbox.readLog('other', { fromByte: 0, maxBytes: 100 }),
      () => sandbox.diskUsage(),
      ...(sandbox.openStream === undefined ? [] : [() => sandbox.openStream?.(cat, signal)]),
    ]) {
      await assert.rejects(async () => use(), isLoss, use.toString());
    }
  });

  whereItHappens(
    'keeps a detached process whose streams were cut, and opens others',
    faults.cutStreams,
    async (cut) => {
      const sandbox = await provider.ensure(spec('cut'), signal);
      const argv = sh('sleep 1; echo said');
      await sandbox.start({ key: 'job', account: 'agent', env: {}, argv }, signal);
      const stream = (await sandbox.openStream?.(cat, signal)) ?? assert.fail('expected a stream');
      await once(stream, 'data');
      // A connection that was closed in order looks like the end of the command.
      const closed = endOf(stream);
      const sleeping = { ...foreground, timeoutMs: 10 * minuteMs, argv: sh('touch on; sleep 600') };
      const interrupted = assert.rejects(sandbox.exec(sleeping, signal), { type: 'SandboxUnavailable' });
      await until(async () => (await say(sandbox, 'ls on')) !== '');
      cut();
      await Promise.all([closed, interrupted]);
      const status = await sandbox.wait('job', longWait, signal);
      assert.deepEqual(status, { state: 'exited', exitCode: 0 });
      assert.equal(String((await sandbox.readLog('job', { fromByte: 0, maxBytes: 100 })).bytes), 'said\n');
      const again = (await sandbox.openStream?.(cat, signal)) ?? assert.fail('expected a stream');
      again.end('again\n');
      assert.equal(String(await buffer(again)), 'ready\nagain\n');
    },
  );
}
