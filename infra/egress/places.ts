import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type NetworkPhase, networkPhases } from '../../workflows/contracts/network.ts';
import { sha256 } from '../store/files.ts';
import { type EgressRow, parseRows } from './rows.ts';

/**
 * The files of this host for sandboxes with a network, by the sandbox's name. Each has a directory for the socket of its proxy,
 * which is mounted into it and holds nothing else, and beside it the record of each phase.
 */
export interface EgressPlaces {
  /** Makes the directory of a sandbox. Repeatable. */
  make(sandbox: string): Promise<string>;
  /** Returns the path of the socket in that directory. */
  socketOf(sandbox: string): string;
  /** Returns what an earlier process has recorded of a phase; empty if none has. */
  recorded(sandbox: string, phase: NetworkPhase): Promise<readonly EgressRow[]>;
  record(sandbox: string, phase: NetworkPhase, rows: readonly EgressRow[]): Promise<void>;
  /** Removes everything of a sandbox. Repeatable. */
  remove(sandbox: string): Promise<void>;
  /** Removes what is older than a time, except that of the named sandboxes. */
  clear(kept: readonly string[], olderThanMs: number): Promise<void>;
}

/** The name of the socket in the directory of a sandbox. */
const socketName = 'egress';

export function createEgressPlaces(root: string): EgressPlaces {
  const directoryOf = (sandbox: string): string => join(root, keyOf(sandbox));
  const recordOf = (sandbox: string, phase: NetworkPhase): string => `${directoryOf(sandbox)}.${phase}.json`;

  return {
    async make(sandbox) {
      // Users other than the stack's may enter a directory that is named to them, and list none.
      await mkdir(root, { recursive: true, mode: 0o711 });
      await mkdir(directoryOf(sandbox), { recursive: true, mode: 0o755 });
      return directoryOf(sandbox);
    },
    socketOf: (sandbox) => join(directoryOf(sandbox), socketName),
    async recorded(sandbox, phase) {
      const text = await readFile(recordOf(sandbox, phase), 'utf8').catch(absent);
      if (text === null) return [];
      try {
        return parseRows(text);
      } catch {
        // A power cut has torn the file, which is not synced: it is written each second, and that may lose as much.
        return [];
      }
    },
    async record(sandbox, phase, rows) {
      await mkdir(root, { recursive: true, mode: 0o711 });
      const draft = `${recordOf(sandbox, phase)}.new`;
      await writeFile(draft, JSON.stringify(rows), { mode: 0o600 });
      await rename(draft, recordOf(sandbox, phase));
    },
    async remove(sandbox) {
      const records = networkPhases.map((phase) => recordOf(sandbox, phase));
      const all = [directoryOf(sandbox), ...records, ...records.map((record) => `${record}.new`)];
      await Promise.all(all.map((path) => rm(path, { recursive: true, force: true })));
    },
    async clear(kept, olderThanMs) {
      const keys = new Set(kept.map(keyOf));
      const names = (await readdir(root).catch(absent)) ?? [];
      for (const name of names.filter((name) => !keys.has(name.split('.')[0] ?? ''))) {
        const found = await stat(join(root, name)).catch(absent);
        if (found !== null && found.mtimeMs < olderThanMs) await rm(join(root, name), { recursive: true, force: true });
      }
    },
  };
}

/** Short, since the path of a socket has at most 107 bytes. */
const keyOf = (sandbox: string): string => sha256(sandbox).slice(0, 16);

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
