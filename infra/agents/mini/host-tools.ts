import { randomUUID } from 'node:crypto';
import { post } from './model.ts';
import type { Tool } from './tools.ts';

/** A tool as the gateway lists it. */
interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Tool['schema'];
}

interface Result {
  readonly tools?: readonly Listed[];
  readonly content?: readonly { readonly text?: string }[];
  readonly isError?: boolean;
}

/** Returns the host tools of the session, which are called at the gateway by MCP. */
export async function listHostTools(address: string, secret: string): Promise<readonly Tool[]> {
  const url = new URL(address);
  // Tells the calls of this process from those of an earlier one.
  const headers = { accept: 'application/json, text/event-stream', 'mcp-session-id': randomUUID() };
  let last = 0;

  async function ask(method: string, params: object): Promise<Result> {
    last += 1;
    const body = JSON.stringify({ jsonrpc: '2.0', id: last, method, params });
    const { status, body: text } = await post(url, secret, body, headers);
    const data = text.startsWith('{')
      ? text
      : text
          .split('\n')
          .find((line) => line.startsWith('data: {'))
          ?.slice(6);
    if (data === undefined) throw new Error(`the host tools answered ${status}: ${text.slice(0, 500)}`);
    const { result, error }: { result?: Result; error?: { message?: string } } = JSON.parse(data);
    if (result === undefined) throw new Error(error?.message ?? text.slice(0, 500));
    return result;
  }

  const { tools = [] } = await ask('tools/list', {});
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    schema: inputSchema,
    async run(given) {
      const result = await ask('tools/call', { name, arguments: Object.fromEntries(given) });
      const said = (result.content ?? []).map(({ text = '' }) => text).join('\n');
      if (result.isError === true) return `error: ${said}`;
      return name === 'submit' ? null : said;
    },
  }));
}
