import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

let rollouts: Rollouts;
let interruptions = 0;

/** Returns a provider whose first agent's sandbox fails during its set-up. */
function interrupting(real: SandboxProvider): SandboxProvider {
  return {
    ...real,
    ensure: async (spec, signal) => {
      const sandbox = await real.ensure(spec, signal);
      if (spec.labels.purpose !== 'agent' || interruptions > 0) return sandbox;
      const exec: typeof sandbox.exec = async (request, at) => {
        const result = await sandbox.exec(request, at);
        if (!request.argv.includes('bash')) return result;
        interruptions += 1;
        throw new SandboxFailure('SandboxUnavailable', 'the engine was restarted');
      };
      return new Proxy(sandbox, {
        get: (target, name) => {
          if (name === 'exec') return exec;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  };
}

before(async () => {
  rollouts = await startRollouts((home) => ({
    taskRoots: [home],
    provider: interrupting(
      createLocalProvider({ root: `${home}/sandboxes`, stack: 'test-stack', spawner: createHelperSpawner() }),
    ),
  }));
});
after(() => rollouts.close());

it('starts an interrupted set-up again in a fresh sandbox, since it may not be repeatable', async () => {
  const task = await writeHarborTask(rollouts.home, 'once', { setup: ['mkdir made && echo x >> made/lines'] });
  const result = await rollouts.run('once', { task, agent: 'oracle' });
  assert.deepEqual([interruptions, result.outcome, result.reward], [1, 'scored', 1], result.failure?.message);
});

it('gives the reference solution the variables that its task defines', async () => {
  const toml = '[environment]\ndocker_image = "temper-tasks:bookworm"\n[solution.env]\nTHE_ANSWER = "right"\n';
  const task = await writeHarborTask(rollouts.home, 'variables', { toml, solve: 'echo "$THE_ANSWER" > answer.txt' });
  const result = await rollouts.run('variables', { task, agent: 'oracle' });
  assert.deepEqual([result.outcome, result.reward], ['scored', 1], result.failure?.message);
});
