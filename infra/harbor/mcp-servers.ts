import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** A server in a task's sandbox whose tools the agent may call: a program that the agent starts, or an address. */
export type McpServer =
  | { readonly name: string; readonly transport: 'stdio'; readonly command: readonly [string, ...string[]] }
  | { readonly name: string; readonly transport: 'http' | 'sse'; readonly url: string };

export type McpTransport = McpServer['transport'];

const text = z.string({ error: 'expected a text' });

/** One of `environment.mcp_servers`, as Harbor writes it. */
export const writtenServer = z.looseObject({
  name: text.regex(/^[A-Za-z][\w-]{0,39}$/, { error: 'expected up to 40 letters, digits, hyphens and underscores' }),
  transport: z
    .enum(['stdio', 'sse', 'streamable-http', 'http'], { error: 'expected "stdio", "sse" or "streamable-http"' })
    .default('sse'),
  url: text.optional(),
  command: text.min(1).optional(),
  args: z.array(text).default([]),
  headers: z.record(z.string(), text).default({}),
});

/** The name of the gateway's own server in agents' configurations. */
const taken = 'temper';
const inSandbox = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Reads the servers of a task; `services` are the names of the containers beside its sandbox. Throws TemperFailure MalformedTask, or
 * UnsupportedTask for one that is neither in the sandbox nor beside it.
 */
export function mcpServersOf(
  written: readonly z.output<typeof writtenServer>[],
  services: readonly string[] = [],
): readonly McpServer[] {
  const names = new Set([taken]);
  return written.map(({ name, transport, url, command, args, headers }) => {
    const failed = (type: 'MalformedTask' | 'UnsupportedTask', expected: string, got: string): TemperFailure =>
      new TemperFailure(type, `task.toml: environment.mcp_servers: expected ${expected} of server ${name}, got ${got}`);
    if (names.has(name)) throw failed('MalformedTask', 'a name that no other server has', name);
    names.add(name);
    const [header] = Object.keys(headers);
    // Without it, its server would refuse an agent that cannot say why.
    if (header !== undefined) throw failed('UnsupportedTask', 'no headers, which agents do not send,', header);
    if (transport === 'stdio') {
      if (command === undefined) throw failed('MalformedTask', 'the command', 'none');
      return { name, transport, command: [command, ...args] };
    }
    if (url === undefined || !URL.canParse(url)) throw failed('MalformedTask', 'the url', url ?? 'none');
    const { protocol, hostname } = new URL(url);
    if (protocol !== 'http:' || !(inSandbox.test(hostname) || services.includes(hostname))) {
      const expected = 'an address in the sandbox itself, such as http://127.0.0.1:8000/mcp, or of a service';
      throw failed('UnsupportedTask', expected, url);
    }
    return { name, transport: transport === 'sse' ? 'sse' : 'http', url };
  });
}
