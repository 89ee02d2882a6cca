import { type FileHandle, mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';

// The log of the effects on models, as the server itself saw them: evidence that a step was made once. Nothing depends on it,
// so that it may lose its beginning.

const entry = z.strictObject({
  at: z.string(),
  modelId: z.string(),
  sequence: z.number().nullable(),
  kind: z.enum(['create_model', 'forward_backward', 'optim_step', 'save_weights', 'load_weights', 'unload_model']),
  /** The number of optimizer steps made by then. */
  step: z.number(),
  /** Digest of the request: loss, settings and datums. */
  digest: z.string().nullable(),
  /** Checksum of the weights, if they may have changed. */
  checksum: z.string().nullable(),
  path: z.string().nullable(),
});
export type ReceivedEntry = z.infer<typeof entry>;

export interface ReceivedLog {
  /** Appends an entry; durable before it returns. One call at a time. */
  append(entry: Omit<ReceivedEntry, 'at'>): Promise<void>;
  /** Reads the entries that are left, in order. */
  entries(modelId?: string): Promise<readonly ReceivedEntry[]>;
  close(): Promise<void>;
}

/** The size at which a file becomes the old one, and the old one goes: some 60,000 entries. */
const fullBytes = 16 * 2 ** 20;

/** Opens the log in a file and, beside it, an old one with the entries before. */
export async function openReceivedLog(path: string, limitBytes = fullBytes): Promise<ReceivedLog> {
  await mkdir(dirname(path), { recursive: true });
  const oldPath = path.replace(/\.jsonl$/, '.old.jsonl');
  let file: FileHandle = await open(path, 'a');
  // A crash may have cut the last line.
  let size = (await readFile(path)).lastIndexOf('\n') + 1;
  await file.truncate(size);

  async function startAnother(): Promise<void> {
    await rename(path, oldPath);
    const full = file;
    file = await open(path, 'a');
    size = 0;
    await full.close();
  }

  return {
    async append(fields) {
      const line = `${JSON.stringify({ at: new Date().toISOString(), ...fields })}\n`;
      if (size > 0 && size + line.length > limitBytes) await startAnother();
      await file.appendFile(line);
      await file.datasync();
      size += line.length;
    },
    async entries(modelId) {
      const known = (await Promise.all([oldPath, path].map(readLines))).flat();
      return modelId === undefined ? known : known.filter((one) => one.modelId === modelId);
    },
    close: () => file.close(),
  };
}

/** Reads all complete lines of a file. */
async function readLines(path: string): Promise<readonly ReceivedEntry[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line) => entry.parse(JSON.parse(line)));
}
