import { request } from 'node:http';
import { Readable } from 'node:stream';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** The official MCP client at a socket, as an agent has it. */
export interface McpClient extends AsyncDisposable {
  readonly client: Client;
  /** Calls a tool; returns its text, after `error: ` if it failed. */
  call(name: string, args?: Record<string, unknown>): Promise<string>;
}

/** Connects the official client to the host tools of a session. */
export async function connectMcp(socketPath: string, secret: string): Promise<McpClient> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL('http://gateway/mcp'), {
    requestInit: { headers: { authorization: `Bearer ${secret}` } },
    fetch: (url, init) => fetchAt(socketPath, new Request(url, init)),
  });
  await client.connect(transport);
  return {
    client,
    async call(name, args = {}) {
      const { content, isError } = await client.callTool({ name, arguments: args });
      const texts = content.map((part) => (part.type === 'text' ? part.text : part.type));
      return `${isError === true ? 'error: ' : ''}${texts.join('')}`;
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

async function fetchAt(socketPath: string, asked: Request): Promise<Response> {
  const { pathname: path } = new URL(asked.url);
  const body = Buffer.from(await asked.arrayBuffer());
  const headers = { ...Object.fromEntries(asked.headers), 'content-length': body.length };
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path, method: asked.method, headers, signal: asked.signal }, (reply) => {
      const { statusCode: status = 0 } = reply;
      const received = Object.entries(reply.headers).map(([name, value]): [string, string] => [name, String(value)]);
      const isEmpty = status === 202 || status === 204;
      if (isEmpty) reply.resume();
      const stream = isEmpty ? null : (Readable.toWeb(reply) as ReadableStream<Uint8Array>);
      resolve(new Response(stream, { status, headers: received }));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
