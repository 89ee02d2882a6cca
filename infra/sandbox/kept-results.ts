import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RolloutEpoch } from '../../workflows/contracts/ids.ts';

/**
 * The results of agents whose sandboxes are removed before the server has the result: without them, an activity attempt after
 * a worker's death would find neither the sandbox nor what was captured in it. Each is a file of this host.
 */
export interface KeptResults<Result extends object> {
  /** Returns the result of an epoch's agent; null if none is kept. */
  find(epoch: RolloutEpoch): Promise<Result | null>;
  keep(epoch: RolloutEpoch, result: Result): Promise<void>;
  /** Returns the epochs whose results are at least this old. */
  list(minAgeMs: number): Promise<readonly RolloutEpoch[]>;
  /** Removes a result. Repeatable. */
  remove(epoch: RolloutEpoch): Promise<void>;
}

export function createKeptResults<Result extends object>(directory: string): KeptResults<Result> {
  const fileOf = (epoch: RolloutEpoch): string => join(directory, nameOf(epoch));

  return {
    async find(epoch) {
      const text = await readFile(fileOf(epoch), 'utf8').catch(absent);
      return text === null ? null : (JSON.parse(text) as Result);
    },
    async keep(epoch, result) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = `${fileOf(epoch)}.new`;
      await writeFile(draft, JSON.stringify(result), { mode: 0o600 });
      await rename(draft, fileOf(epoch));
    },
    async list(minAgeMs) {
      const newest = Date.now() - minAgeMs;
      const old: RolloutEpoch[] = [];
      for (const name of (await readdir(directory).catch(absent)) ?? []) {
        const found = await stat(join(directory, name)).catch(absent);
        const epoch = epochOf(name);
        if (found !== null && found.mtimeMs <= newest && epoch !== null) old.push(epoch);
      }
      return old;
    },
    async remove(epoch) {
      await rm(fileOf(epoch), { force: true });
    },
  };
}

const nameOf = ({ rollout, epoch }: RolloutEpoch): string => `${rollout}.${epoch}.json`;

/** Reads the name of a file; null if it is a draft that a killed process has left, which its next attempt replaces. */
function epochOf(name: string): RolloutEpoch | null {
  const [, rollout, epoch] = /^(.+)\.(\d+)\.json$/.exec(name) ?? [];
  return rollout === undefined ? null : { rollout, epoch: Number(epoch) };
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
