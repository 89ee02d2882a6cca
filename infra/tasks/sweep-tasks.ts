import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { SweepInput } from '../../workflows/contracts/sweep.ts';
import type { TaskAddress } from '../../workflows/contracts/task.ts';
import { createRandom } from '../random.ts';
import type { Quarantine } from './quarantine.ts';
import type { Tasks } from './tasks.ts';

/** The tasks of a sweep. */
export interface SweepTasks {
  readonly addresses: readonly TaskAddress[];
  /** The chosen tasks that are quarantined, so that the sweep does not attempt them. */
  readonly quarantined: readonly TaskAddress[];
}

/** Chooses the tasks of a sweep: the first ones of its set, or a sample that its seed decides. Throws UnknownTask if there are none. */
export async function chooseSweepTasks(
  {
    tasks,
    quarantine,
  }: { readonly tasks: Pick<Tasks, 'first' | 'list'>; readonly quarantine: Pick<Quarantine, 'byAddress'> },
  input: Pick<SweepInput, 'tasks' | 'pick' | 'seed' | 'count'>,
): Promise<SweepTasks> {
  const chosen =
    input.pick === 'first'
      ? await tasks.first(input.tasks, input.count)
      : createRandom(`${input.tasks}#${input.seed}`)
          .shuffle(await tasks.list(input.tasks))
          .slice(0, input.count);
  const known = await quarantine.byAddress();
  const addresses = chosen.filter((address) => !known.has(address));
  const quarantined = chosen.filter((address) => known.has(address));
  if (addresses.length > 0) return { addresses, quarantined };
  const but = quarantined.length === 0 ? '' : ` but ${quarantined.length} that are quarantined`;
  throw new TemperFailure('UnknownTask', `${input.tasks}: expected tasks, got none${but}`);
}
