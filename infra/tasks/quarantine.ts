import { z } from 'zod';
import { sha256 } from '../store/files.ts';
import type { Records } from '../store/records.ts';

/** An evaluation whose reward differs from that of another evaluation of the same diff. */
const evidence = z.object({
  /** The workflow id of the rollout. */
  rollout: z.string(),
  reward: z.number().nullable(),
  /** A one-line summary of the verdict. */
  verdict: z.string().nullable(),
  /** Digests of the diff and of the tests' log in the store. */
  diff: z.string(),
  log: z.string().nullable(),
});
export type FlakyEvidence = z.output<typeof evidence>;

const entry = z.object({
  task: z.string(),
  /** The addresses by which the task may be chosen: the one it was found by, and that of its bundle. */
  addresses: z.array(z.string()).min(1).readonly(),
  /** Milliseconds since the epoch. */
  since: z.number(),
  evidence: z.array(evidence).min(1).readonly(),
  /** The regrade that quarantined the task. The same regrade must not do so again after the task was released. */
  by: z.string().optional(),
  /** Whether a user released the task. The evidence is kept. */
  released: z.boolean(),
});
export type Quarantined = z.output<typeof entry>;

/** Tasks with flaky tests. They are skipped when tasks are chosen, until a user releases them. */
export interface Quarantine {
  /** Quarantines a task, unless the same `by` did so before: then a user may have released the task. */
  add(task: Omit<Quarantined, 'since' | 'released'>): Promise<void>;
  /** Releases the tasks with this id or address, and returns their number. */
  release(named: string): Promise<number>;
  /** The quarantined tasks, each under every one of its addresses. */
  byAddress(): Promise<ReadonlyMap<string, Quarantined>>;
}

const folder = 'quarantine';

/** Creates a quarantine that keeps one record per task in the folder `quarantine`. */
export function createQuarantine(records: Records): Quarantine {
  const nameOf = ({ addresses }: Pick<Quarantined, 'addresses'>): string => sha256(addresses.join('\n'));
  const all = async (): Promise<readonly Quarantined[]> =>
    Promise.all((await records.names(folder)).map(async (name) => entry.parse(await records.read(folder, name))));
  const current = async (): Promise<readonly Quarantined[]> => (await all()).filter(({ released }) => !released);
  return {
    async add(task) {
      await records.update(folder, nameOf(task), (found) => {
        const before = entry.safeParse(found).data;
        if (task.by !== undefined && before?.by === task.by) return undefined;
        return { ...task, since: Date.now(), released: false };
      });
    },
    async release(named) {
      const found = (await current()).filter(({ task, addresses }) => task === named || addresses.includes(named));
      for (const one of found) {
        await records.update(folder, nameOf(one), (value) => ({ ...entry.parse(value), released: true }));
      }
      return found.length;
    },
    async byAddress() {
      return new Map((await current()).flatMap((one) => one.addresses.map((address) => [address, one] as const)));
    },
  };
}

/** Returns the evaluations of every diff whose evaluations disagree. */
export function disagreeing(evaluations: readonly FlakyEvidence[]): readonly FlakyEvidence[] {
  const byDiff = Map.groupBy(evaluations, ({ diff }) => diff);
  return [...byDiff.values()].filter((same) => new Set(same.map(({ reward }) => reward)).size > 1).flat();
}
