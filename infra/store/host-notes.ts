import { z } from 'zod';
import type { Records } from './records.ts';

const note = z.object({ text: z.string(), since: z.iso.datetime() });

/** One sentence of a host worker for its operator. */
export type HostNote = z.infer<typeof note>;

/**
 * The notes of host workers for `temper status`, such as the reason why a host takes no rollouts. A host has at most one note
 * for each subject.
 */
export interface HostNotes {
  /** Writes the note of a subject, replacing an earlier one; null withdraws it. */
  set(host: string, subject: string, text: string | null): Promise<void>;
  /** Returns the notes of a host by subject. */
  list(host: string): Promise<Readonly<Record<string, HostNote>>>;
}

export function createHostNotes(records: Records): HostNotes {
  return {
    set: (host, subject, text) =>
      records.write(host, subject, text === null ? null : { text, since: new Date().toISOString() }),
    list: async (host) => {
      const subjects = await records.names(host);
      const found = await Promise.all(subjects.map((subject) => records.find(host, subject)));
      return Object.fromEntries(
        found.flatMap((value, index) => {
          const parsed = note.safeParse(value);
          return parsed.success ? [[subjects[index] ?? '', parsed.data]] : [];
        }),
      );
    },
  };
}
