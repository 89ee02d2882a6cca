import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { dirname, join } from 'node:path';
import { after, before, it } from 'node:test';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { createCertificate } from '../../helpers/certificate.ts';
import { listenInNetwork, loopbackNetwork, ownAddress } from '../../helpers/egress/loopback-network.ts';
import { startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

const servers = { plain: createServer(), secure: createSecureServer() };
const names = { 'index.pypi.test': [ownAddress], 'files.pypi.test': [ownAddress], 'other.test': [ownAddress] };
let ports: { readonly plain: number; readonly secure: number };

before(async () => {
  servers.secure.setSecureContext(await createCertificate('files.pypi.test'));
  for (const [name, server] of Object.entries(servers)) {
    server.on('request', (request, response) => response.end(`${name} ${request.url}`));
  }
  ports = { plain: await listenInNetwork(servers.plain), secure: await listenInNetwork(servers.secure) };
});
after(() => {
  for (const server of Object.values(servers)) server.close();
});

/** A program of the agent that takes its proxy from the environment, as package managers do. */
const fetchAll = (): string => `
import socket, ssl, urllib.error, urllib.request
open_one = urllib.request.build_opener(
    urllib.request.ProxyHandler(),
    urllib.request.HTTPSHandler(context=ssl._create_unverified_context())).open
def fetch(url):
    try:
        return open_one(url, timeout=20).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
    except Exception as error:
        return type(error).__name__
print(fetch('http://index.pypi.test:${ports.plain}/simple'))
print(fetch('https://files.pypi.test:${ports.secure}/wheel'))
print(fetch('http://other.test:${ports.plain}/'))
try:
    socket.create_connection(('${ownAddress}', ${ports.plain}), 5)
    print('direct')
except OSError:
    print('no direct way')
`;
const expected = 'plain /simple\nsecure /wheel\n403\nno direct way\n';

/** Writes a task whose agent may reach a list of hosts, and whose tests compare what it has fetched. */
async function writeTask(directory: string): Promise<void> {
  const policy = `network_mode = "allowlist"\nallowed_hosts = ["*.pypi.test"]\nallowed_ports = [${Object.values(ports)}]\n`;
  const files = {
    'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\n[agent]\n${policy}`,
    'instruction.md': 'Fetch.',
    'environment/workspace/fetch.py': fetchAll(),
    'environment/workspace/expected': expected,
    'tests/test.sh': 'cmp expected fetched && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
}

const turns = [
  { name: 'bash', arguments: { command: 'python3 fetch.py >fetched; cat fetched' } },
  { name: 'submit', arguments: {} },
];

for (const channel of ['socket', 'stream'] as const) {
  it(`an agent in a container without a network device fetches from listed hosts over its ${channel} channel`, async () => {
    let sampled = 0;
    const network = { cap: 'allowlist', outside: loopbackNetwork(names) } as const;
    const rollouts = await startAgentRollouts(
      async (_, { model: { tokens } }) => {
        const call = turns[sampled];
        sampled += 1;
        return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
      },
      { channel, network, taskRoot: 'tasks', providerIn: () => createDockerProvider({ stack: 'test-stack' }) },
    );
    try {
      const directory = join(rollouts.home, 'tasks', 'fetch');
      await writeTask(directory);
      const { result, evidence } = await rollouts.roll({ task: `harbor:${directory}`, agent: 'mini' });
      assert.deepEqual([result.outcome, result.reward], ['scored', 1], evidence);
      const { network: used } = result;
      assert.deepEqual([used?.requests, used?.refused], [3, 1], evidence);
      const rows: { readonly host: string; readonly decision: string }[] = JSON.parse(
        String(await rollouts.store.get(used?.log.digest ?? '')),
      );
      assert.deepEqual(
        rows.map(({ host, decision }) => `${decision} ${host}`),
        ['allowed index.pypi.test', 'allowed files.pypi.test', 'host-refused other.test'],
      );
    } finally {
      await rollouts.close();
    }
  });
}
