import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A sibling of an S3 server that ignores the named conditions of writes, as some older stores do, has a wrong clock, or sends weak
 * ETags of what is read, as a proxy before it does that compresses answers.
 */
export async function startCarelessS3(
  ignored: readonly ('if-none-match' | 'if-match')[],
  { clockAheadMs = 0, weakTags = false } = {},
): Promise<{
  readonly url: string;
  close(): Promise<void>;
}> {
  const objects = new Map<string, Buffer>();
  const tagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;
  const server = createServer(async (incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://here');
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const found = objects.get(pathname);
    const ifNoneMatch = ignored.includes('if-none-match') ? undefined : incoming.headers['if-none-match'];
    const ifMatch = ignored.includes('if-match') ? undefined : incoming.headers['if-match'];
    const fails =
      (ifNoneMatch !== undefined && found !== undefined) ||
      (ifMatch !== undefined && (found === undefined || tagOf(found) !== ifMatch));
    if (searchParams.get('list-type') === '2') {
      const keys = [...objects.keys()].map((path) => path.split('/').slice(2).join('/'));
      outgoing.setHeader('content-type', 'application/xml');
      const changed = `<LastModified>${new Date(Date.now() + clockAheadMs).toISOString()}</LastModified>`;
      const contents = keys.map((key) => `<Contents><Key>${key}</Key><Size>1</Size>${changed}</Contents>`).join('');
      outgoing.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${contents}</ListBucketResult>`);
    } else if (incoming.method === 'PUT' && fails) {
      outgoing.writeHead(412).end();
    } else if (incoming.method === 'PUT') {
      const bytes = Buffer.concat(chunks);
      objects.set(pathname, bytes);
      outgoing.writeHead(200, { etag: tagOf(bytes) }).end();
    } else if (incoming.method === 'DELETE' && fails) {
      outgoing.writeHead(412).end();
    } else if (incoming.method === 'DELETE') {
      objects.delete(pathname);
      outgoing.writeHead(204).end();
    } else if (found === undefined) {
      outgoing.writeHead(404).end();
    } else {
      outgoing.writeHead(200, { etag: `${weakTags ? 'W/' : ''}${tagOf(found)}`, 'content-length': found.length });
      outgoing.end(incoming.method === 'HEAD' ? undefined : found);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
