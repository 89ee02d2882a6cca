import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { bundleCode, locateWorkflowBundle } from '../../infra/temporal/bundle.ts';

const root = join(import.meta.dirname, '../..');
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

  describe('against a workflow with two activities swapped', () => {
    let copy: string;
    before(async () => {
      copy = await mkdtemp(join(tmpdir(), 'temper-swapped-'));
      await cp(join(root, 'workflows'), join(copy, 'workflows'), { recursive: true });
      await cp(join(root, 'activities'), join(copy, 'activities'), { recursive: true });
      await cp(join(root, 'package.json'), join(copy, 'package.json'));
      await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    });
    after(() => rm(copy, { recursive: true, force: true }));

    it('is refused as not deterministic', async () => {
      const path = join(copy, 'workflows/rollout/attempt.ts');
      const source = await readFile(path, 'utf8');
      const swapped = source
        .replace("onPlace(host, 'startAgent'", "onPlace(host, 'captureDiff'")
        .replace(
          'onHost(host).startAgent({ attempt, task, agent, kind, maxTurns })',
          'onHost(host).captureDiff({ attempt, kind, task, baseCommit })',
        );
      assert.notEqual(swapped, source);
      await writeFile(path, swapped);
      const code = await bundleCode(join(copy, 'workflows/index.ts'));
      const { workflowId, history } = await recorded('rollout-0.1.0.json');
      await assert.rejects(
        Worker.runReplayHistory({ workflowBundle: { code } }, history, workflowId),
        DeterminismViolationError,
      );
    });
  });
});
