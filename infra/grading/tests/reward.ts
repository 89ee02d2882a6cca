import { z } from 'zod';
import { weightedReward } from '../../../workflows/algorithms/weighted-reward.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { isRecord } from '../../is-record.ts';
import { FileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

type Weights = Readonly<Record<string, number>>;

const rewardBytes = 64 * 1024;

/** Reads the reward that the tests wrote; null if there is none. Throws InvalidReward. */
export async function readReward(
  sandbox: Pick<Sandbox, 'readFile'>,
  weights: Weights | null,
  signal: AbortSignal,
): Promise<number | null> {
  for (const file of ['reward.txt', 'reward.json'] as const) {
    if (weights !== null && file === 'reward.txt') continue;
    try {
      const content = (await sandbox.readFile(`/logs/verifier/${file}`, rewardBytes, signal)).toString('utf8');
      return weights === null ? parseReward(file, content) : weightedReward(parseScores(content), weights);
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      // Only the code under test can have put a directory, a pipe or a link there: there is no reward.
      if (error.reason !== 'missing') return null;
    }
  }
  return null;
}

/**
 * Parses a reward: the number in `reward.txt`, or in `reward.json` the member `reward` or the only member. Several scores
 * without weights are no reward. Only a finite number in [0, 1] counts, since `nan` must not pass a comparison.
 * Throws InvalidReward.
 */
export function parseReward(file: 'reward.txt' | 'reward.json', content: string): number {
  const text = content.trim();
  const value = file === 'reward.txt' ? Number(text === '' ? Number.NaN : text) : numberIn(text);
  if (Number.isFinite(value) && value >= 0 && value <= 1) return value;
  const shown = JSON.stringify(text.slice(0, 80));
  throw new TemperFailure('InvalidReward', `/logs/verifier/${file}: expected one number from 0 to 1, got ${shown}`);
}

function numberIn(text: string): number {
  const parsed = parseJson(text);
  const value = isRecord(parsed) ? (parsed.reward ?? onlyValue(parsed)) : parsed;
  return typeof value === 'number' ? value : Number.NaN;
}

function onlyValue(rewards: Readonly<Record<string, unknown>>): unknown {
  const values = Object.values(rewards);
  return values.length === 1 ? values[0] : undefined;
}

const scoresSchema = z.record(z.string(), z.number().min(0).max(1));

/** Parses a `reward.json` of several named scores, each from 0 to 1. Throws InvalidReward. */
export function parseScores(content: string): Readonly<Record<string, number>> {
  const scores = scoresSchema.safeParse(parseJson(content));
  if (scores.success) return scores.data;
  const shown = JSON.stringify(content.trim().slice(0, 80));
  throw new TemperFailure('InvalidReward', `reward.json: expected named numbers from 0 to 1, got ${shown}`);
}

/** Returns undefined for text that is not valid JSON, which no schema here accepts. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
