import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { createHelperSpawner } from '../../../infra/process/spawner/through-helper.ts';
import { SandboxFailure } from '../../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import type { Sandbox, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { createPipeline, type Pipeline } from '../../adversarial/pipeline.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const task = readHarborTask(
  treeOf({
    'task.toml': '[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n',
    'instruction.md': 'Write 5 into answer.\n',
    'environment/workspace/answer': '4\n',
    'tests/test.sh': 'grep -q 5 answer && echo 1 >/logs/verifier/reward.txt\n',
  }),
);
const agent = { files: { answer: '5\n' } };

describe('an evaluation whose sandbox cannot be removed', () => {
  let real: SandboxProvider;
  let pipeline: Pipeline;
  const asked: string[] = [];

  before(async () => {
    pipeline = await createPipeline('local', (stack, root) => {
      real = createLocalProvider({ root, stack, spawner: createHelperSpawner() });
      return {
        ...real,
        async remove(name) {
          if (!name.includes('-evaluation-')) return real.remove(name);
          asked.push(name);
          throw new SandboxFailure('SandboxUnavailable', `sandbox ${name} cannot be removed`);
        },
      };
    });
  });
  after(async () => {
    for (const name of new Set(asked)) await real.remove(name);
    await pipeline?.[Symbol.asyncDispose]();
  });

  it('returns its verdict, also where sandboxes of earlier activity attempts stay, and reports them', async () => {
    const { kind, value } = await pipeline.evaluate(task, agent, 3);
    assert.deepEqual([kind, value], ['graded', 1]);
    const attempts = pipeline.left.map((name) => name.slice(name.lastIndexOf('-') + 1));
    assert.deepEqual(attempts, ['1', '2', '3']);
  });
});

describe('an evaluation whose work breaks the judgement', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('local', (stack, root) => {
      const real = createLocalProvider({ root, stack, spawner: createHelperSpawner() });
      const breaking = (sandbox: Sandbox): Sandbox => {
        const readFile: Sandbox['readFile'] = async (path, maxBytes, signal) => {
          const answer = await sandbox.readFile('/workspace/answer', maxBytes, signal);
          if (String(answer) === 'break\n') throw new RangeError('Invalid string length');
          return sandbox.readFile(path, maxBytes, signal);
        };
        const get = (_: Sandbox, key: string | symbol): unknown => {
          const value: unknown = key === 'readFile' ? readFile : Reflect.get(sandbox, key, sandbox);
          return typeof value === 'function' ? value.bind(sandbox) : value;
        };
        return new Proxy(sandbox, { get });
      };
      return { ...real, ensure: async (spec, signal) => breaking(await real.ensure(spec, signal)) };
    });
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  it('is tried again, and is worth 0 at the third attempt, with a flag', async () => {
    const breaks = { files: { answer: 'break\n' } };
    await assert.rejects(pipeline.evaluate(task, breaks, 1), RangeError);
    const { kind, flags = [] } = await pipeline.evaluate(task, breaks, 3);
    assert.equal(kind, 'no-reward');
    assert.deepEqual(
      flags.map(({ trick }) => trick),
      ['limit', 'claimed-fault'],
    );
  });
});
