import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { groupId, rolloutId, stepId } from '../../../workflows/contracts/ids.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import { type CliRun, cliOn } from '../../helpers/cli.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

describe('what has ended', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;
  /** The commands that read it, and what they print while the server knows it. */
  const printed = new Map<readonly string[], string>();

  async function printsAsBefore(run: (...args: readonly string[]) => Promise<CliRun>): Promise<readonly CliRun[]> {
    return Promise.all(
      Array.from(printed, async ([args, before]) => {
        const end = await run(...args);
        assert.equal(end.code, 0, `${args.join(' ')}: ${end.stderr}`);
        assert.equal(end.stdout, before, args.join(' '));
        return end;
      }),
    );
  }

  before(async () => {
    stack = await startScriptedStack({ script: { reward: (id) => (/-[0-9]*[02468]$/.test(id) ? 1 : 0) } });
    temper = cliOn(stack.home, stack.server);
    const size = ['--tasks', 'generated:test/1', '--groups', '1', '--rollouts', '2', '--max-staleness', '0'];
    assert.equal((await temper.run('train', ...size, '--steps', '2', '--id', 'run')).code, 0);
    const sweep = ['--tasks', 'generated:test/1', '--count', '2', '--policy', 'run'];
    assert.equal((await temper.run('eval', ...sweep, '--id', 'sweep')).code, 0);
    assert.equal((await temper.run('eval', ...sweep, '--id', 'other-sweep')).code, 0);
    assert.equal((await temper.run('regrade', '--run', 'sweep', '--id', 'regrade')).code, 0);
    const { client } = stack.server;
    const settings = { agent: 'mini' };
    const group = { task: 'generated:test/1#0', rolloutsPerGroup: 2, settings };
    await client.workflow.execute('group', { taskQueue: controlQueue, workflowId: 'a/group', args: [group] });
    const rollout = [{ task: 'generated:test/1#0', ...settings }];
    await client.workflow.execute('rollout', { taskQueue: controlQueue, workflowId: 'a-rollout', args: rollout });
    const { runId: runKey } = await client.workflow.getHandle('run').describe();
    const ofRun = groupId('run', runKey, 0);
    const ids = [
      'run',
      'sweep',
      'regrade',
      'a/group',
      'a-rollout',
      ofRun,
      stepId('run', runKey, 1),
      rolloutId(ofRun, 1),
    ];
    const commands = [
      ...ids.flatMap((id) => [
        ['show', id],
        ['show', id, '--json'],
      ]),
      ['report', 'run', '--json', '--out', join(stack.home, 'report.html')],
      ['eval', 'show', 'sweep'],
      ['eval', 'compare', 'sweep', 'other-sweep'],
    ];
    for (const args of commands) {
      const { code, stdout, stderr } = await temper.run(...args);
      assert.equal(code, 0, stderr);
      printed.set(args, stdout);
    }
  });
  after(() => stack?.close());

  it('is shown and reported as before while the server is away', async () => {
    const page = await readFile(join(stack.home, 'report.html'), 'utf8');
    assert.match(page, /other-sweep/);
    const away = cliOn(stack.home, { ...stack.server, address: '127.0.0.1:1' });
    for (const { stderr } of await printsAsBefore(away.run)) {
      assert.match(stderr, /127\.0\.0\.1:1.*; temper shows what the store holds/s);
    }
    assert.equal(await readFile(join(stack.home, 'report.html'), 'utf8'), page);
    const unknown = await away.run('show', 'nothing');
    assert.deepEqual([unknown.code, /127\.0\.0\.1:1/.test(unknown.stderr)], [1, true], unknown.stderr);
  });

  it('is shown and reported as before once the server has forgotten it', async () => {
    const { client, namespace } = stack.server;
    const count = async (): Promise<number> => (await client.workflow.count('')).count;
    for await (const { workflowId, runId } of client.workflow.list({ query: 'ExecutionStatus="Completed"' })) {
      const workflowExecution = { workflowId, runId };
      await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
    }
    await until(async () => (await count()) === 0);
    for (const { stderr } of await printsAsBefore(temper.run)) assert.doesNotMatch(stderr, /what the store holds/);
  });
});
