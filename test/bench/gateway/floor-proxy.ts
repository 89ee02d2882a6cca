/**
 * Does what any gateway with a journal has to do in Node, and nothing else: reads and parses a request, sends the
 * engine a prompt of the same size as the gateway would, writes a record to disk and passes the reply on. Arguments:
 * its socket, the engine's address, and a directory for its records. Prints a line when it listens.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Pool } from 'undici';

/** Header with the number of bytes of token ids in the prompt. */
export const promptBytesHeader = 'x-prompt-bytes';

const record = Buffer.from(`${'x'.repeat(1_000)}\n`);

const prompts = new Map<number, Buffer>();

function promptOf(bytes: number): Buffer {
  const prompt = prompts.get(bytes) ?? Buffer.alloc(bytes, '1');
  prompts.set(bytes, prompt);
  return prompt;
}

function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
  });
}

function run(socketPath: string, engineUrl: string, dir: string): void {
  const engine = new Pool(engineUrl);
  // One file per connection, as the gateway has one per session.
  const files = new WeakMap<Socket, Promise<FileHandle>>();
  let opened = 0;

  function fileOf(socket: Socket): Promise<FileHandle> {
    const known = files.get(socket);
    if (known !== undefined) return known;
    const opening = open(join(dir, `floor-${opened++}`), constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC);
    socket.once('close', () => void opening.then((file) => file.close()));
    files.set(socket, opening);
    return opening;
  }

  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      JSON.parse((await bodyOf(request)).toString());
      const body = promptOf(Number(request.headers[promptBytesHeader]));
      const reply = await engine.request({ method: 'POST', path: '/inference/v1/generate', body });
      const text = await reply.body.text();
      await (await fileOf(request.socket)).write(record);
      response.writeHead(200, { 'content-length': Buffer.byteLength(text) });
      response.end(text);
    };
    answer().catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen({ path: socketPath, backlog: 4_096 }, () => process.stdout.write('listening\n'));
}

if (process.argv[1] === import.meta.filename) {
  const [socketPath = '', engineUrl = '', dir = ''] = process.argv.slice(2);
  run(socketPath, engineUrl, dir);
  process.once('disconnect', () => process.exit());
}
