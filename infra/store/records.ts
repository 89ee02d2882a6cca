import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { touch } from '../process/touch.ts';
import { writeOnce } from './files.ts';

/** Named JSON documents of a run, such as `group-12` and `step-3`. Workflow history only has their names. */
export interface Records {
  /** Writes a record, replacing one of the same name as a whole. */
  write(runKey: string, name: string, value: unknown): Promise<void>;
  read(runKey: string, name: string): Promise<unknown>;
  /** Reads a record; null if it does not exist. */
  find(runKey: string, name: string): Promise<unknown>;
  /** Makes a record's time of change now, for records that retention removes when they are not used. */
  renew(runKey: string, name: string): Promise<void>;
  names(runKey: string): Promise<readonly string[]>;
}

export function createRecords(root: string): Records {
  const pathOf = (runKey: string, name: string): string => {
    for (const part of [runKey, name]) {
      if (!/^[a-zA-Z0-9._-]{1,100}$/.test(part) || part.startsWith('.')) {
        throw new TemperFailure(
          'BlobMissing',
          `expected a record's name of letters, digits, '.', '_', '-', got ${JSON.stringify(part)}`,
        );
      }
    }
    return join(root, runKey, `${name}.json`);
  };

  const find = async (runKey: string, name: string): Promise<unknown> => {
    const bytes = await readFile(pathOf(runKey, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw new TemperFailure('StoreUnavailable', `cannot read record ${name} of ${runKey}: ${error.message}`, {
        cause: error,
      });
    });
    return bytes === null ? null : JSON.parse(bytes);
  };

  return {
    write: (runKey, name, value) => writeOnce(pathOf(runKey, name), JSON.stringify(value)),
    find,
    read: async (runKey, name) => {
      const value = await find(runKey, name);
      if (value === null) throw new TemperFailure('BlobMissing', `run ${runKey} has no record ${name} below ${root}`);
      return value;
    },
    renew: async (runKey, name) => {
      await touch(pathOf(runKey, name));
    },
    names: async (runKey) => {
      const files = await readdir(join(root, runKey)).catch(() => []);
      return files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
    },
  };
}
