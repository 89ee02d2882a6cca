// The daemon of a stand-in sandbox: it runs inside a container as root and speaks the part of envd's protocol that temper and
// E2B's SDK use, on a unix socket. It imports nothing but Node builtins. Arguments: SOCKET VERSION.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

const [socket = ''] = process.argv.slice(2);
const children = new Map<number, ChildProcess>();

/** Words of Go for signals, as envd sends them. */
const words: Readonly<Record<string, string>> = {
  SIGHUP: 'hangup',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGABRT: 'aborted',
  SIGKILL: 'killed',
  SIGSEGV: 'segmentation fault',
  SIGPIPE: 'broken pipe',
  SIGTERM: 'terminated',
  SIGXFSZ: 'file size limit exceeded',
};

interface Start {
  readonly process: {
    readonly cmd: string;
    readonly args?: readonly string[];
    readonly envs?: Readonly<Record<string, string>>;
    readonly cwd?: string;
  };
  readonly stdin?: boolean;
}

interface Selected {
  readonly process: { readonly pid: number };
}

class RpcError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

createServer((request, response) => {
  answer(request, response).catch((error: unknown) => fail(response, error));
}).listen(socket, () => chmodSync(socket, 0o666));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bytesOf(request);
  if (request.url === '/health') return void response.writeHead(204).end();
  if (request.url === '/process.Process/Start') return start(request, response, JSON.parse(unframed(body)));
  const message: Selected = JSON.parse(String(body));
  const child = children.get(message.process.pid);
  if (child === undefined) throw new RpcError(404, 'not_found', `process with pid ${message.process.pid} not found`);
  if (request.url === '/process.Process/SendInput') {
    await write(child, Buffer.from((message as unknown as Input).input.stdin, 'base64'));
  } else if (request.url === '/process.Process/CloseStdin') {
    child.stdin?.end();
  } else throw new RpcError(404, 'unimplemented', `no procedure ${request.url}`);
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
}

interface Input {
  readonly input: { readonly stdin: string };
}

/** Writes to a process and answers once it has taken all, as a write to a pipe does. */
function write(child: ChildProcess, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const { stdin } = child;
    if (!stdin?.writable) return reject(new RpcError(500, 'internal', 'stdin not enabled or closed'));
    stdin.write(bytes, (error) =>
      error ? reject(new RpcError(500, 'internal', `error writing to stdin: ${error.message}`)) : resolve(),
    );
  });
}

/**
 * Starts a command as envd does: through nice, and as a process that remains a zombie until every holder of its output has ended. Node
 * would reap it immediately, so its parent is a shell, which waits for a line before it reaps. A shell starts a command in the background
 * with signals ignored, which env takes back. $1 $2 the ids of its account and group.
 */
const holder = `
echo 100 >/proc/$$/oom_score_adj
exec 5<&0
id=$1 group=$2; shift 2
/usr/bin/setpriv --reuid="$id" --regid="$group" --clear-groups /usr/bin/env --default-signal /usr/bin/nice -n 0 "$@" <&5 3<&- 4>&- 5<&- &
echo $! >&4
exec 5<&- >/dev/null 2>&1
read -r line <&3
wait $!
echo $? >&4
`;

async function start(request: IncomingMessage, response: ServerResponse, message: Start): Promise<void> {
  const { cmd, args = [], envs = {}, cwd = '/' } = message.process;
  const [name = ''] = Buffer.from((request.headers.authorization ?? '').replace('Basic ', ''), 'base64')
    .toString()
    .split(':');
  const user = userOf(name);
  if (!existsSync(cwd)) throw new RpcError(400, 'invalid_argument', `cwd '${cwd}' does not exist`);
  const child = spawn('/bin/sh', ['-c', holder, '--', `${user.uid}`, `${user.gid}`, cmd, ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: user.home, USER: name, LOGNAME: name, ...envs },
    stdio: [message.stdin === false ? 'ignore' : 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const { stdin, stdout, stderr } = child;
  const [, , , release, told] = child.stdio as [unknown, unknown, unknown, Writable, Readable];
  stdin?.on('error', () => undefined);
  release.on('error', () => undefined);
  const outputs = { stdout, stderr } as { readonly stdout: Readable; readonly stderr: Readable };
  const silent = Promise.all(Object.values(outputs).map((stream) => once(stream, 'close')));
  const [line] = (await once(told, 'data')) as [Buffer];
  const pid = Number(String(line));
  children.set(pid, child);
  response.writeHead(200, { 'content-type': 'application/connect+json' });
  response.write(frame({ event: { start: { pid } } }));
  for (const [kind, stream] of Object.entries(outputs)) {
    stream.on('data', (chunk: Buffer) => {
      // Without a listener the output is dropped, and the process continues.
      if (response.destroyed) return;
      if (response.write(frame({ event: { data: { [kind]: chunk.toString('base64') } } }))) return;
      stream.pause();
      response.once('drain', () => stream.resume());
    });
    response.once('close', () => stream.resume());
  }
  await silent;
  while (!hasEnded(pid)) await sleep(20);
  const status = once(told, 'data');
  release.end('\n');
  children.delete(pid);
  const end = endOf(Number(String(await status)));
  if (response.destroyed) return;
  response.write(frame({ event: { end } }));
  response.end(frame({}, 2));
}

/** Whether a process has ended, which its parent may have noticed. */
function hasEnded(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return !existsSync(stat) || readFileSync(stat, 'utf8').split(') ').at(-1)?.[0] === 'Z';
}

/** The end of a process in envd's words, from its exit code as a shell tells it. */
function endOf(code: number): object {
  const [name = ''] = Object.entries(constants.signals).find(([, number]) => number === code - 128) ?? [];
  if (name !== '') return { exitCode: -1, status: `signal: ${words[name] ?? `signal ${code - 128}`}` };
  return { ...(code !== 0 && { exitCode: code }), exited: true, status: `exit status ${code}` };
}

function userOf(name: string): { readonly uid: number; readonly gid: number; readonly home: string } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((text) => text.startsWith(`${name}:`));
  const [, , uid, gid, , home = '/'] = line?.split(':') ?? [];
  if (uid === undefined) throw new RpcError(401, 'unauthenticated', `invalid username: '${name}'`);
  return { uid: Number(uid), gid: Number(gid), home };
}

function fail(response: ServerResponse, error: unknown): void {
  const { status, code, message } =
    error instanceof RpcError ? error : { status: 500, code: 'internal', message: String(error) };
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ code, message }));
}

function frame(message: unknown, flags = 0): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(text.length, 1);
  return Buffer.concat([header, text]);
}

const unframed = (body: Buffer): string => body.toString('utf8', 5);

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
