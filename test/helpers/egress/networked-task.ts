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

/** Prints what a name of the network serves, the status by which the proxy refuses it, or that there is none. */
const fetchProgram = `
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=200).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
except urllib.error.URLError:
    print('no network')
`;

/** Writes the network of a phase that may reach one host. */
const policyOf = (host: string, port: number): string =>
  `network_mode = "allowlist"\nallowed_hosts = ["${host}"]\nallowed_ports = [${port}]\n`;

async function writeFiles(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
}

/**
 * Writes a task whose agent may reach `agent.test` and whose tests may reach `tests.test`. Its reference solution keeps what
 * it fetched of both, and its tests accept that only if each phase has its own network.
 */
export async function writeNetworkedTask(directory: string, { port, gradedIn }: NetworkedTask): Promise<void> {
  const policy = (host: string): string => policyOf(host, port);
  const fetchBoth = (by: string): string =>
    ['agent', 'tests'].map((name) => `${by} http://${name}.test:${port}/`).join('; ');
  await writeFiles(directory, {
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
  });
}

/**
 * Writes a task of two steps. The agent of the first may reach `agent.test`, its tests may reach `tests.test`, and neither the agent
 * nor the tests of the second have a network.
 */
export async function writeNetworkedSteps(directory: string, { port }: Pick<NetworkedTask, 'port'>): Promise<void> {
  const fetched = (by: string, name: string): string => `$(${by} http://${name}.test:${port}/)`;
  const step = (name: string, solve: string, condition: string) => ({
    [`steps/${name}/instruction.md`]: `Do ${name}.\n`,
    [`steps/${name}/solution/solve.sh`]: `${solve}\n`,
    [`steps/${name}/tests/test.sh`]: `${condition} && reward=1 || reward=0\necho $reward >/logs/verifier/reward.txt\n`,
  });
  const agent = 'python3 fetch.py';
  const tests = 'python3 /tests/fetch.py';
  await writeFiles(directory, {
    'task.toml': `[environment]
docker_image = "temper-tasks:bookworm"
network_mode = "no-network"
[agent]
${policyOf('agent.test', port)}[[steps]]
name = "online"
[steps.verifier]
${policyOf('tests.test', port)}[[steps]]
name = "offline"
[steps.agent]
network_mode = "no-network"
`,
    'environment/workspace/fetch.py': fetchProgram,
    'tests/fetch.py': fetchProgram,
    ...step(
      'online',
      `echo "${fetched(agent, 'agent')} ${fetched(agent, 'tests')}" >online`,
      `[ "$(cat online)" = 'content of agent.test 403' ] && [ "${fetched(tests, 'tests')}" = 'content of tests.test' ]`,
    ),
    ...step(
      'offline',
      `echo "${fetched(agent, 'agent')}" >offline`,
      `[ "$(cat offline)" = 'no network' ] && [ "${fetched(tests, 'tests')}" = 'no network' ]`,
    ),
  });
}
