import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';

/** An OpenEnv environment in which a number from 0 to 9, the seed's last digit, is to be guessed. */
export interface GuessEnvironment {
  readonly url: string;
  /** The messages of all connections, in order. */
  readonly seen: readonly { readonly type: string; readonly data?: unknown }[];
  /** The connections that are open. */
  readonly open: number;
  /** Changes what it says, as an environment does that is not deterministic. */
  greet(word: string): void;
  /** Breaks all connections. */
  cut(): void;
  close(): Promise<void>;
}

export async function startGuessEnvironment(): Promise<GuessEnvironment> {
  const seen: { type: string; data?: unknown }[] = [];
  let word = 'higher';
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/ws' });
  await new Promise((resolve) => server.once('listening', resolve));
  server.on('connection', (socket) => {
    let secret: number | null = null;
    const say = (type: string, data: object): void => socket.send(JSON.stringify({ type, data }));
    const show = (hint: string, reward: number | null, done: boolean): void =>
      say('observation', { observation: { hint }, reward, done });
    const showPlain = (observation: unknown): void => say('observation', { observation, reward: null, done: false });
    socket.on('message', (raw) => {
      const message = JSON.parse(String(raw));
      seen.push(message);
      const { type, data } = message;
      if (type === 'reset') {
        if ('hang' in data) return;
        secret = data.seed % 10;
        show('guess a number from 0 to 9', null, false);
      } else if (type === 'step') {
        if ('echo' in data) showPlain(data.echo);
        else if ('close' in data) {
          if ('forever' in data) server.close();
          socket.close(data.close);
        } else if ('error' in data) say('error', { message: 'it failed', code: data.error });
        else if ('flood' in data) showPlain('x'.repeat(data.flood));
        else if ('hang' in data) return;
        else if (typeof data.guess !== 'number')
          say('error', { message: 'expected a guess', code: 'VALIDATION_ERROR' });
        else if (data.guess === secret) show('right', 1, true);
        else show(data.guess < Number(secret) ? word : 'lower', 0.1, false);
      }
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    get open() {
      return server.clients.size;
    },
    greet(next) {
      word = next;
    },
    cut() {
      for (const client of server.clients) client.terminate();
    },
    close: () =>
      new Promise((resolve) => {
        for (const client of server.clients) client.terminate();
        server.close(() => resolve());
      }),
  };
}
