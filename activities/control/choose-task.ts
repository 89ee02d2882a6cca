import type { Quarantined } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** A set of which so many in a row are quarantined is not looked through any further. */
const mostPassedOver = 1000;

/** In the place of a quarantined task comes the next that is none; the answer names those that were passed over. */
export async function chooseTask(
  tasks: Pick<Tasks, 'taskAt'>,
  quarantined: ReadonlyMap<string, Quarantined>,
  { tasks: set, index }: { readonly tasks: string; readonly index: number },
) {
  const passedOver: string[] = [];
  while (passedOver.length < mostPassedOver) {
    const address = await tasks.taskAt(set, index + passedOver.length);
    if (!quarantined.has(address)) {
      return { address, ...(passedOver.length > 0 && { passedOver: [...new Set(passedOver)].slice(0, 8) }) };
    }
    passedOver.push(address);
  }
  throw new TemperFailure(
    'UnknownTask',
    `${set}: expected a task that is not quarantined, got ${mostPassedOver} in a row that are; see \`temper tasks ls\`, and \`temper tasks release\``,
  );
}
