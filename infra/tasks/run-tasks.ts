import type { TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import { isForgeable, mayBeForgeable } from './forgeable.ts';
import { type GivenNetwork, type Lacking, lackOf, mayLack } from './lacking-network.ts';
import { allBut, lookAtTasks } from './look-at-tasks.ts';
import type { Tasks } from './tasks.ts';

/** The tasks of a set for which a run is refused. */
export interface RunTasks extends Lacking {
  /** The ids of the tasks whose verdict an agent could write. */
  readonly forgeable: readonly string[];
}

/** Looks at the tasks of a run's set, apart from those that it does not choose. It reads each task once, unless none can be refused. */
export async function lookAtRunTasks(
  tasks: Pick<Tasks, 'scan'>,
  set: TaskSetAddress,
  { skipped, ...given }: GivenNetwork & { readonly skipped: ReadonlySet<TaskAddress> },
  signal: AbortSignal,
): Promise<RunTasks> {
  if (!mayLack(set, given) && !mayBeForgeable(set)) return { tasks: 0, lacking: [], forgeable: [] };
  const seen = await lookAtTasks(
    allBut(tasks.scan(set), skipped),
    (task, { id, address }) => ({ id, address, lack: lackOf(task.description, given), forgeable: isForgeable(task) }),
    signal,
  );
  return {
    tasks: seen.length,
    lacking: seen.flatMap(({ id, address, lack }) => (lack === undefined ? [] : [{ id, address, lack }])),
    forgeable: seen.flatMap(({ id, forgeable }) => (forgeable ? [id] : [])),
  };
}
