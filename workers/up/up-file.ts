import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { isRunning } from '../../infra/process/process-identity.mjs';
import { type PartName, partKinds, partStates } from './part.ts';

const processIdentity = z.object({ pid: z.int(), startedAt: z.string() });

const partName = new RegExp(`^(${partKinds.join('|')}|gateway-\\d+)$`);

/** What `temper up` writes for everybody who wants to find its stack: tests, `temper status`, the next `temper up`. */
const upFile = z.object({
  supervisor: processIdentity,
  addresses: z.object({
    temporal: z.string(),
    namespace: z.string(),
    ui: z.string().nullable(),
    policy: z.string().nullable(),
    gatewayControl: z.string(),
  }),
  /** Settings that differ from the defaults, so that a client finds the same ports. */
  ports: z.object({ temporal: z.int(), ui: z.int(), policy: z.int() }),
  parts: z.array(
    z.object({
      name: z.custom<PartName>((name) => typeof name === 'string' && partName.test(name)),
      state: z.enum(partStates),
      process: processIdentity.nullable(),
      restarts: z.int(),
      lastExit: z.string().nullable(),
      logFile: z.string(),
    }),
  ),
});
export type UpFile = z.output<typeof upFile>;
export type StackAddresses = UpFile['addresses'];

/** The stack that was last brought up on a home, or null. It may have ended since: see `isUp`. */
export async function readUpFile(path: string): Promise<UpFile | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) return null;
  const parsed = upFile.safeParse(parseJson(text));
  return parsed.success ? parsed.data : null; // of another version of temper: as good as none
}

export function isUp({ supervisor }: UpFile): boolean {
  return isRunning(supervisor);
}

/** Readers see the old file or the new one, never half of one. */
export async function writeUpFile(path: string, content: UpFile): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`);
  await rename(draft, path);
}

export async function removeUpFile(path: string): Promise<void> {
  await rm(path, { force: true });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
