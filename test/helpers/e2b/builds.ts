import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { HttpError, jsonOf, type Route } from './http.ts';
import type { Template } from './machine.ts';

const run = promisify(execFile);

/** The stand-in's builds of templates, which are builds of images from an image and uploaded files. */
export interface Builds {
  readonly routes: readonly Route[];
  /** Stores the body of a request that uploads files. Returns whether it was one. */
  takesUpload(request: IncomingMessage, path: string): Promise<boolean>;
  close(): Promise<void>;
}

interface Build {
  readonly name: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  status: 'waiting' | 'building' | 'ready' | 'error';
  reason?: { readonly message: string };
}

interface Steps {
  readonly fromImage?: string;
  readonly steps: readonly { readonly type: string; readonly args: readonly string[]; readonly filesHash?: string }[];
}

/** `templates` gets each template once it is built. */
export function createBuilds(templates: Record<string, Template>): Builds {
  const builds = new Map<string, Build>();
  const images: string[] = [];
  const uploads = new Set<string>();
  const directory = mkdtemp(join(tmpdir(), 'e2b-builds-'));
  const uploadOf = async (hash: string): Promise<string> => join(await directory, `${hash}.tar.gz`);

  async function make(id: string, build: Build, { fromImage = '', steps }: Steps): Promise<void> {
    const { name, cpuCount, memoryMB } = build;
    const context = join(await directory, id);
    await mkdir(context);
    const lines = [`FROM ${fromImage}`, 'USER root'];
    for (const { type, args, filesHash = '' } of steps) {
      if (type !== 'COPY') throw new Error(`step ${type} is not known`);
      await run('tar', ['-xzf', await uploadOf(filesHash), '-C', context]);
      lines.push(`COPY ${args[0]} ${args[1]}`);
    }
    await writeFile(join(context, 'Dockerfile'), `${lines.join('\n')}\n`);
    await run('docker', ['image', 'inspect', fromImage]).catch(() => {
      throw new Error(`image ${fromImage} not found`);
    });
    const image = `e2b-template-${id}`;
    await run('docker', ['build', '--quiet', '--tag', image, context]);
    images.push(image);
    templates[name] = { image, cpuCount, memoryMB };
  }

  const routes: readonly Route[] = [
    [
      'POST',
      /^\/v3\/templates$/,
      async ({ request }) => {
        const { name, cpuCount, memoryMB } = await jsonOf(request);
        const buildID = randomBytes(8).toString('hex');
        const size = { cpuCount: Number(cpuCount), memoryMB: Number(memoryMB) };
        builds.set(buildID, { name: String(name), ...size, status: 'waiting' });
        return [202, { templateID: name, buildID, public: false, names: [name], aliases: [name], tags: ['default'] }];
      },
    ],
    [
      'GET',
      /^\/templates\/[^/]+\/files\/([^/]+)$/,
      async ({ id, request }) => [
        201,
        { present: uploads.has(id), url: `http://${request.headers.host}/uploads/${id}` },
      ],
    ],
    [
      'POST',
      /^\/v2\/templates\/[^/]+\/builds\/([^/]+)$/,
      async ({ id, request }) => {
        const build = builds.get(id);
        if (build === undefined) throw new HttpError(404, `build ${id} not found`);
        build.status = 'building';
        make(id, build, (await jsonOf(request)) as unknown as Steps).then(
          () => {
            build.status = 'ready';
          },
          (error: unknown) => {
            build.reason = { message: errorMessage(error) };
            build.status = 'error';
          },
        );
        return [202, {}];
      },
    ],
    [
      'GET',
      /^\/templates\/[^/]+\/builds\/([^/]+)\/status$/,
      async ({ id }) => {
        const { name, status, reason } = builds.get(id) ?? { status: 'error' };
        return [200, { templateID: name, buildID: id, status, reason, logs: [], logEntries: [] }];
      },
    ],
  ];
  return {
    routes,
    async takesUpload(request, path) {
      const [, hash] = request.method === 'PUT' ? (/^\/uploads\/([0-9a-f]+)$/.exec(path) ?? []) : [];
      if (hash === undefined) return false;
      await pipeline(request, createWriteStream(await uploadOf(hash)));
      uploads.add(hash);
      return true;
    },
    async close() {
      for (const image of images) await run('docker', ['image', 'rm', '--force', image]);
      await rm(await directory, { recursive: true, force: true });
    },
  };
}
