import type { Task } from '../contracts/task.ts';

type Networked = Pick<Task, 'testNetwork' | 'steps'>;

/** Returns a task whose tests have no network, whatever they need. */
export function withOfflineTests<Part extends Networked>({
  testNetwork: _,
  steps,
  ...task
}: Part): Omit<Part, keyof Networked> & Pick<Task, 'steps'> {
  return { ...task, ...(steps !== undefined && { steps: steps.map(({ testNetwork: __, ...step }) => step) }) };
}
