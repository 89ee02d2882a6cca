import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { locateWorkflowBundle } from '../../infra/temporal/bundle.ts';
import { readSource } from '../helpers/sources.ts';
import { bundleChanged, shrinkWindows } from '../helpers/temporal/changed-workflows.ts';

const directory = join(import.meta.dirname, 'histories');

/** The part of a recorded history that names the workflow type. */
interface Recorded {
  readonly workflowId: string;
  readonly history: {
    readonly events: readonly {
      readonly workflowExecutionStartedEventAttributes?: { readonly workflowType: { readonly name: string } };
    }[];
  };
}

async function recorded(file: string): Promise<Recorded> {
  return JSON.parse(await readFile(join(directory, file), 'utf8'));
}

describe('the recorded histories', async () => {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.json'));

  for (const file of files) {
    it(`${file} replays`, async () => {
      const { workflowId, history } = await recorded(file);
      const workflowBundle = file.includes('-windows-')
        ? await bundleChanged('sweep/windows.ts', shrinkWindows)
        : await locateWorkflowBundle(process.env);
      await Worker.runReplayHistory({ workflowBundle }, history, workflowId);
    });
  }

  it('cover every registered workflow', async () => {
    const registered = [...readSource('workflows/index.ts').matchAll(/export \{ (\w+) \}/g)].map(([, name]) => name);
    const types = await Promise.all(
      files.map(async (file) => {
        const { history } = await recorded(file);
        return history.events[0]?.workflowExecutionStartedEventAttributes?.workflowType.name;
      }),
    );
    assert.deepEqual([...new Set(types)].sort(), registered.sort());
  });

  it('do not replay when two activities of the workflow are swapped', async () => {
    const workflowBundle = await bundleChanged('rollout/work-once.ts', (module) =>
      module.replace('.startAgent(', '.captureDiff('),
    );
    const file = files.find((name) => /^rollout-\d/.test(name));
    assert.ok(file !== undefined, `expected a history rollout-<version>.json in ${directory}`);
    const { workflowId, history } = await recorded(file);
    await assert.rejects(Worker.runReplayHistory({ workflowBundle }, history, workflowId), DeterminismViolationError);
  });
});
