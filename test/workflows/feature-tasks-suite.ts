import assert from 'node:assert/strict';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { providerFor } from '../../infra/sandbox/choose-provider.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { startNamedNetwork, writeNetworkedSteps, writeNetworkedTask } from '../helpers/egress/networked-task.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { type FeatureTask, type TriedKind, writeFeatureTask } from '../helpers/tasks/features/feature-task.ts';
import { harborFeatures } from '../helpers/tasks/features/harbor.ts';
import { terminalBenchFeatures } from '../helpers/tasks/features/terminal-bench.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { environment } from '../helpers/tasks/task-steps.ts';

const formats: Readonly<Record<string, Readonly<Record<string, FeatureTask>>>> = {
  Harbor: harborFeatures,
  'terminal-bench': terminalBenchFeatures,
};

/** The kinds of sandbox, the cheapest first. */
const kinds: readonly TriedKind[] = ['local', 'docker', 'kubernetes'];

/** Returns the cheapest kind of sandbox that can run a task. */
const cheapestFor = ({ refused = {}, notIn = [] }: FeatureTask): TriedKind | undefined =>
  kinds.find((kind) => refused[kind] === undefined && !notIn.includes(kind));

/** The number of tasks that are tried at once. */
const atOnce = 6;

/**
 * Validates one task for each feature of the formats in a kind of sandbox: the reference solution must score 1, and doing nothing 0.
 * Those that the kind cannot give must be refused before an agent starts, with the reason. Doing nothing is tried only in the
 * cheapest kind that can run the task, since its tests are the same in all of them.
 */
export function featureTasks(kind: TriedKind, providerIn: (home: string) => SandboxProvider): void {
  describe(`one task for each feature, in ${kind} sandboxes`, { concurrency: atOnce }, () => {
    let rollouts: Rollouts;
    let tasks: string;
    let network: { readonly port: number; readonly server: Server };
    before(async () => {
      const { outside, ...named } = await startNamedNetwork('agent.test', 'tests.test');
      network = named;
      rollouts = await startRollouts((home) => {
        const provider = providerIn(home);
        const providers = new Map([[kind, provider]]);
        const { channels } = provider;
        return {
          provider,
          taskRoots: [join(home, 'tasks')],
          taskVariables: { TASK_NAME: 'Ada' },
          channel: channels[0],
          network: { cap: 'allowlist', outside },
          choose: (_choice, task, needs) => providerFor(providers, kind, task, needs),
          capacity: 2 * atOnce,
          evaluations: atOnce,
        };
      });
      tasks = join(rollouts.home, 'tasks');
    });
    after(async () => {
      await rollouts?.close();
      network?.server.close();
    });

    const roll = (name: string, task: string, agent: 'oracle' | 'nop') =>
      rollouts.run(`${name}-${agent}`, { task, agent, sandbox: kind });

    async function validate(name: string, task: string) {
      const [solved] = await Promise.all([assertSolved(name, task), assertUnsolved(name, task)]);
      return solved;
    }

    async function assertSolved(name: string, task: string) {
      const solved = await roll(name, task, 'oracle');
      assert.deepEqual([solved.outcome, solved.reward], ['scored', 1], JSON.stringify(solved));
      return solved;
    }

    async function assertUnsolved(name: string, task: string): Promise<void> {
      const untouched = await roll(name, task, 'nop');
      assert.deepEqual([untouched.outcome, untouched.reward], ['scored', 0], JSON.stringify(untouched));
    }

    async function assertRefused(name: string, task: string, reason: RegExp): Promise<void> {
      const result = await roll(name, task, 'oracle');
      const { outcome, reward, failure, trace } = result;
      assert.deepEqual(
        [outcome, reward, failure?.type, trace],
        ['invalid-task', null, 'UnsupportedTask', null],
        JSON.stringify(result),
      );
      assert.match(failure?.message ?? '', reason);
    }

    for (const [format, features] of Object.entries(formats)) {
      for (const [feature, task] of Object.entries(features)) {
        const { refused = {}, notIn = [], skip = false } = task;
        if (notIn.includes(kind)) continue;
        const reason = refused[kind];
        const name = `${format} ${feature}`.replaceAll(/\W+/g, '-').toLowerCase();
        it(`${format}: ${feature}, ${reason === undefined ? 'can be solved' : 'is refused'}`, { skip }, async () => {
          const address = await writeFeatureTask(tasks, name, task);
          if (reason !== undefined) await assertRefused(name, address, reason);
          else if (kind === cheapestFor(task)) await validate(name, address);
          else await assertSolved(name, address);
        });
      }
    }

    if (kind !== 'local') {
      it('Harbor: an agent that is root and ends whatever else runs in its sandbox, is scored', async () => {
        const solve = `exec python3 -c 'import os\nwhile True:\n  try: os.kill(-1, 9)\n  except OSError: pass'`;
        const toml = `[agent]\nuser = "root"\n${environment}`;
        const task = await writeHarborTask(tasks, 'ends-all', { toml, solve });
        const { outcome, reward, failure } = await roll('ends-all', task, 'oracle');
        assert.deepEqual([outcome, reward, failure], ['scored', 0, null]);
      });
    }

    it('Harbor: a network of its own for agent and tests, can be solved', async () => {
      const directory = join(tasks, 'networked');
      await writeNetworkedTask(directory, network);
      await validate('networked', `harbor:${directory}`);
    });

    it('Harbor: steps with networks of their own, can be solved', async () => {
      const directory = join(tasks, 'networked-steps');
      await writeNetworkedSteps(directory, network);
      const { network: ofAgents, steps = [] } = await validate('networked-steps', `harbor:${directory}`);
      assert.deepEqual([ofAgents?.requests, ...steps.map((step) => step.network?.requests)], [2, 2, undefined]);
    });

    it('Harbor: a network beyond what the operator allows, is refused', async () => {
      const toml = `${environment}[agent]\nnetwork_mode = "public"\n`;
      const task = await writeHarborTask(tasks, 'public', { toml });
      await assertRefused('public', task, /TEMPER_NETWORK=public/);
    });
  });
}
