import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelSocketIn } from '../relay/protocol.ts';

/**
 * Runs inside the sandbox: connects its stdin and stdout to the relay's socket. The host starts it to open the channel. It holds
 * nothing, so it may die at any time: the relay keeps the agent's requests, and the host starts the next one.
 */

/** The time in which the relay has to listen. The bridge may be started before it. */
const connectMs = 10_000;
const retryMs = 10;

async function connect(path: string): Promise<Socket> {
  const giveUpAt = performance.now() + connectMs;
  for (;;) {
    const socket = new Socket();
    const failure = await new Promise<Error | null>((resolve) => {
      socket.once('error', resolve);
      socket.connect(path, () => resolve(null));
    });
    if (failure === null) return socket;
    if (performance.now() >= giveUpAt) throw failure;
    await sleep(retryMs);
  }
}

/** Writes to a process's stdout block it while the pipe is full, unlike those of a socket of its own. */
function standardStreams() {
  return {
    input: new Socket({ fd: 0, readable: true }),
    output: new Socket({ fd: 1, readable: false, writable: true }),
  };
}

const { input, output } = standardStreams();
const end = (): never => process.exit(0);
for (const stream of [input, output]) stream.once('error', end).once('close', end);
const relay = await connect(channelSocketIn(process.env.HOME ?? '/'));
relay.once('error', end).once('close', end);
input.pipe(relay);
relay.pipe(output);
