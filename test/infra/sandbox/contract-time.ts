import assert from 'node:assert/strict';
import { it } from 'node:test';
import { until } from '../../helpers/until.ts';
import { type Bench, sh } from './contract.ts';

const agent = { env: {}, account: 'agent', key: 'job' } as const;
const longWait = { timeoutMs: 120_000 };

/** The promises about the time that a process has. */
export function timeContract({ subject, stack, signal, make }: Bench): void {
  it('remembers that the time of a process was over when it was ended', async () => {
    const sandbox = await make('over');
    await sandbox.start({ ...agent, argv: ['sleep', '600'] }, signal);
    await sandbox.noteTimeOver('job');
    await sandbox.kill('job');
    const ended = { state: 'exited', exitCode: 137, signal: 'SIGKILL', limit: 'time' };
    assert.deepEqual(await sandbox.status('job'), ended);
    const attached = await subject.open(stack).attach(sandbox.name);
    assert.deepEqual(await attached?.wait('job', longWait, signal), ended);
  });

  it('remembers no such thing of a process that has ended, or was never started', async () => {
    const sandbox = await make('not-over');
    await sandbox.start({ ...agent, argv: sh('exit 3') }, signal);
    await sandbox.wait('job', longWait, signal);
    await sandbox.noteTimeOver('job');
    await sandbox.noteTimeOver('never-started');
    assert.deepEqual(await sandbox.status('job'), { state: 'exited', exitCode: 3 });
    assert.deepEqual(await sandbox.status('never-started'), { state: 'absent' });
  });

  it('tells any caller how long a process has run', async () => {
    const sandbox = await make('age');
    assert.equal(await sandbox.ageMs('job', signal), 0);
    const beforeMs = performance.now();
    await sandbox.start({ ...agent, argv: ['sleep', '600'] }, signal);
    const startedAtMs = performance.now();
    await until(() => performance.now() - startedAtMs > 2_500);
    const leastMs = performance.now() - startedAtMs;
    const attached = await subject.open(stack).attach(sandbox.name);
    const ageMs = (await attached?.ageMs('job', signal)) ?? 0;
    const mostMs = performance.now() - beforeMs;
    // Some sandboxes count whole seconds.
    assert.ok(ageMs >= leastMs - 1_000 && ageMs <= mostMs + 1_000, `${ageMs} ms, ${leastMs} to ${mostMs} expected`);
  });
}
