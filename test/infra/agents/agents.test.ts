import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createAgents } from '../../../infra/agents/index.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const agents = createAgents({ cacheDir: '/nonexistent' });
const context = {
  instruction: 'Fix it.',
  workdir: '/workspace',
  baseUrl: 'http://127.0.0.1:8080',
  secret: 'a-secret',
  maxTurns: 7,
};

it('an unknown agent is rejected with the list of known names', () => {
  assert.throws(
    () => agents.get('minni'),
    (error) =>
      error instanceof TemperFailure &&
      error.type === 'UnknownAgent' &&
      error.message.startsWith(
        `expected one of ${agents.names.join(', ')}, got "minni"; name a module of your own in `,
      ),
  );
});

it('no agent has the secret in its argv or files', () => {
  for (const name of agents.names) {
    const { argv, files } = agents.get(name).command(context);
    assert.ok(!argv.join(' ').includes('a-secret'));
    for (const { bytes } of files.values()) assert.ok(!new TextDecoder().decode(bytes).includes('a-secret'));
  }
});

it('only the oracle gets the solution, and only oracle and nop have no model', () => {
  const of = (key: 'needsSolution' | 'usesModel') => agents.names.filter((name) => agents.get(name)[key]);
  assert.deepEqual(of('needsSolution'), ['oracle']);
  assert.deepEqual(
    agents.names.filter((name) => !of('usesModel').includes(name)),
    ['oracle', 'nop'],
  );
});

it('every agent that calls a model requires a gateway', () => {
  for (const name of agents.names.filter((one) => agents.get(one).usesModel)) {
    for (const gone of [{ baseUrl: null }, { secret: null }]) {
      assert.throws(() => agents.get(name).command({ ...context, ...gone }), /expected the address and secret/);
    }
  }
});

it("each exit code of temper's own agents has its own stop reason, and any other code is a crash", () => {
  for (const name of ['mini', 'terminal']) {
    const { stopReason } = agents.get(name);
    assert.deepEqual(
      [0, 10, 11, 12, 13, 1, 137].map((code) => stopReason(code)),
      ['submitted', 'exited', 'turn-limit', 'context-overflow', 'token-budget', 'crashed', 'crashed'],
    );
  }
});
