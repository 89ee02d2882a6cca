import { type Costs, costTable } from '../../../infra/report/cost-table.ts';
import { table } from './output.ts';

/** Formats what a run or sweep cost. Costs are null where none were counted. */
export function costText(costs: Costs | null): string {
  if (costs === null) return 'cost: unknown';
  const made = costTable(costs);
  if (made === null) return 'cost: no rollout has ended yet';
  return [table(made.head, made.rows), ...made.notes].join('\n');
}
