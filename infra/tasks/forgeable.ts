import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetFormat } from '../data-sets/data-set.ts';
import { dataSetFormats } from '../data-sets/formats/index.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import { pathOfTests } from '../harbor/image-path.ts';
import { parseSetAddress } from './address.ts';

type Forged = Pick<HarborTask, 'gradedIn' | 'keepProcesses' | 'description' | 'env' | 'testEnv' | 'build'>;

/**
 * Whether an agent could write the verdict on its work: its processes run on beside the tests in its sandbox, and it is root there, or
 * the tests look for programs in a directory that it can write. The PATH of a named image is not known here: its verdicts are flagged.
 */
export const isForgeable = (task: Forged): boolean =>
  task.gradedIn === 'same' && task.keepProcesses && (task.description.user === 'root' || findsProgramsOfAgent(task));

function findsProgramsOfAgent(task: Forged): boolean {
  const places = [task.description.workdir, '/home/agent', '/tmp'];
  const isOwn = (directory: string): boolean =>
    !/^[/$]/.test(directory) || places.some((place) => directory === place || directory.startsWith(`${place}/`));
  return pathOfTests(task)?.split(':').some(isOwn) ?? false;
}

/** Throws UnsupportedTask if a set has tasks whose verdict an agent could write: a policy would learn to write it. */
export function requireUnforgeable(
  set: TaskSetAddress,
  { tasks: all, forgeable: found }: { readonly tasks: number; readonly forgeable: readonly string[] },
): void {
  const [example] = found;
  if (example === undefined) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `${set}: in ${found.length} of ${all} tasks, for example ${example}, the agent could write its own reward, since its processes run on in the sandbox of its tests ([grading] sandbox = "same" and keep_processes = true), and it is root there ([agent] user = "root") or can write in a directory of the PATH by which the tests find their programs; a policy would learn that; let the tests run in another sandbox (sandbox = "snapshot" or "fresh"), end the agent's processes (keep_processes = false), give the agent an account of its own and the tests a PATH without its directories, or name tasks without these; temper eval and temper rollout take them, and flag each result as forgeable`,
  );
}

/** Whether tasks of a set may be forgeable, as far as that is known without reading them. */
export function mayBeForgeable(set: TaskSetAddress): boolean {
  const parsed = parseSetAddress(set);
  if (parsed.kind === 'generated') return false;
  const format: DataSetFormat | null = parsed.kind === 'data-set' ? dataSetFormats[parsed.format] : null;
  return format === null || format.mayKeepProcesses === true;
}
