import { createServer } from 'node:https';
import { Readable } from 'node:stream';
import { listenInNetwork } from '../../helpers/egress/loopback-network.ts';

/** Serves as many bytes as the path asks for, over TLS with the certificate of its argument, and sends its port to its parent. */
const server = createServer(JSON.parse(process.argv[2] ?? '{}'), (request, response) => {
  const wanted = Number(request.url?.slice(1));
  Readable.from(pieces(wanted)).pipe(response);
});
const piece = Buffer.alloc(64 * 1024);

function* pieces(wanted: number): Generator<Buffer> {
  for (let left = wanted; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length));
}

process.send?.(await listenInNetwork(server));
