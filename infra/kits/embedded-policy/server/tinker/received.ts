import { existsSync, readFileSync } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';

// The log of all effects on models, as the server itself saw them: evidence that a step was made once.

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
  /** Appends an entry; durable before it returns. */
  append(entry: Omit<ReceivedEntry, 'at'>): Promise<void>;
  entries(modelId?: string): readonly ReceivedEntry[];
  /** Whether the server has ever had this model, including before a restart. */
  knows(modelId: string): boolean;
  close(): Promise<void>;
}

export async function openReceivedLog(path: string): Promise<ReceivedLog> {
  await mkdir(dirname(path), { recursive: true });
  const known = existsSync(path) ? parseLines(readFileSync(path, 'utf8')) : [];
  const models = new Set(known.map(({ modelId }) => modelId));
  const file: FileHandle = await open(path, 'a');
  return {
    async append(fields) {
      const line = { at: new Date().toISOString(), ...fields };
      await file.appendFile(`${JSON.stringify(line)}\n`);
      await file.datasync();
      known.push(line);
      models.add(line.modelId);
    },
    entries: (modelId) => (modelId === undefined ? known : known.filter((one) => one.modelId === modelId)),
    knows: (modelId) => models.has(modelId),
    close: () => file.close(),
  };
}

/** Parses all complete lines; a crash may have cut the last one. */
function parseLines(text: string): ReceivedEntry[] {
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line) => entry.parse(JSON.parse(line)));
}
