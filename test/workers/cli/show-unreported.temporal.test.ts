import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

describe('work that is terminated before its report is written', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;
  const held = Promise.withResolvers<void>();

  before(async () => {
    stack = await startScriptedStack();
    temper = cliOn(stack.home, stack.server);
  });
  after(async () => {
    held.resolve();
    await stack?.close();
  });

  const sweepOf = (id: string): readonly string[] => ['--tasks', 'generated:test/1', '--count', '2', '--id', id];

  /** Starts work, and terminates it once its only missing part is the report. */
  async function terminateUnreported(id: string, ...args: readonly string[]): Promise<void> {
    const summarising = Promise.withResolvers<void>();
    stack.script = {
      ...stack.script,
      summarise: async () => {
        summarising.resolve();
        await held.promise;
      },
    };
    const command = temper.run(...args, '--id', id);
    await summarising.promise;
    await stack.server.client.workflow.getHandle(id).terminate('by hand');
    assert.notEqual((await command).code, 0);
    await until(async () => {
      const { status } = await stack.server.client.workflow.getHandle(id).describe();
      return status.name === 'TERMINATED';
    });
  }

  it('is shown with the rollouts that the store holds, for a sweep', async () => {
    await terminateUnreported('cut', 'eval', ...sweepOf('cut').slice(0, 4));
    const { code, stdout, stderr } = await temper.run('show', 'cut');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^cut \(terminated\)$/m);
    assert.match(stdout, /it has no report; the store holds 2 rollouts of it: scored 2/);
    const { rollouts, status } = JSON.parse((await temper.run('show', 'cut', '--json')).stdout);
    assert.equal(status, 'terminated');
    assert.deepEqual(
      rollouts.map(({ task, end, reward }: Record<string, unknown>) => [task, end, reward]),
      [
        ['generated:test/1#0', 'scored', 1],
        ['generated:test/1#1', 'scored', 1],
      ],
    );
  });

  it('is shown with the rollouts that it has graded again, for a regrade', async () => {
    stack.script = { reward: stack.script.reward };
    assert.equal((await temper.run('eval', ...sweepOf('whole'))).code, 0);
    await terminateUnreported('again', 'regrade', '--run', 'whole');
    const { code, stdout, stderr } = await temper.run('show', 'again');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /it has no report; the store holds 2 rollouts of it: same 2/);
  });
});
