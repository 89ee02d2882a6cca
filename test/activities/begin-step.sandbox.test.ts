import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { beginStep } from '../../activities/host/begin-step.ts';
import type { HarborTask } from '../../infra/harbor/harbor-task.ts';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { sandboxSpec } from '../../infra/sandbox/sandbox-request.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { treeOf, workspaceTask } from '../helpers/sandbox/workspaces.ts';

const stack = 'begin-step';
const task = { id: 'two', cpus: 1, memoryMb: 256, diskMb: 256, workdir: '/workspace', step: 2 } as Task;
const stepWith = (setup: string): HarborTask => ({
  ...workspaceTask(new Map()),
  solution: treeOf({ 'solve.sh': 'second' }),
  begin: { workdir: treeOf({ given: 'as given\n', 'setup.sh': setup }), healthCheck: null },
});

describe('the beginning of a step', () => {
  let home: string;
  let provider: SandboxProvider;
  let sandbox: Sandbox;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-step-'));
    provider = createLocalProvider({ root: home, stack, spawner: createHelperSpawner() });
    const where = { purpose: 'agent', run: '', sweep: false, mounts: [], gatewayDir: null, beside: null } as const;
    const epoch = { rollout: stack, epoch: 1 };
    const request = { ...where, name: stack, epoch, task, image: 'none', expiresAtMs: Date.now() + 60_000, files: [] };
    sandbox = await provider.ensure(sandboxSpec({ stack, fence: () => null }, request), AbortSignal.timeout(60_000));
  });
  after(async () => {
    await provider?.remove(stack);
    await provider?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('happens once, however often the activity is tried, and never over work of the agent', async ({ signal }) => {
    const read = async (path: string): Promise<string> => String(await sandbox.readFile(path, 1000, signal));
    const begin = (setup: string) =>
      beginStep(
        sandbox,
        {
          task,
          files: stepWith(setup),
          key: 'agent-2',
          spec: { needsSolution: true },
          path: null,
          secrets: ['a~keyed'],
        },
        signal,
      );
    for (const _ of [1, 2]) await begin('echo once >>log');
    assert.deepEqual([await read('/workspace/log'), await read('/workspace/given')], ['once\n', 'as given\n']);
    const argv = ['sh', '-c', 'echo changed >given'] as const;
    await sandbox.start({ key: 'agent-2', account: 'agent', argv: [...argv], env: {} }, signal);
    await sandbox.wait('agent-2', { timeoutMs: 120_000 }, signal);
    await begin('echo again >>log');
    assert.deepEqual([await read('/workspace/log'), await read('/workspace/given')], ['once\n', 'changed\n']);
  });

  it('shows no secret of the session in the message of a set-up that fails', async ({ signal }) => {
    const files = stepWith('echo it is a~keyed or a~other; exit 4');
    const secrets = ['a~keyed', 'a~other'];
    const of3 = { ...task, step: 3 };
    const step = { task: of3, files, key: 'agent-3', spec: { needsSolution: false }, path: null, secrets };
    await assert.rejects(beginStep(sandbox, step, signal), (error: unknown) => {
      const { message, type } = error as Error & { readonly type: string };
      assert.equal(type, 'SetupFailed');
      assert.match(message, /setup\.sh of step-3 failed: exit code 4: it is/);
      assert.doesNotMatch(message, /keyed|other/);
      return true;
    });
  });
});
