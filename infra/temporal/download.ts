import { createWriteStream } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';

const connectTimeoutMs = 10_000;
const idleTimeoutMs = 30_000;
const maxRedirects = 5;
const megabyte = 1_000_000;
const reportEveryBytes = 10 * megabyte;

export interface DownloadOptions {
  /** Environment with the proxy settings: `HTTPS_PROXY` and its siblings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly progress: (line: string) => void;
}

type Answer = Dispatcher.ResponseData;

/** Writes what a URL answers to a file. */
export async function downloadTo(
  url: string,
  file: string,
  options: DownloadOptions,
  signal?: AbortSignal,
): Promise<void> {
  await withAnswer(url, options, signal, async ({ body, headers }) => {
    const total = Number(headers['content-length'] ?? Number.NaN);
    await pipeline(body, counted(total, options.progress), createWriteStream(file));
  });
}

/** Reads what a URL answers as text, with the URL after all redirects. */
export async function downloadText(
  url: string,
  options: DownloadOptions,
  signal?: AbortSignal,
): Promise<{ readonly text: string; readonly from: string }> {
  return await withAnswer(url, options, signal, async ({ body }, from) => ({ text: await body.text(), from }));
}

/** Returns a URL without the name and password that it may hold. */
export function withoutPassword(url: string): string {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  return plain.href;
}

async function withAnswer<T>(
  url: string,
  { env }: DownloadOptions,
  signal: AbortSignal | undefined,
  read: (answer: Answer, from: string) => Promise<T>,
): Promise<T> {
  const dispatcher = new EnvHttpProxyAgent({
    ...proxies(env),
    connect: { timeout: connectTimeoutMs },
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
  });
  try {
    let location = url;
    for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
      const plain = withoutPassword(location);
      const answer = await request(plain, {
        dispatcher,
        headers: credentials(location),
        ...(signal === undefined ? {} : { signal }),
      });
      if (answer.statusCode === 200) return await read(answer, location);
      await answer.body.dump();
      const next = answer.headers.location;
      if (answer.statusCode < 300 || answer.statusCode >= 400 || typeof next !== 'string') {
        throw new Error(`expected ${plain} to answer 200, got ${answer.statusCode}`);
      }
      location = new URL(next, location).href;
    }
    throw new Error(`expected ${withoutPassword(url)} to be at most ${maxRedirects} redirects away`);
  } finally {
    await dispatcher.close();
  }
}

function credentials(url: string): Record<string, string> {
  const { username, password } = new URL(url);
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Passes bytes on, and reports every ten megabytes of them. */
function counted(total: number, progress: (line: string) => void): Transform {
  const of = Number.isNaN(total) ? '' : ` of ${Math.round(total / megabyte)}`;
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const before = Math.floor(bytes / reportEveryBytes);
      bytes += chunk.length;
      if (Math.floor(bytes / reportEveryBytes) > before) {
        progress(`downloaded ${Math.round(bytes / megabyte)}${of} MB`);
      }
      done(null, chunk);
    },
  });
}

function proxies(env: DownloadOptions['env']): { httpProxy?: string; httpsProxy?: string; noProxy?: string } {
  const httpProxy = env.http_proxy ?? env.HTTP_PROXY;
  const httpsProxy = env.https_proxy ?? env.HTTPS_PROXY;
  const noProxy = env.no_proxy ?? env.NO_PROXY;
  return {
    ...(httpProxy ? { httpProxy } : {}),
    ...(httpsProxy ? { httpsProxy } : {}),
    ...(noProxy ? { noProxy } : {}),
  };
}
