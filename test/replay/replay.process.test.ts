import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { locateWorkflowBundle } from '../../infra/temporal/bundle.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';

const directory = join(import.meta.dirname, 'histories');

async function recorded(file: string): Promise<{ readonly workflowId: string; readonly history: object }> {
  return JSON.parse(await readFile(join(directory, file), 'utf8'));
}

describe('recorded histories', async () => {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.json'));
  assert.ok(files.length >= 6, `expected recorded histories in ${directory}, got ${files.length}`);

  for (const file of files) {
    it(`${file} replays`, async () => {
      const { workflowId, history } = await recorded(file);
      await Worker.runReplayHistory({ workflowBundle: await locateWorkflowBundle(process.env) }, history, workflowId);
    });
  }

  it('a workflow with two activities swapped is refused as not deterministic', async () => {
    const workflowBundle = await bundleChanged('rollout/attempt.ts', (source) =>
      source
        .replace("onPlace(host, 'startAgent'", "onPlace(host, 'captureDiff'")
        .replace(
          /onHost\(host\)\.startAgent\(\{[^}]*\}\)/,
          'onHost(host).captureDiff({ attempt, kind, task, baseCommit })',
        ),
    );
    const { workflowId, history } = await recorded('rollout-0.1.0.json');
    await assert.rejects(Worker.runReplayHistory({ workflowBundle }, history, workflowId), DeterminismViolationError);
  });
});
