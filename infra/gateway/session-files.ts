import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TraceSummary } from '../../workflows/contracts/trace.ts';
import { writeOnce } from '../store/files.ts';
import type { OpenSession } from './control.ts';
import { type LoadedJournal, loadJournal, newJournal } from './journal.ts';

/** What is on disk of sessions: `<session>.jsonl` until it is sealed, `<session>.sealed.json` from then on. */
export interface SessionFiles {
  load(id: string): Promise<(LoadedJournal & { readonly opened: OpenSession }) | null>;
  create(session: OpenSession): Promise<LoadedJournal>;
  findSealed(id: string): Promise<SealedSession | null>;
  /** The journal is of no more use once the seal is written. */
  seal(id: string, summary: TraceSummary): Promise<void>;
  /** Removes what was last written before that time. */
  sweep(before: number, keep: (id: string) => boolean): Promise<void>;
}

export interface SealedSession {
  readonly sealed: { readonly summary: TraceSummary; readonly at: number };
}

export function createSessionFiles(dir: string): SessionFiles {
  const journalPath = (id: string): string => join(dir, `${checkedId(id)}.jsonl`);
  const sealPath = (id: string): string => join(dir, `${checkedId(id)}.sealed.json`);
  return {
    async load(id) {
      const loaded = await loadJournal(journalPath(id));
      const first = loaded?.records[0];
      if (loaded === null || first === undefined) return null;
      if (first.kind === 'open') return { ...loaded, opened: first.session };
      throw new TemperFailure(
        'StoreUnavailable',
        `${journalPath(id)} does not begin with its session; restore the file`,
      );
    },
    create: (session) => newJournal(journalPath(session.session), { kind: 'open', session, at: Date.now() }),
    async findSealed(id) {
      const text = await readFile(sealPath(id), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw new TemperFailure('StoreUnavailable', `can't read ${sealPath(id)}: ${error.message}`, { cause: error });
      });
      return text === null ? null : { sealed: JSON.parse(text) as SealedSession['sealed'] };
    },
    async seal(id, summary) {
      await writeOnce(sealPath(id), JSON.stringify({ summary, at: Date.now() }), 0o600);
      await rm(journalPath(id), { force: true });
    },
    async sweep(before, keep) {
      for (const name of await readdir(dir)) {
        const path = join(dir, name);
        if (keep(name.replace(/\.(jsonl|sealed\.json|group)$/, ''))) continue;
        // A file that is gone by now was swept or sealed by somebody else.
        const changedAt = await stat(path).then(
          ({ mtimeMs }) => mtimeMs,
          () => before,
        );
        if (changedAt < before) await rm(path, { force: true });
      }
    },
  };
}

/** Ids become file names; they come from our own workers, and from secrets with a right signature. */
function checkedId(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,150}$/.test(id)) return id;
  throw new TemperFailure(
    'InvalidInput',
    `expected a session id of letters, digits, ".", "_" and "-", got ${JSON.stringify(id)}`,
  );
}
