import assert from 'node:assert/strict';
import { it } from 'node:test';
import { mcpServersOf, writtenServer } from '../../../infra/harbor/mcp-servers.ts';
import { failure } from '../../helpers/tasks/data-set-fixture.ts';

const read = (...servers: readonly object[]) => mcpServersOf(servers.map((server) => writtenServer.parse(server)));

it('reads MCP servers that the agent starts, and those at an address in the sandbox', () => {
  assert.deepEqual(
    read(
      { name: 'a', transport: 'stdio', command: 'npx', args: ['-y', 'b'] },
      { name: 'b', transport: 'http', url: 'http://localhost:8000/mcp' },
      { name: 'c', transport: 'streamable-http', url: 'http://127.0.0.1/x' },
      { name: 'd', url: 'http://[::1]:1/sse' },
    ),
    [
      { name: 'a', transport: 'stdio', command: ['npx', '-y', 'b'] },
      { name: 'b', transport: 'http', url: 'http://localhost:8000/mcp' },
      { name: 'c', transport: 'http', url: 'http://127.0.0.1/x' },
      { name: 'd', transport: 'sse', url: 'http://[::1]:1/sse' },
    ],
  );
});

it('reads the MCP server of a service, by its name', () => {
  const written = [writtenServer.parse({ name: 'a', transport: 'streamable-http', url: 'http://mcp-server:8000/mcp' })];
  const [server] = mcpServersOf(written, ['mcp-server']);
  assert.deepEqual(server, { name: 'a', transport: 'http', url: 'http://mcp-server:8000/mcp' });
  assert.throws(() => mcpServersOf(written, ['server']), failure('UnsupportedTask', /or of a service of server a/));
});

it('refuses servers elsewhere, and those without an address, a command or a name of their own', () => {
  const stdio = { transport: 'stdio', command: 'a' };
  for (const [servers, type, message] of [
    [
      [{ name: 'a', url: 'http://mcp-server:8000' }],
      'UnsupportedTask',
      /an address in the sandbox itself, .* of server a, got http:\/\/mcp-server/,
    ],
    [
      [{ name: 'a', url: 'http://127.0.0.1/', headers: { Authorization: 'Bearer x' } }],
      'UnsupportedTask',
      /no headers, which agents do not send, of server a, got Authorization/,
    ],
    [[{ name: 'a', url: 'http://127.0.0.1.evil.example/' }], 'UnsupportedTask', /an address in the sandbox itself/],
    [[{ name: 'a', url: 'http://localhost@evil.example/' }], 'UnsupportedTask', /an address in the sandbox itself/],
    [[{ name: 'a' }], 'MalformedTask', /expected the url of server a, got none/],
    [[{ name: 'a', transport: 'stdio' }], 'MalformedTask', /expected the command of server a, got none/],
    [
      [
        { name: 'a', ...stdio },
        { name: 'a', ...stdio },
      ],
      'MalformedTask',
      /a name that no other server has of server a/,
    ],
    [[{ name: 'temper', ...stdio }], 'MalformedTask', /a name that no other server has/],
  ] as const)
    assert.throws(() => read(...servers), failure(type, message));
});
