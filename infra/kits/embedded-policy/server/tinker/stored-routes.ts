import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Context, Hono } from 'hono';
import { pack } from 'tar-stream';
import {
  checkpointName,
  modelId as modelIdSchema,
  parseTinkerPath,
  weightsInfoRequest,
} from '../../../tinker-wire/index.ts';
import { type CheckpointAddress, readModelInfo, type ServerDirectories } from '../directories.ts';
import { readBody, TinkerError, type TinkerState } from './state.ts';

/** Adds the routes for existing checkpoints, including those of models from before a restart. */
export function addStoredRoutes(app: Hono, state: TinkerState): void {
  const { directories } = state;
  app.post('/weights_info', async (c) => {
    const { tinker_path } = await readBody(c, weightsInfoRequest);
    const address = parseTinkerPath(tinker_path);
    if (address === null)
      throw new TinkerError(400, `tinker_path: expected tinker://<model>/weights/<name>, got ${tinker_path}`);
    existing(state, address);
    const info = readModelInfo(directories, address.modelId);
    return c.json({ base_model: info.base_model, is_lora: true, lora_rank: info.lora_config.rank });
  });
  app.get('/training_runs/:model/checkpoints', (c) => {
    const modelId = modelOf(c);
    return c.json({
      checkpoints: (['weights', 'sampler_weights'] as const).flatMap((kind) => listed(directories, modelId, kind)),
    });
  });
  app.get('/training_runs/:model/checkpoints/:name/archive', (c) => {
    const address = { modelId: modelOf(c), kind: 'sampler_weights', name: nameOf(c) } as const;
    existing(state, address);
    return c.redirect(c.req.path.replace(/archive$/, 'download'), 302);
  });
  app.get('/training_runs/:model/checkpoints/:name/download', async (c) => {
    const address = { modelId: modelOf(c), kind: 'sampler_weights', name: nameOf(c) } as const;
    const archive = await archiveOf(existing(state, address));
    return c.body(new Uint8Array(archive), 200, { 'content-type': 'application/octet-stream' });
  });
  app.delete('/training_runs/:model/checkpoints/:kind{weights|sampler_weights}/:name', async (c) => {
    const kind = c.req.param('kind') === 'weights' ? 'weights' : 'sampler_weights';
    const directory = existing(state, { modelId: modelOf(c), kind, name: nameOf(c) });
    await rm(directory, { recursive: true });
    return c.body(null, 204);
  });
}

function nameOf(c: Context): string {
  const parsed = checkpointName.safeParse(c.req.param('name'));
  if (!parsed.success) throw new TinkerError(422, 'name: expected letters, digits, _ and -');
  return parsed.data;
}

function modelOf(c: Context): string {
  const parsed = modelIdSchema.safeParse(c.req.param('model'));
  if (!parsed.success) throw new TinkerError(422, 'model: expected letters, digits, :, _ and -');
  return parsed.data;
}

function existing({ directories, saving }: TinkerState, address: CheckpointAddress): string {
  const directory = directories.checkpoint(address);
  if (existsSync(directory)) return directory;
  if (saving.has(directory)) throw new TinkerError(425, 'Checkpoint is still being created');
  throw new TinkerError(404, `Checkpoint not found: ${address.modelId}/${address.name}`);
}

function listed(directories: ServerDirectories, modelId: string, kind: 'weights' | 'sampler_weights') {
  const parent = directories.checkpoint({ modelId, kind, name: '' });
  const names = existsSync(parent) ? readdirSync(parent).filter((name) => checkpointName.safeParse(name).success) : [];
  return names.map((name) => ({
    checkpoint_id: name,
    checkpoint_type: kind === 'weights' ? 'training' : 'sampler',
    time: statSync(join(parent, name)).mtime.toISOString(),
    tinker_path: `tinker://${modelId}/${kind}/${name}`,
  }));
}

async function archiveOf(directory: string): Promise<Buffer> {
  const tar = pack();
  for (const name of readdirSync(directory)) tar.entry({ name }, readFileSync(join(directory, name)));
  tar.finalize();
  const parts: Buffer[] = [];
  for await (const chunk of Readable.from(tar).pipe(createGzip())) parts.push(Buffer.from(chunk));
  return Buffer.concat(parts);
}
