import { InvalidArgumentError } from 'commander';
import { type BudgetChange, budgetChange, budgetLimits, limitNames } from '../../../workflows/contracts/budget.ts';
import type { RunStatus } from '../../../workflows/contracts/run.ts';
import { table } from './output.ts';

/** The powers of ten by their suffixes. */
const exponents: Readonly<Record<string, number>> = { '': 0, k: 3, M: 6, G: 9 };
const names = budgetLimits.map((limit) => limitNames[limit]).join(', ');
const form = `Expected limits such as rollouts=1000,tokens=2M, whose names are ${names}.`;

/** Parses limits of a budget, `rollouts=1000,tokens=2M,sandbox-hours=40,wall-hours=8`; `none` removes one. */
export function parseBudget(text: string): BudgetChange {
  const change: Record<string, number | null> = {};
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=');
    const limit = budgetLimits.find((one) => limitNames[one] === name.trim());
    if (limit === undefined || limit in change) throw new InvalidArgumentError(`${form} Got ${part}.`);
    change[limit] = value.trim() === 'none' ? null : amountOf(part, value.trim());
  }
  const parsed = budgetChange.safeParse(change);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: [at], message }) => {
    const limit = budgetLimits.find((one) => one === at);
    return `${limit === undefined ? String(at) : limitNames[limit]}: ${message}`;
  });
  throw new InvalidArgumentError(problems.join('; '));
}

function amountOf(part: string, value: string): number {
  const [, number, suffix = ''] = /^(\d+(?:\.\d+)?)([kMG]?)$/.exec(value) ?? [];
  const exponent = exponents[suffix];
  if (number === undefined || exponent === undefined) throw new InvalidArgumentError(`${form} Got ${part}.`);
  // A product is off by a hair: 8.2 * 1e6 is no whole number.
  return Number(`${number}e${exponent}`);
}

/** Formats the limits of a budget and what is used of them. */
export function budgetText(budget: RunStatus['budget']): string {
  const figure = (value: number): string => String(Math.round(value * 1000) / 1000);
  const rows = budgetLimits.map((limit) => {
    const of = budget.limits[limit];
    return [limitNames[limit], figure(budget.used[limit]), of === undefined ? 'no limit' : figure(of)];
  });
  return table(['budget', 'used', 'limit'], rows);
}
