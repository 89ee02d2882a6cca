import type { Quarantined } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** The number of skipped tasks in the answer, which is stored in workflow history. */
const namedPassedOver = 8;

/** The tasks of a set that no group gets. */
export interface TasksToSkip {
  readonly quarantined: ReadonlyMap<string, Quarantined>;
  /** The tasks that lack a network, in a run that leaves them out. */
  readonly lacking: readonly string[];
}

/**
 * Chooses the task of a run's index-th group. Quarantined tasks are skipped, and those before the chosen one are named. It is
 * a pure function of set, seed, index and quarantine, so that a retry on another worker or after a continue-as-new chooses
 * the same task. A task that was chosen stays chosen when the quarantine changes.
 */
export async function chooseTask(
  tasks: Pick<Tasks, 'choose'>,
  { quarantined, lacking }: TasksToSkip,
  { tasks: set, seed, index }: { readonly tasks: string; readonly seed: number; readonly index: number },
) {
  const choice = await tasks.choose({ set, seed, index, leftOut: new Set([...quarantined.keys(), ...lacking]) });
  if (choice === null) {
    const but = lacking.length === 0 ? '' : ' and has the network that it needs';
    const text = `${set}: expected a task that is not quarantined${but}, got none; see \`temper tasks check\`, \`temper tasks ls\`, and \`temper tasks release\``;
    throw new TemperFailure('UnknownTask', text);
  }
  const { address } = choice;
  const passedOver = choice.passedOver.filter((one) => quarantined.has(one));
  return { address, ...(passedOver.length > 0 && { passedOver: passedOver.slice(0, namedPassedOver) }) };
}
