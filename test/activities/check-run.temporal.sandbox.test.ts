import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest } from '../../workflows/contracts/run.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { until } from '../helpers/until.ts';

describe("a run that can't work is refused", () => {
  let rollouts: Rollouts;
  const start = (workflowId: string, request: Partial<RunRequest>) =>
    rollouts.client.workflow.start('trainingRun', {
      taskQueue: controlQueue,
      workflowId,
      args: [{ tasks: 'generated:train/1', ...request }],
    });
  const refusal = async (workflowId: string, request: Partial<RunRequest>): Promise<string> => {
    const handle = await start(workflowId, request);
    const error = await handle.result().then(
      () => assert.fail('expected a refusal'),
      (caught: unknown) => caught,
    );
    assert.ok(error instanceof WorkflowFailedError);
    return String(error.cause?.cause ?? error.cause);
  };

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [home] }));
  });
  after(() => rollouts?.close());

  it('if its agent calls no model', async () => {
    assert.match(await refusal('no-model', { settings: { agent: 'nop' } }), /expected an agent that calls the model/);
  });

  it('if its set has no task', async () => {
    const rows = join(rollouts.home, 'rows.jsonl');
    await writeFile(rows, '');
    const refused = await refusal('no-tasks', { tasks: `slime:${rows}` });
    assert.match(refused, /slime:\S+rows\.jsonl: expected tasks, got none/);
  });

  it('if the agent could write its own reward in one of its tasks, with their number, an example and the choices', async () => {
    const set = join(rollouts.home, 'forgeable');
    const grading = '[grading]\nsandbox = "same"\n';
    for (const [name, more] of [
      ['kept', 'keep_processes = true\n'],
      ['ended', ''],
    ] as const) {
      const files = {
        'task.toml': `[agent]\nuser = "root"\n[environment]\ndocker_image = "temper-tasks:bookworm"\n${grading}${more}`,
        'instruction.md': 'Do it.\n',
        'environment/workspace/work': 'open\n',
        'tests/test.sh': 'true\n',
      };
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(set, name, path)), { recursive: true });
        await writeFile(join(set, name, path), text);
      }
    }
    const refused = await refusal('forgeable', { tasks: `harbor:${set}` });
    assert.match(refused, /harbor:\S+: in 1 of 2 tasks, for example kept, the agent could write its own reward/);
    assert.match(refused, /sandbox = "snapshot" or "fresh".*keep_processes = false.*temper eval and temper rollout/);
  });

  it('if its pool is not known', async () => {
    assert.match(
      await refusal('nowhere', { pool: 'big' }),
      /pool: expected one of default, got big; add it to .*engines\.json/,
    );
  });

  it('while another run uses the engines, but not afterwards', async () => {
    const first = await start('first', {});
    // There is no trainer, so the run stays in its preparation.
    await until(async () => ((await first.describe()).raw.pendingActivities ?? []).length > 0);
    assert.match(await refusal('second', {}), /expected no other run on the pool default, .*, got first/);
    await first.cancel();
    await assert.rejects(first.result(), WorkflowFailedError);
    const third = await start('third', {});
    const preparing = async () =>
      (await third.describe()).raw.pendingActivities?.some(
        ({ activityType }) => activityType?.name === 'prepareTrainer',
      ) === true;
    await until(preparing);
    await third.terminate();
  });
});
