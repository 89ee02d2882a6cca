import type { Quarantined } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** The number of skipped tasks in the answer, which is stored in workflow history. */
const namedPassedOver = 8;

/**
 * Chooses the task of a run's index-th group. Quarantined tasks are skipped, and those before the chosen one are named. It is
 * a pure function of set, seed, index and quarantine, so that a retry on another worker or after a continue-as-new chooses
 * the same task. A task that was chosen stays chosen when the quarantine changes.
 */
export async function chooseTask(
  tasks: Pick<Tasks, 'choose'>,
  quarantined: ReadonlyMap<string, Quarantined>,
  { tasks: set, seed, index }: { readonly tasks: string; readonly seed: number; readonly index: number },
) {
  const choice = await tasks.choose({ set, seed, index, leftOut: new Set(quarantined.keys()) });
  if (choice === null) {
    const text = `${set}: expected a task that is not quarantined, got none; see \`temper tasks ls\`, and \`temper tasks release\``;
    throw new TemperFailure('UnknownTask', text);
  }
  const { address, passedOver } = choice;
  return { address, ...(passedOver.length > 0 && { passedOver: passedOver.slice(0, namedPassedOver) }) };
}
