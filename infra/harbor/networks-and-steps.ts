import type { Task } from '../../workflows/contracts/task.ts';
import { namesBeside } from '../sandbox/service.ts';
import type { ComposedTask } from './compose-file.ts';
import { neededDownload } from './downloads.ts';
import { agentNetwork, testNetwork } from './task-network.ts';
import { describeSteps, type StepFiles } from './task-steps.ts';
import type { TaskToml } from './task-toml.ts';

/** The part of a task or of its step that its tests run. */
interface WorkToTest extends Pick<StepFiles, 'tests'> {
  readonly begin: StepFiles['begin'] | null;
}

/** Returns the networks of a task and its steps. `works`: the work of the whole task, and of each step. */
export function networksAndSteps(
  toml: TaskToml,
  works: readonly WorkToTest[],
  { judgedByLog, beside, hosts }: { readonly judgedByLog: boolean } & Pick<ComposedTask, 'beside' | 'hosts'>,
): Pick<Task, 'network' | 'testNetwork' | 'steps' | 'rewardOfSteps'> {
  const surroundings = { ...toml.environment, near: [...namesBeside(beside), ...hosts.map(({ name }) => name)] };
  const [download = null, ...ofSteps] = works.map((work) => neededDownload(work, surroundings));
  const tables = { ...toml, environment: toml.verifier.environment ?? toml.environment };
  const network = agentNetwork(toml);
  const ofTests = testNetwork(tables, { judgedByLog, download });
  const networks = {
    ...(network !== undefined && { network }),
    ...(ofTests !== undefined && { testNetwork: ofTests }),
  };
  return { ...networks, ...describeSteps(toml, networks, ofSteps) };
}
