import { z } from 'zod';
import { asReward } from '../../../workflows/algorithms/rounding.ts';
import { weightedReward } from '../../../workflows/algorithms/weighted-reward.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import { isRecord } from '../../is-record.ts';
import { FileRefused, isFileRefused } from '../../sandbox/failure.ts';
import type { FileTree } from '../../sandbox/file-tree.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';

type RewardFile = 'reward.txt' | 'reward.json';

const rewardBytes = 64 * 1024;

/** The reward that tests wrote, and the scores beside it that the task asks for. */
export type WrittenReward = Required<Pick<Verdict, 'value'>> & Pick<Verdict, 'scores'>;

/**
 * Reads the reward that the tests wrote; null if they wrote none. The number `reward` in `reward.json` comes first, as in Harbor,
 * then `reward.txt`, then any other number in `reward.json`. If the tests name `reward.txt` alone, that file comes first: the code
 * under test may have written a `reward.json`, which such tests do not replace, and whose scores never count. Throws
 * InvalidReward.
 */
export async function readReward(
  sandbox: Pick<Sandbox, 'readFile'>,
  { rewardWeights: weights, tests, keptScores }: Pick<GradedTask, 'rewardWeights' | 'tests' | 'keptScores'>,
  signal: AbortSignal,
): Promise<WrittenReward | null> {
  const read = (file: RewardFile) => readIfThere(sandbox, file, signal);
  try {
    const json = weights === null && nameTextAlone(tests) ? null : await read('reward.json');
    const value = await readValue(json, read, weights);
    if (value === null || keptScores.length === 0) return value === null ? null : { value };
    return { value, scores: json === null ? {} : scoresIn(json, keptScores) };
  } catch (error) {
    // Only the code under test can have put a directory, a pipe or a link there: there is no reward.
    if (error instanceof FileRefused) return null;
    throw error;
  }
}

/** Reads the reward from the files of the tests, of which one is known already, or is not to come first. */
async function readValue(
  json: string | null,
  read: (file: RewardFile) => Promise<string | null>,
  weights: GradedTask['rewardWeights'],
): Promise<number | null> {
  if (weights !== null) return json === null ? null : weightedReward(parseScores(json), weights);
  if (json !== null && hasReward(json)) return parseReward('reward.json', json);
  const text = await read('reward.txt');
  if (text !== null) return parseReward('reward.txt', text);
  const other = json ?? (await read('reward.json'));
  return other === null ? null : parseReward('reward.json', other);
}

/** Returns the finite numbers of these names. Harbor bounds them as little: they are compared, and pay nothing. */
function scoresIn(content: string, names: readonly string[]): Readonly<Record<string, number>> {
  const parsed = parseJson(content);
  if (!isRecord(parsed)) return {};
  const known = names.flatMap((name) => {
    const score = Object.hasOwn(parsed, name) ? parsed[name] : undefined;
    return typeof score === 'number' && Number.isFinite(score) ? [[name, score] as const] : [];
  });
  return Object.fromEntries(known);
}

async function readIfThere(
  sandbox: Pick<Sandbox, 'readFile'>,
  file: RewardFile,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    return (await sandbox.readFile(`/logs/verifier/${file}`, rewardBytes, signal)).toString('utf8');
  } catch (error) {
    if (isFileRefused(error, 'missing')) return null;
    throw error;
  }
}

/** Whether a file of the tests names `reward.txt` and no file of them names `reward.json`. */
function nameTextAlone(tests: FileTree): boolean {
  const name = (file: RewardFile): boolean =>
    [...tests.values()].some(({ bytes }) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(file));
  return name('reward.txt') && !name('reward.json');
}

function hasReward(content: string): boolean {
  const parsed = parseJson(content);
  return isRecord(parsed) && typeof parsed.reward === 'number';
}

/**
 * Parses a reward: the number in `reward.txt`, or in `reward.json` the member `reward` or the only member. Several scores
 * without weights are no reward. Only a finite number in [0, 1] counts, since `nan` must not pass a comparison.
 * Throws InvalidReward.
 */
export function parseReward(file: RewardFile, content: string): number {
  const text = content.trim();
  const value = asReward(file === 'reward.txt' ? Number(text === '' ? Number.NaN : text) : numberIn(text));
  if (value !== null) return value;
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

const scoresSchema = z.record(z.string(), z.number().transform(asReward).pipe(z.number()));

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
