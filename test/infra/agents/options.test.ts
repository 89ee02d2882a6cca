import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { AgentContext } from '../../../infra/agents/agent.ts';
import { createAgents } from '../../../infra/agents/index.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const agents = createAgents({ cacheDir: '/nonexistent' });
const context: AgentContext = {
  instruction: 'Fix it.',
  workdir: '/workspace',
  baseUrl: 'http://127.0.0.1:8080',
  secret: 'secret',
  maxTurns: 10,
  contextLength: 40_000,
};
const textOf = (agent: string, path: string): string =>
  String(Buffer.from(agents.get(agent).command(context).files.get(path)?.bytes ?? []));

it("an agent's options follow its name", () => {
  const plain = agents.get('claude-code').command(context);
  assert.equal(plain.env.DISABLE_AUTO_COMPACT, undefined);
  assert.ok(!plain.argv.includes('--disallowedTools'));
  const linear = agents.get('claude-code?subAgents=off&compaction=off&window=30000');
  assert.equal(linear.name, 'claude-code?subAgents=off&compaction=off&window=30000');
  const { argv, env } = linear.command(context);
  assert.ok(argv.includes('--disallowedTools'));
  assert.deepEqual([env.DISABLE_AUTO_COMPACT, env.CLAUDE_CODE_AUTO_COMPACT_WINDOW], ['1', '30000']);
});

for (const [name, message] of [
  ['claude-cod', /expected one of mini, .*, got "claude-cod"/],
  ['claude-code?subagents=off', /options are subAgents, compaction .* and window .*; .*subagents/],
  ['claude-code?compaction=no', /compaction: expected on or off/],
  ['claude-code?window=many', /window: expected a number of tokens/],
  ['pi?window=30000', /expected pi without options, got "pi\?window=30000"/],
] as const) {
  it(`rejects ${name}`, () => {
    assert.throws(
      () => agents.get(name),
      (error) => error instanceof TemperFailure && error.type === 'UnknownAgent' && message.test(error.message),
    );
  });
}

it('claude-code sends no header that differs between requests', () => {
  assert.equal(agents.get('claude-code').command(context).env.CLAUDE_CODE_ATTRIBUTION_HEADER, '0');
});

it('third-party agents are configured with the context length where it is known', () => {
  assert.equal(agents.get('claude-code').command(context).env.CLAUDE_CODE_MAX_CONTEXT_TOKENS, '40000');
  assert.match(textOf('codex', '.codex/config.toml'), /^model_context_window = 40000$/m);
  const opencode = JSON.parse(textOf('opencode', '.config/opencode/opencode.json'));
  assert.deepEqual(opencode.provider.temper.models.policy.limit, { context: 40_000, output: 10_000 });
  assert.equal(JSON.parse(textOf('pi', '.pi/agent/models.json')).providers.temper.models[0].contextWindow, 40_000);
  const unknown = { ...context, contextLength: null };
  for (const name of ['claude-code', 'codex', 'opencode', 'pi']) {
    const { env, files } = agents.get(name).command(unknown);
    const configured =
      JSON.stringify(env) + [...files.values()].map(({ bytes }) => String(Buffer.from(bytes))).join('');
    assert.doesNotMatch(configured, /null|undefined|NaN|context_window|CONTEXT_TOKENS|contextWindow/, name);
  }
});
