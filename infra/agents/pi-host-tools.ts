/**
 * Returns an extension of Pi that offers the host tools: it asks the gateway for them before Pi starts, and calls them by MCP. The
 * name of the client tells its calls from those of an earlier start.
 */
export const hostToolExtension = (url: string, secretVariable: string): string => `
const { env } = process;
const client = crypto.randomUUID();
let last = 0;

async function ask(method, params, signal) {
  last += 1;
  const reply = await fetch(${JSON.stringify(url)}, {
    method: 'POST',
    headers: {
      authorization: 'Bearer ' + env.${secretVariable},
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': client,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: last, method, params }),
    signal,
  });
  const text = await reply.text();
  const data = text.startsWith('{') ? text : text.split('\\n').find((line) => line.startsWith('data: {'))?.slice(6);
  if (data === undefined) throw new Error('the host tools answered ' + reply.status + ': ' + text.slice(0, 500));
  const { result, error } = JSON.parse(data);
  if (result === undefined) throw new Error(error?.message ?? text.slice(0, 500));
  return result;
}

export default async function (pi) {
  const { tools } = await ask('tools/list', {});
  for (const { name, description, inputSchema } of tools) {
    pi.registerTool({
      name,
      label: name,
      description,
      parameters: inputSchema,
      async execute(_id, given, signal) {
        const { content, isError } = await ask('tools/call', { name, arguments: given }, signal);
        const text = content.map((part) => part.text).join('\\n');
        if (isError) throw new Error(text);
        return { content: [{ type: 'text', text }], details: undefined };
      },
    });
  }
}
`;
