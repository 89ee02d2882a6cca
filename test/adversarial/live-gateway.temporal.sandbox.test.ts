import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { secretOf } from '../../infra/gateway/secret.ts';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { TestGateway } from '../helpers/gateway/gateway.ts';
import { type AgentRollouts, startAgentRollouts } from '../helpers/rollouts/agent-rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

/* An agent that attacks the gateway: a whole rollout, while another rollout's session is open. */

const neighbour = 'neighbour.1';
/** Requests models and other sessions from each address that a gateway might have, with each key found or forged. */
const probe = `
import glob, http.client, os, re, socket

keys = set()
for name in [*glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline'), *glob.glob('/workspace/key*'), *glob.glob('/gw/*')]:
    try: keys.update(re.findall(r'[A-Za-z0-9][A-Za-z0-9._-]*~[A-Za-z0-9_-]{43}', open(name, errors='replace').read()))
    except OSError: pass
for key in sorted(keys): print('key', key)

class Door(http.client.HTTPConnection):
    def __init__(self, address):
        super().__init__('gateway', timeout=60)
        self.address = address
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET)
        self.sock.settimeout(60)
        self.sock.connect(self.address)

def ask(address, key, path):
    door = Door(address)
    try:
        door.request('GET', path, headers={'authorization': 'Bearer ' + key})
        return door.getresponse().status
    except OSError as error: return type(error).__name__
    finally: door.close()

sockets = [os.path.join(d, f) for top in ['/gw', '/run', '/tmp', '/home', '/workspace', '/logs', '/tests'] for d, _, names in os.walk(top) for f in names if f.endswith('.sock')]
for address in [('127.0.0.1', 8080), '/gw/gateway.sock', *sorted(set(sockets) - {'/gw/gateway.sock'})]:
    for key in sorted(keys):
        forged = '${neighbour}' + key[key.index('~'):]
        for who, one in [('own', key), ('forged', forged), ('bare', '${neighbour}')]:
            print('asked', address, who, ask(address, one, '/v1/models'))
        for path in ['/status/${neighbour}', '/seal/${neighbour}']:
            print('control', address, path, ask(address, key, path))
`;

const commands: readonly string[] = [
  `cat >probe.py <<'END'\n${probe}END\npython3 probe.py >loot.txt 2>&1; sed -n 's/^key //p' loot.txt >key.txt; wc -l key.txt`,
];

let rollouts: AgentRollouts;
before(async () => {
  rollouts = await startAgentRollouts(answer, {
    providerIn: (home) =>
      createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
    taskRoot: 'tasks',
  });
});
after(() => rollouts?.close());

async function answer(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
  const response = tokens.idOf('<tool_response>');
  const command = commands[promptIds.filter((id) => id === response).length];
  const call = command === undefined ? { name: 'submit', arguments: {} } : { name: 'bash', arguments: { command } };
  return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
}

it('lets an agent open its own session only, and shows its code no gateway in the evaluation', async () => {
  const { gateway, home, store } = rollouts;
  const theirs = await gateway.open(neighbour);
  const test = 'python3 /workspace/probe.py 2>&1\nls /gw 2>&1\necho 0 >/logs/verifier/reward.txt\n';
  const task = await writeHarborTask(join(home, 'tasks'), 'probe', { test: `mkdir -p /logs/verifier\n${test}` });
  const { result, evidence } = await rollouts.roll({ task, agent: 'mini', sandbox: 'local' });
  assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 0, 'submitted'], evidence);
  assert.ok(result.diff !== null && result.verdict !== null, evidence);
  const own = secretOf(gateway.options.stackKeys[0], sessionId({ rollout: result.rollout, epoch: result.epochs }));

  const patch = String(await store.get(result.diff.patch.digest));
  const loot = patch.split('\n').flatMap((line) => (/^\+(?:key|asked|control) /.test(line) ? [line.slice(1)] : []));
  const asked = (address: string) => [
    `asked ${address} own 200`,
    `asked ${address} forged 401`,
    `asked ${address} bare 401`,
    ...['status', 'seal'].map((path) => `control ${address} /${path}/${neighbour} 404`),
  ];
  assert.deepEqual(loot, [`key ${own}`, ...asked("('127.0.0.1', 8080)"), ...asked('/gw/gateway.sock')], patch);
  assert.ok(!patch.includes(theirs));

  // The agent's key was in its diff: in the evaluation it opens nothing.
  const log = String(await store.get(result.verdict.log.digest));
  const found = log.split('\n').filter((line) => /^(?:key|asked|control) /.test(line));
  assert.deepEqual(
    found.filter((line) => line.startsWith('key ')),
    [`key ${own}`],
    log,
  );
  const answers = found.filter((line) => !line.startsWith('key ')).map((line) => line.slice(line.lastIndexOf(' ') + 1));
  assert.equal(answers.length, 10, log);
  assert.deepEqual([...new Set(answers)].toSorted(), ['ConnectionRefusedError', 'FileNotFoundError'], log);
  assert.match(log, /ls: cannot access '\/gw'/);
  assert.equal((await gateway.control.status(neighbour))?.state, 'open');
});
