import type { IncomingMessage } from 'node:http';

/** An answer other than success. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export interface Call {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
}

/** A method and a path whose first group is the id; they are answered with a status and a body. */
export type Route = readonly [
  method: string,
  path: RegExp,
  answer: (call: Call) => Promise<readonly [number, unknown]>,
];

export async function jsonOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(String(Buffer.concat(chunks)) || '{}');
}
