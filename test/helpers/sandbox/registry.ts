import { createHash, randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { packTree } from '../../../infra/sandbox/files.ts';

/** A registry of images that exist nowhere else. */
export interface TestRegistry {
  /** `127.0.0.1:<port>`, which Docker trusts without TLS. */
  readonly address: string;
  /** The requests so far, in order, as `GET /v2/…`. */
  readonly requests: readonly string[];
  /** Adds an image with layers of random bytes, which no other image on this host shares. Returns its name. */
  add(name: string, layerBytes: readonly number[]): Promise<string>;
  /** Cuts the connection of the next `times` requests whose path contains `path`, after `afterBytes` of the answer. */
  cut(path: string, times: number, afterBytes: number): void;
  close(): Promise<void>;
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Starts a registry that implements what a pull needs. With an account, `name:password`, it is private. */
export async function startRegistry(account?: string): Promise<TestRegistry> {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, Buffer>();
  const requests: string[] = [];
  const cuts: { path: string; afterBytes: number }[] = [];

  const keep = (bytes: Buffer): { readonly digest: string; readonly size: number } => {
    blobs.set(digestOf(bytes), bytes);
    return { digest: digestOf(bytes), size: bytes.length };
  };

  function answer(response: ServerResponse, path: string, method: string, range: string | undefined): void {
    const [, name, kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(path) ?? [];
    if (kind === undefined) return void response.writeHead(200).end('{}');
    const found = kind === 'blobs' ? blobs.get(reference) : manifests.get(`${name}:${reference}`);
    if (found === undefined) {
      const errors = [{ code: kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN', message: 'manifest unknown' }];
      return void response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ errors }));
    }
    const from = Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0);
    const type = kind === 'blobs' ? 'application/octet-stream' : manifestType;
    const part = found.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, {
      'content-type': type,
      'content-length': part.length,
      'docker-content-digest': digestOf(found),
      'accept-ranges': 'bytes',
      ...(from > 0 && { 'content-range': `bytes ${from}-${found.length - 1}/${found.length}` }),
    });
    const next = cuts.findIndex((cut) => path.includes(cut.path));
    const [cut] = next < 0 ? [] : cuts.splice(next, 1);
    if (method === 'HEAD' && cut === undefined) response.end();
    else if (cut === undefined) response.end(part);
    else response.write(part.subarray(0, cut.afterBytes), () => response.destroy());
  }

  const server = createServer(({ url = '', method = '', headers }, response) => {
    requests.push(`${method} ${url}`);
    const basic = `Basic ${Buffer.from(account ?? '').toString('base64')}`;
    if (account !== undefined && headers.authorization !== basic) {
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
    }
    answer(response, url, method, headers.range);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    address: `127.0.0.1:${port}`,
    requests,
    async add(name, layerBytes) {
      const tars = await Promise.all(
        layerBytes.map((size, index) =>
          packTree(new Map([[`layer-${index}`, { mode: 0o644, bytes: randomBytes(size) }]]), { uid: 0, gid: 0 }),
        ),
      );
      const config = {
        architecture: 'amd64',
        os: 'linux',
        config: { Cmd: ['/layer-0'] },
        rootfs: { type: 'layers', diff_ids: tars.map(digestOf) },
        history: tars.map((_, index) => ({ created_by: `layer ${index}` })),
      };
      const layers = tars.map((tar) => ({
        mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
        ...keep(gzipSync(tar)),
      }));
      const configBlob = keep(Buffer.from(JSON.stringify(config)));
      const manifest = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: manifestType,
          config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...configBlob },
          layers,
        }),
      );
      const [repository, tag = 'latest'] = name.split(':');
      manifests.set(`${repository}:${tag}`, manifest);
      manifests.set(`${repository}:${digestOf(manifest)}`, manifest);
      return `127.0.0.1:${port}/${name}`;
    },
    cut(path, times, afterBytes) {
      for (let time = 0; time < times; time += 1) cuts.push({ path, afterBytes });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
