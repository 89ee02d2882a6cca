import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { collectMs } from '../../workflows/contracts/stage-limits.ts';
import type { Task, TaskStep } from '../../workflows/contracts/task.ts';
import type { HealthCheck } from '../grading/task.ts';
import { type FileTree, subtree } from '../sandbox/file-tree.ts';
import { agentIsRoot, isRoot } from './agent-account.ts';
import { gradingFile } from './grading-file.ts';
import { stepNetworks } from './task-network.ts';
import { healthCheckOf, type StepToml, type TaskToml } from './task-toml.ts';
import { ownTestFile } from './test-environment.ts';

/*
 * Tasks of several steps. The agent works at one after another in the same sandbox, each time with an instruction of its own
 * and as a new agent. After each step, tests of its own run over all that was done until then.
 */

/** The beginning of a line of the agent's log about a command that was to collect files for the tests and failed. */
export const uncollected = 'verifier.collect';

/** A command that runs in the agent's sandbox once the agent has ended. */
export interface CollectCommand {
  readonly command: string;
  readonly timeoutSec: number;
}

/** The content of one step. */
export interface StepFiles {
  readonly instruction: string;
  readonly tests: FileTree;
  /** The reference solution; empty unless each step has one. */
  readonly solution: FileTree;
  readonly testEnv: Readonly<Record<string, string>>;
  readonly collect: readonly CollectCommand[];
  /** Names of the scores that decide whether the next step begins. */
  readonly keptScores: readonly string[];
  readonly begin: {
    /** Files that are put into the workdir. A `setup.sh` among them runs as the agent. */
    readonly workdir: FileTree;
    /** The command that says whether the agent may begin; null if the step has none. */
    readonly healthCheck: HealthCheck | null;
  };
}

/** Reads the steps of a task; none for a task that is one piece of work. Throws MalformedTask and UnsupportedTask. */
export function readSteps(tree: FileTree, toml: TaskToml): readonly StepFiles[] {
  const { steps } = toml;
  requireSupported(tree, toml);
  const shared = { tests: subtree(tree, 'tests/'), solution: subtree(tree, 'solution/') };
  const read = steps.map((step) => {
    const directory = `steps/${step.name}/`;
    const tests = new Map([...shared.tests, ...subtree(tree, `${directory}tests/`)]);
    if (!tests.has('test.sh')) throw malformed(`${directory}tests/test.sh`, 'a file there or in tests/', 'none');
    const own = subtree(tree, `${directory}solution/`);
    return {
      instruction: instructionOf(tree, `${directory}instruction.md`),
      tests,
      solution: own.size > 0 ? own : shared.solution,
      testEnv: { ...toml.verifier.env, ...step.verifier.env },
      collect: collectOf(toml, step),
      keptScores: Object.keys(gateOf(step).minScores ?? {}),
      begin: { workdir: subtree(tree, `${directory}workdir/`), healthCheck: healthCheckOf(step.healthcheck) },
    };
  });
  // A reference solution for only some of the steps is of no use.
  const isSolved = read.every(({ solution }) => solution.has('solve.sh'));
  return isSolved ? read : read.map((step) => ({ ...step, solution: new Map() }));
}

/** Returns the commands that collect after a step, or after a task that is one piece of work. Throws UnsupportedTask. */
export function collectOf(
  toml: Pick<TaskToml, 'verifier' | 'agent' | 'steps'>,
  step?: StepToml,
): readonly CollectCommand[] {
  const { verifier } = toml;
  const all = [...verifier.collect, ...(step?.verifier.collect ?? [])];
  const totalSec = all.reduce((sum, { timeout_sec }) => sum + timeout_sec, 0);
  if (totalSec > collectMs / 1000) {
    throw malformed('task.toml', `verifier.collect of ${collectMs / 1000} seconds in all at most`, `${totalSec}`);
  }
  return all.map(({ command, service, timeout_sec, user }) => {
    if (service !== 'main') {
      const expected = 'commands of the service main, which reaches the others by their names and shared volumes';
      throw unsupported('verifier.collect', expected, service);
    }
    if (isRoot(user) && !agentIsRoot(toml)) {
      throw unsupported('verifier.collect', "the agent's account: set agent.user to root, too", 'the user root');
    }
    return { command, timeoutSec: timeout_sec };
  });
}

/**
 * Returns what a workflow knows of the steps of a task; nothing for a task that is one piece of work. `downloads`: the commands by
 * which the tests of each step download.
 */
export function describeSteps(
  toml: TaskToml,
  networks: Pick<Task, 'network' | 'testNetwork'>,
  downloads: readonly (string | null)[],
): Pick<Task, 'steps' | 'rewardOfSteps'> {
  if (toml.steps.length === 0) return {};
  const steps = toml.steps.map((step, index) => ({
    name: step.name,
    ...(step.agent.timeout_sec != null && { agentTimeoutSec: step.agent.timeout_sec }),
    ...(step.verifier.timeout_sec != null && { evaluationTimeoutSec: step.verifier.timeout_sec }),
    ...gateOf(step),
    ...stepNetworks(step, networks, downloads[index] ?? null),
  }));
  requireShort('network', 'hosts and ports', {
    written: steps.map(({ network, testNetwork }) => [network, { ...testNetwork, neededFor: undefined }]),
    instead: 'name the hosts that several steps need in [environment]',
  });
  requireShort('min_reward', 'scores', {
    written: steps.flatMap(({ minScores }) => (minScores === undefined ? [] : [minScores])),
    instead: 'shorten their names',
  });
  return { steps, ...(toml.multi_step_reward_strategy === 'final' && { rewardOfSteps: 'final' as const }) };
}

/** A description of a task is in the history of its rollouts, whose values are small. */
const mostCharacters = 4_000;

/** Rejects steps whose fields are too long in all. */
function requireShort(
  field: string,
  what: string,
  { written, instead }: { readonly written: readonly unknown[]; readonly instead: string },
): void {
  const { length } = JSON.stringify(written);
  if (length <= mostCharacters) return;
  const expected = `at most ${mostCharacters} characters of ${what} in all steps together (${instead})`;
  throw unsupported(`steps: ${field}`, expected, String(length));
}

/** Returns the bounds of a step's reward and of its other scores. The score `reward` is the reward itself. */
function gateOf({ min_reward: bounds }: StepToml): Pick<TaskStep, 'minReward' | 'minScores'> {
  if (bounds === undefined) return {};
  if (typeof bounds === 'number') return { minReward: bounds };
  const { reward, ...scores } = bounds;
  return {
    ...(reward !== undefined && { minReward: reward }),
    ...(Object.keys(scores).length > 0 && { minScores: scores }),
  };
}

function instructionOf(tree: FileTree, path: string): string {
  const text = new TextDecoder().decode(tree.get(path)?.bytes);
  if (text.trim() === '') throw malformed(path, 'the text of the step', tree.has(path) ? 'an empty file' : 'none');
  return text;
}

/** Rejects steps whose tests would run in the agent's own sandbox, where later agents find them. */
export function requireGradedSteps({ steps }: Pick<TaskToml, 'steps'>, gradedIn: string): void {
  if (steps.length === 0 || gradedIn !== 'same') return;
  throw unsupported('grading.sandbox', '"fresh" or "snapshot" for a task of several steps', '"same"');
}

/** Rejects steps that ask for more than temper does between two steps of one sandbox. */
function requireSupported(tree: FileTree, toml: TaskToml): void {
  const { steps, tools } = toml;
  if (steps.length === 0) return;
  if (tree.has(gradingFile))
    throw unsupported('steps', `tests that write a reward in each, not a ${gradingFile}`, 'one');
  if (tools.host.length > 0) throw unsupported('tools.host', 'no host tools in a task of several steps', 'some');
  const keys = new Set<string>();
  for (const step of steps) {
    const key = step.name.normalize('NFC').toLowerCase();
    if (keys.has(key)) throw malformed('task.toml', 'steps of different names', `${step.name} twice`);
    keys.add(key);
    requireSupportedStep(step);
    const own = ownTestFile(tree, toml, step);
    if (own !== undefined) throw unsupported('steps: verifier.environment_mode', "tests in the task's own image", own);
  }
}

function requireSupportedStep({ name, verifier, min_reward: minReward }: StepToml): void {
  const reject = (field: string, expected: string, got: string): never => {
    throw unsupported(`steps: ${field}`, expected, `${got} in ${name}`);
  };
  if (typeof minReward === 'object' && Object.keys(minReward).length === 0) {
    reject('min_reward', 'a number, or numbers by the names of scores', 'none');
  }
  if (verifier.environment !== undefined) {
    reject('verifier.environment', "no such table: tests run in the task's own image", 'one');
  }
}

const malformed = (file: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('MalformedTask', `${file}: expected ${expected}, got ${got}`);

const unsupported = (field: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnsupportedTask', `task.toml: ${field}: expected ${expected}, got ${got}`);
