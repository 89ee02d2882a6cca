import type { NetworkPhase } from '../../workflows/contracts/network.ts';
import type { EgressLimits } from './limits.ts';
import { type EgressDecision, EgressRefusedError } from './refused.ts';
import type { EgressRow } from './rows.ts';
import type { Target } from './target.ts';

type OpenRow = { -readonly [Key in keyof EgressRow]: EgressRow[Key] };

/** The record of one sandbox's proxy, and what it has left. */
export interface Ledger {
  /** Takes a place for one more request, which the returned function frees. Throws EgressRefusedError when none is left. */
  admit(): () => void;
  /** Records the decision on a request. Returns the function that adds the bytes of an allowed one. */
  decided(target: Target | null, decision: EgressDecision): AddBytes;
  /** Records a request that could not be read, which counts as one all the same. */
  unreadable(): void;
  rows(): readonly EgressRow[];
}

/** Adds bytes. Throws EgressRefusedError once the sandbox has had all that it gets. */
export type AddBytes = (bytes: { readonly bytesIn: number; readonly bytesOut: number }) => void;

/** Creates a ledger that continues the rows which an earlier process has recorded of the same phase. */
export function createLedger(phase: NetworkPhase, limits: EgressLimits, recorded: readonly EgressRow[] = []): Ledger {
  const rows = new Map<string, OpenRow>(recorded.map((row) => [keyOf(row, row.decision), { ...row }]));
  const sum = (value: (row: EgressRow) => number): number => recorded.reduce((all, row) => all + value(row), 0);
  const total = {
    open: 0,
    // What was refused for a limit was not admitted, or is in the row of its host as well.
    requests: sum(({ decision, requests }) => (decision === 'limit' ? 0 : requests)),
    bytesIn: sum(({ bytesIn }) => bytesIn),
    bytesOut: sum(({ bytesOut }) => bytesOut),
  };

  function rowOf(target: Target | null, decision: EgressDecision): OpenRow {
    const isNew = !rows.has(keyOf(target, decision));
    const { host, port } = (isNew && rows.size >= limits.rows ? null : target) ?? { host: '', port: 0 };
    const key = keyOf({ host, port }, decision);
    const row = rows.get(key) ?? { host, port, phase, decision, requests: 0, bytesIn: 0, bytesOut: 0 };
    rows.set(key, row);
    return row;
  }

  const isUsedUp = (): boolean => total.bytesIn > limits.bytesIn || total.bytesOut > limits.bytesOut;

  function decided(target: Target | null, decision: EgressDecision): AddBytes {
    const row = rowOf(target, decision);
    row.requests += 1;
    return ({ bytesIn, bytesOut }) => {
      for (const sum of [row, total]) {
        sum.bytesIn += bytesIn;
        sum.bytesOut += bytesOut;
      }
      if (isUsedUp()) throw new EgressRefusedError('limit');
    };
  }

  return {
    admit() {
      if (total.requests >= limits.requests || total.open >= limits.connections || isUsedUp()) {
        throw new EgressRefusedError('limit');
      }
      total.requests += 1;
      total.open += 1;
      return () => {
        total.open -= 1;
      };
    },
    decided,
    unreadable() {
      total.requests += 1;
      decided(null, 'bad-request');
    },
    rows: () => [...rows.values()].map((row) => ({ ...row })),
  };
}

const keyOf = (target: Target | null, decision: EgressDecision): string =>
  `${target?.host ?? ''}:${target?.port ?? 0} ${decision}`;
