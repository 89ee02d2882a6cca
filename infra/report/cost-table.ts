import { totalOf } from '../../workflows/algorithms/cost.ts';
import type { CostSum, Ledger } from '../../workflows/contracts/cost.ts';
import { type Outcome, outcomes } from '../../workflows/contracts/outcome.ts';
import { defaultPool } from '../../workflows/contracts/policy.ts';
import { addMoney, type Money, type Prices, priceOf, priceOfTrainer, type Sampler } from './prices.ts';

/** The cost of a run, sweep or regrade, with what is needed to price it. */
export interface Costs {
  readonly rollouts: Ledger;
  /** Absent for sweeps and regrades, which use no trainer; null if it is unknown. */
  readonly trainerSeconds?: number | null;
  readonly sampler: Sampler;
  readonly prices: Prices | null;
}

/** The cost of a sweep or a regrade. */
export function costsOfLedger(
  ledger: Ledger,
  { pool = defaultPool, upstream }: { readonly pool?: string; readonly upstream?: { readonly name: string } },
  prices: Prices | null,
): Costs {
  return { rollouts: ledger, sampler: upstream === undefined ? { pool } : { upstream: upstream.name }, prices };
}

/** A cost as a table of text: the same for the terminal and for the page. */
export interface CostTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Explanations of what the table cannot say. */
  readonly notes: readonly string[];
}

/** The amounts of a cost, as `--json` prints them. */
export interface MoneyFacts {
  readonly currency: string;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  /** Null if the time of the trainer is unknown. */
  readonly trainer: number | null;
  readonly total: number;
  /** The kinds of use without a price, which are in no amount. */
  readonly without: readonly string[];
}

/** Returns the amounts; null without a price table. */
export function moneyOf({ rollouts, trainerSeconds = 0, sampler, prices }: Costs): MoneyFacts | null {
  if (prices === null) return null;
  const trainer = trainerSeconds === null ? null : priceOfTrainer(trainerSeconds, prices);
  const total = addMoney([priceOf(totalOf(rollouts), sampler, prices), ...(trainer === null ? [] : [trainer])]);
  const byOutcome = linesOf(rollouts).map(([outcome, sum]) => [outcome, priceOf(sum, sampler, prices).amount]);
  return {
    currency: prices.currency,
    outcomes: Object.fromEntries(byOutcome),
    trainer: trainer?.amount ?? null,
    total: total.amount,
    without: total.without,
  };
}

/** Formats the amount of a cost in one line; null without a price table. */
export function moneyText(costs: Costs): string | null {
  const money = moneyOf(costs);
  if (money === null) return null;
  const { scored: _, ...thrownAway } = money.outcomes;
  const lost = Object.values(thrownAway).reduce((sum, one) => sum + one, 0);
  const atLeast = totalOf(costs.rollouts).unknown > 0 ? '≥ ' : '';
  const rest = lost === 0 ? '' : `, ${decimals(lost)} of it thrown away`;
  return `${atLeast}${text({ amount: money.total, without: atLeast === '' ? money.without : [] })} ${money.currency}${rest}`;
}

/** Formats a cost, an outcome a line. Null while no rollout has ended. */
export function costTable(costs: Costs): CostTable | null {
  const { rollouts, trainerSeconds, sampler, prices } = costs;
  const lines = linesOf(rollouts);
  if (lines.length === 0) return null;
  const withTrainer = trainerSeconds !== undefined;
  const trainerTime = trainerSeconds === null ? 'unknown' : duration(trainerSeconds ?? 0);
  const trainerPrice = prices === null ? null : priceOfTrainer(trainerSeconds ?? 0, prices);
  const row = (name: string, sum: CostSum, trainer: string, more: readonly Money[] = []): readonly string[] => {
    const money = prices === null ? null : addMoney([priceOf(sum, sampler, prices), ...more]);
    const atLeast = trainer === 'unknown';
    return [name, ...cellsOf(sum), ...(withTrainer ? [trainer] : []), ...moneyCell(money, sum, atLeast)];
  };
  const total = totalOf(rollouts);
  const trainerRow =
    withTrainer && trainerPrice !== null
      ? [['training', '', '', '', '', '', '', trainerTime, trainerSeconds === null ? 'unknown' : text(trainerPrice)]]
      : withTrainer
        ? [['training', '', '', '', '', '', '', trainerTime]]
        : [];
  return {
    head: [
      'cost',
      'rollouts',
      'tokens in',
      'tokens out',
      'engine',
      'sandbox',
      'evaluation',
      ...(withTrainer ? ['trainer'] : []),
      ...(prices === null ? [] : [prices.currency]),
    ],
    rows: [
      ...lines.map(([outcome, sum]) => row(outcome === 'scored' ? outcome : `${outcome}, thrown away`, sum, '')),
      ...trainerRow,
      row('total', total, withTrainer ? trainerTime : '', trainerPrice === null ? [] : [trainerPrice]),
    ],
    notes: notesOf(costs, total),
  };
}

const linesOf = (ledger: Ledger): readonly (readonly [Outcome, CostSum])[] =>
  outcomes.flatMap((outcome) => {
    const sum = ledger[outcome];
    return sum === undefined ? [] : [[outcome, sum] as const];
  });

function cellsOf(sum: CostSum): readonly string[] {
  const cell = (value: string): string =>
    sum.unknown === 0 ? value : sum.unknown === sum.rollouts && isEmpty(sum) ? 'unknown' : `≥ ${value}`;
  const sandboxes = Object.entries(sum.sandboxSeconds).map(([provider, seconds]) => `${provider} ${duration(seconds)}`);
  return [
    String(sum.rollouts),
    cell(sum.promptTokens.toLocaleString('en')),
    cell(sum.sampledTokens.toLocaleString('en')),
    cell(duration(sum.engineSeconds)),
    cell(sandboxes.join(', ') || duration(0)),
    cell(duration(sum.evaluationSeconds)),
  ];
}

const isEmpty = ({ promptTokens, sandboxSeconds, evaluationSeconds }: CostSum): boolean =>
  promptTokens === 0 && evaluationSeconds === 0 && Object.keys(sandboxSeconds).length === 0;

function moneyCell(money: Money | null, sum: CostSum, atLeast: boolean): readonly string[] {
  if (money === null) return [];
  if (sum.unknown === sum.rollouts && isEmpty(sum)) return ['unknown'];
  return [sum.unknown > 0 || atLeast ? `≥ ${text({ ...money, without: [] })}` : text(money)];
}

const text = ({ amount, without }: Money): string => `${without.length > 0 ? '≥ ' : ''}${decimals(amount)}`;

const decimals = (amount: number): string => amount.toFixed(amount === 0 || amount >= 1 ? 2 : 4);

function notesOf(costs: Costs, { unknown }: CostSum): readonly string[] {
  const without = moneyOf(costs)?.without ?? [];
  return [
    ...(unknown === 0
      ? []
      : [`the cost of ${unknown} ${unknown === 1 ? 'rollout' : 'rollouts'} is not known, or not all of it`]),
    ...(without.length === 0 ? [] : [`the price table has no price for: ${without.join(', ')}`]),
  ];
}

/** Formats seconds: `4.2 s`, `12.5 min`, `3.1 h`. */
function duration(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
