import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import Docker from 'dockerode';
import { loopbackNetwork } from '../../helpers/egress/loopback-network.ts';
import { startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';

/** Services at the gateway's and a usual port. The agent has a network too, whose proxy its programs take from the environment. */
const compose = `services:
  pages:
    image: \${MAIN_IMAGE_NAME}
    command: [sh, -c, 'echo "$$HOSTNAME" >/tmp/who; exec python3 -m http.server 8080 --directory /tmp']
    mem_limit: 64m
    healthcheck: {test: [CMD, python3, -c, "import socket; socket.create_connection(('pages', 8080))"], interval: 200ms, retries: 100}
`;
const toml = `[environment]
docker_image = "temper-tasks:bookworm"
memory_mb = 512
[agent]
network_mode = "allowlist"
allowed_hosts = ["example.test"]
`;
const ask = `python3 -c 'import urllib.request as r; print(r.urlopen("http://pages:8080/who").read().decode(), end="")'`;
const test = `${ask} >/tmp/who && cmp /tmp/who who && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n`;

it('an agent that calls the model reaches the services of its task, whatever their ports, after its host worker restarts', async () => {
  const turns = [
    { name: 'bash', arguments: { command: `${ask} >who; env | grep -i no_proxy` } },
    { name: 'submit', arguments: {} },
  ];
  let sampled = 0;
  const rollouts = await startAgentRollouts(
    async (_, { model: { tokens } }) => {
      const call = turns[sampled];
      sampled += 1;
      if (sampled === 1) await rollouts.replaceWorkers();
      return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
    },
    { taskRoot: 'tasks', network: { cap: 'allowlist', outside: loopbackNetwork({}) } },
  );
  try {
    const others = { 'environment/docker-compose.yaml': compose };
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'pages', { toml, test, others });
    const { result, sandbox, evidence } = await rollouts.roll({ task, agent: 'mini' });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.equal(result.epochs, 1);
    const left = await new Docker().listContainers({ all: true, filters: { name: [sandbox] } });
    assert.deepEqual(
      left.map(({ Names }) => Names),
      [],
    );
  } finally {
    await rollouts.close();
  }
});
