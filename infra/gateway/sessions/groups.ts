import { createHash } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

/** The sessions of each group: one small file per group, so that finding them does not read all sessions. */
export interface Groups {
  add(group: string, session: string): Promise<void>;
  sessionsOf(group: string): Promise<readonly string[]>;
}

export function createGroups(dir: string): Groups {
  const pathOf = (group: string): string =>
    join(dir, `${createHash('sha256').update(group).digest('hex').slice(0, 32)}.group`);
  return {
    add: (group, session) => appendFile(pathOf(group), `${session}\n`),
    async sessionsOf(group) {
      const text = await readFile(pathOf(group), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return '';
        throw new TemperFailure('StoreUnavailable', `can't read ${pathOf(group)}: ${error.message}`, { cause: error });
      });
      return [...new Set(text.split('\n').filter((line) => line !== ''))];
    },
  };
}
