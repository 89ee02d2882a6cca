import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import { listenInNetwork, loopbackNetwork, ownAddress } from './loopback-network.ts';

/** A network with one server, which answers with the name that it was asked for. */
export interface NamedNetwork {
  readonly outside: ReturnType<typeof loopbackNetwork>;
  readonly port: number;
  readonly server: Server;
}

export async function startNamedNetwork(...names: readonly string[]): Promise<NamedNetwork> {
  const server = createServer((request, response) => response.end(`content of ${request.headers.host?.split(':')[0]}`));
  const port = await listenInNetwork(server);
  return { outside: loopbackNetwork(Object.fromEntries(names.map((name) => [name, [ownAddress]]))), port, server };
}

export interface NetworkedTask {
  readonly port: number;
  readonly gradedIn?: 'same';
}

/** Prints what a name of the network serves, or the status by which the proxy refuses it. */
const fetchProgram = `
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
`;

/**
 * Writes a task whose agent may reach `agent.test` and whose tests may reach `tests.test`. Its reference solution keeps what
 * it fetched of both, and its tests accept that only if each phase has its own network.
 */
export async function writeNetworkedTask(directory: string, { port, gradedIn }: NetworkedTask): Promise<void> {
  const policy = (host: string): string =>
    `network_mode = "allowlist"\nallowed_hosts = ["${host}"]\nallowed_ports = [${port}]\n`;
  const fetchBoth = (by: string): string =>
    ['agent', 'tests'].map((name) => `${by} http://${name}.test:${port}/`).join('; ');
  const files = {
    'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\n[agent]\n${policy('agent.test')}[verifier]\n${policy('tests.test')}${gradedIn === undefined ? '' : `[grading]\nsandbox = "${gradedIn}"\n`}`,
    'instruction.md': 'Fetch.',
    'environment/workspace/fetch.py': fetchProgram,
    'solution/solve.sh': `{ ${fetchBoth('python3 fetch.py')}; } >fetched\n`,
    'tests/fetch.py': fetchProgram,
    'tests/test.sh': `
{ ${fetchBoth('python3 /tests/fetch.py')}; } >/tmp/tested
cat fetched /tmp/tested
printf 'content of agent.test\\n403\\n403\\ncontent of tests.test\\n' >/tmp/expected
cat fetched /tmp/tested | cmp - /tmp/expected && reward=1 || reward=0
echo $reward >/logs/verifier/reward.txt
`,
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
}
