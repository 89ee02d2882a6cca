import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/**
 * Runs on the host, or in a sandbox: opens connections one after another over TLS and asks each for one small reply, then
 * loads one large reply. Prints the times as JSON.
 *
 *     client <proxy host:port>|direct <server host:port> <name> <requests> <bytes>
 */
const [proxy = '', server = '', name = '', requests = '0', bytes = '0'] = process.argv.slice(2);
const [serverHost = '', serverPort = ''] = server.split(':');

const listening = (host: string, port: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), noDelay: true });
    socket.once('error', reject).once('connect', () => resolve(socket));
  });

async function open(): Promise<Socket> {
  if (proxy === 'direct') return listening(serverHost, serverPort);
  const [host = '', port = ''] = proxy.split(':');
  const socket = await listening(host, port);
  socket.write(`CONNECT ${name}:${serverPort} HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).once('data', (head) => {
      if (head.toString('latin1').startsWith('HTTP/1.1 200 ')) resolve();
      else reject(new Error(`the proxy answers ${head}`));
    });
  });
  socket.removeAllListeners('error');
  return socket;
}

/** Loads so many bytes, and returns how many came. */
async function load(wanted: number): Promise<number> {
  const socket = await open();
  const tls = connectTls({ socket, servername: name, rejectUnauthorized: false });
  tls.write(`GET /${wanted} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
  let received = 0;
  for await (const chunk of tls) received += chunk.length;
  if (received < wanted) throw new Error(`expected ${wanted} bytes, got ${received}`);
  return received;
}

const times: number[] = [];
/** Connections that are not counted: code that is not compiled yet. */
const warmUp = 20;
for (let turn = 0; turn < warmUp + Number(requests); turn += 1) {
  const startedAt = performance.now();
  await load(100);
  if (turn >= warmUp) times.push(performance.now() - startedAt);
}
const startedAt = performance.now();
await load(Number(bytes));
const megabytesPerSec = Number(bytes) / 2 ** 20 / ((performance.now() - startedAt) / 1000);
process.stdout.write(`${JSON.stringify({ times, megabytesPerSec })}\n`);
