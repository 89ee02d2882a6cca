import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RolloutEpoch } from '../../workflows/contracts/ids.ts';
import { makeDirectory } from '../process/durable-directory.ts';
import { replaceFile } from '../store/files.ts';

/**
 * The results of agents whose sandboxes are removed before the server has the result: without them, an activity attempt after
 * a worker's death or a power cut would find neither the sandbox nor what was captured in it. Each is a file of this host.
 */
export interface KeptResults<Result extends object> {
  /** Returns the result of an epoch's agent; null if none is kept, or if it is so old that its blobs may be gone. */
  find(epoch: RolloutEpoch): Promise<Result | null>;
  /** Keeps a result, durably: its sandbox may be removed once the call returns. */
  keep(epoch: RolloutEpoch, result: Result): Promise<void>;
  /** Returns the epochs whose results are at least this old, also those whose results a killed process has left unfinished. */
  list(minAgeMs: number): Promise<readonly KeptEpoch[]>;
  /** Removes a result, finished or not. Repeatable. */
  remove(epoch: RolloutEpoch): Promise<void>;
}

export interface KeptEpoch extends RolloutEpoch {
  readonly ageMs: number;
}

/**
 * Keeps results in a directory. Each is usable for `usableMs`: retention may remove the blobs that it names, because nothing at the
 * server refers to them yet.
 */
export function createKeptResults<Result extends object>(directory: string, usableMs: number): KeptResults<Result> {
  const fileOf = (epoch: RolloutEpoch): string => join(directory, nameOf(epoch));
  const ageOf = async (path: string): Promise<number | null> => {
    const found = await stat(path).catch(absent);
    // The time of a file has fractions of a millisecond, which the clock lacks, so that a new file may seem to be from the future.
    return found === null ? null : Math.max(0, Date.now() - found.mtimeMs);
  };

  return {
    async find(epoch) {
      const ageMs = await ageOf(fileOf(epoch));
      if (ageMs === null || ageMs > usableMs) return null;
      const text = await readFile(fileOf(epoch), 'utf8').catch(absent);
      return text === null ? null : parseWhole<Result>(text);
    },
    async keep(epoch, result) {
      await makeDirectory(directory, 0o700);
      await replaceFile(fileOf(epoch), JSON.stringify(result), 0o600);
    },
    async list(minAgeMs) {
      const old: KeptEpoch[] = [];
      for (const name of (await readdir(directory).catch(absent)) ?? []) {
        const ageMs = await ageOf(join(directory, name));
        const epoch = epochOf(name);
        if (ageMs !== null && ageMs >= minAgeMs && epoch !== null) old.push({ ...epoch, ageMs });
      }
      return old;
    },
    async remove(epoch) {
      const names = ((await readdir(directory).catch(absent)) ?? []).filter((name) => isOf(epoch, name));
      for (const name of names) await rm(join(directory, name), { force: true });
    },
  };
}

const nameOf = ({ rollout, epoch }: RolloutEpoch): string => `${rollout}.${epoch}.json`;

/** Reads the name of a result's file, or of a draft of it; null if it is neither. */
function epochOf(name: string): RolloutEpoch | null {
  const [, rollout, epoch] = /^(.+)\.(\d+)\.json(?:\.[0-9a-f]+\.tmp)?$/.exec(name) ?? [];
  return rollout === undefined ? null : { rollout, epoch: Number(epoch) };
}

function isOf({ rollout, epoch }: RolloutEpoch, name: string): boolean {
  const found = epochOf(name);
  return found?.rollout === rollout && found.epoch === epoch;
}

/** Parses a result; null if the file is empty or torn, which is no result: the epoch is repeated as without the file. */
function parseWhole<Result extends object>(text: string): Result | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? (value as Result | null) : null;
  } catch {
    return null;
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
