import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetFormat } from '../data-sets/data-set.ts';
import { dataSetFormats } from '../data-sets/formats/index.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import { parseSetAddress } from './address.ts';

/**
 * Whether an agent could write the verdict on its work: it is root in the sandbox of its tests, where its processes run on beside
 * them.
 */
export const isForgeable = ({
  gradedIn,
  keepProcesses,
  description,
}: Pick<HarborTask, 'gradedIn' | 'keepProcesses' | 'description'>): boolean =>
  gradedIn === 'same' && keepProcesses && description.user === 'root';

/** Throws UnsupportedTask if a set has tasks whose verdict an agent could write: a policy would learn to write it. */
export function requireUnforgeable(
  set: TaskSetAddress,
  { tasks: all, forgeable: found }: { readonly tasks: number; readonly forgeable: readonly string[] },
): void {
  const [example] = found;
  if (example === undefined) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `${set}: in ${found.length} of ${all} tasks, for example ${example}, the agent could write its own reward, since it is root and its processes run on in the sandbox of its tests ([agent] user = "root", [grading] sandbox = "same" and keep_processes = true), and a policy would learn that; let the tests run in another sandbox (sandbox = "snapshot" or "fresh"), end the agent's processes (keep_processes = false), give the agent an account of its own, or name tasks without these; temper eval and temper rollout take them, and flag each result as forgeable`,
  );
}

/** Whether tasks of a set may be forgeable, as far as that is known without reading them. */
export function mayBeForgeable(set: TaskSetAddress): boolean {
  const parsed = parseSetAddress(set);
  if (parsed.kind === 'generated') return false;
  const format: DataSetFormat | null = parsed.kind === 'data-set' ? dataSetFormats[parsed.format] : null;
  return format === null || format.mayKeepProcesses === true;
}
