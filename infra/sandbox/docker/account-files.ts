import { Readable } from 'node:stream';
import type { CarriedEntry } from '../changes.ts';
import { collect } from '../files.ts';

/** The files that give the agent's uid a name. */
export const accountFiles: ReadonlySet<string> = new Set(['/etc/passwd', '/etc/group']);

/** The largest such file in which the uid is replaced. An agent that is root may have made it of any size. */
const mostBytes = 2 ** 20;
/** The name of the agent's uid in these files while they are carried. */
const placeholder = 'temper-agent';

/** Replaces the agent's uid in a file of accounts, since the agent of another sandbox has another one. */
export const withoutUid = (entry: CarriedEntry, uid: number): Promise<CarriedEntry> =>
  replaced(entry, String(uid), placeholder);

/** Puts the uid of this sandbox's agent into a carried file of accounts. */
export const withUid = (entry: CarriedEntry, uid: number): Promise<CarriedEntry> =>
  replaced(entry, placeholder, String(uid));

async function replaced({ header, content }: CarriedEntry, from: string, to: string): Promise<CarriedEntry> {
  if (header.size > mostBytes) return { header, content };
  const text = (await collect(Readable.from(content))).toString('latin1');
  const line = new RegExp(`^agent:x:${from}(?::${from})?(?=:)`, 'gm');
  const bytes = Buffer.from(
    text.replace(line, (found) => found.replaceAll(from, to)),
    'latin1',
  );
  return { header: { ...header, size: bytes.byteLength }, content: Readable.from([bytes]) };
}
