import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { Branch, Trace } from '../../../workflows/contracts/trace.ts';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';
import { until } from '../../helpers/until.ts';

interface Call {
  readonly name: string;
  readonly arguments: object;
}

const [wrong, right] = ['quotient **= right;', 'quotient /= right;'];
const file = '/workspace/stock.js';
const subTask = 'Say which operator stands in stock.js.';
const summary = 'SUMMARY: the file stock.js has a wrong operator and has to be fixed.';
const summing = `<analysis>The file was read.</analysis>\n<summary>\n${summary}\n</summary>`;

const read: Call = { name: 'Read', arguments: { file_path: file } };
const fix: Call = { name: 'Edit', arguments: { file_path: file, old_string: wrong, new_string: right } };
const dispatch: Call = {
  name: 'Agent',
  arguments: { description: 'Look at stock.js', prompt: subTask, subagent_type: 'general-purpose' },
};
/** Prints enough to outgrow the window; the tokens of the test's model are bytes. */
const longOutput: Call = { name: 'Bash', arguments: { command: 'seq 1 6000', description: 'Count' } };

const pinned: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('../../../infra/agents/claude-code/package.json', import.meta.url), 'utf8'),
);

/** The kind of a request, recognised by how its conversation begins and ends. */
type Asking = 'sub-agent' | 'compaction' | 'main';

interface Scenario {
  readonly name: string;
  readonly agent: string;
  readonly calls: readonly Call[];
  /**
   * Branches in the order of their last turns, except that sub-agents come first because they run beside the main branch.
   * Claude Code keeps the last turn unchanged when it compacts: one branch ends with that turn, one with the summary of
   * everything before it, and the next begins with both.
   */
  readonly branches: readonly Branch['kind'][];
  /**
   * The kind of request that the sub-agent's last answer waits for. Claude Code runs the sub-agent in the background and
   * appends its report to whichever request comes next; which turn a compaction keeps depends on it.
   */
  readonly reportsAfter?: Asking;
}

const small = 'window=100000';
const scenarios: readonly Scenario[] = [
  {
    name: 'linear',
    agent: 'claude-code?subAgents=off&compaction=off',
    calls: [read, longOutput, read, fix],
    branches: ['main'],
  },
  {
    name: 'sub-agent',
    agent: 'claude-code?compaction=off',
    calls: [dispatch, read, fix],
    branches: ['sub-agent', 'main'],
  },
  {
    name: 'compaction',
    agent: `claude-code?subAgents=off&${small}`,
    calls: [read, longOutput, read, fix],
    branches: ['main', 'compaction', 'compaction'],
  },
  {
    name: 'sub-agent and compaction',
    agent: `claude-code?${small}`,
    calls: [dispatch, longOutput, read, fix],
    branches: ['sub-agent', 'main', 'compaction', 'compaction'],
    reportsAfter: 'compaction',
  },
];

describe('Claude Code, branch by branch', () => {
  let rollouts: AgentRollouts;
  let current: Scenario;
  const said: Record<Asking, number> = { main: 0, 'sub-agent': 0, compaction: 0 };
  let prompts: (readonly [Asking, string])[] = [];

  before(async () => {
    rollouts = await startAgentRollouts(answer);
  });
  after(() => rollouts?.close());

  async function answer(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const prompt = promptIds.map(tokens.nameOf).join('');
    const asking = askingOf(prompt);
    prompts.push([asking, prompt]);
    const step = said[asking];
    said[asking] += 1;
    const { reportsAfter } = current;
    if (asking === 'sub-agent' && step === 1 && reportsAfter !== undefined) {
      await until(() => said[reportsAfter] > 0);
    }
    const call = asking === 'main' ? current.calls[step] : asking === 'sub-agent' ? [read][step] : undefined;
    const last = { main: 'It is fixed.', 'sub-agent': 'It is **=.', compaction: summing }[asking];
    const text = call === undefined ? last : `Continuing.\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${text}<|im_end|>`);
  }

  for (const scenario of scenarios) {
    it(`has the expected branches: ${scenario.name}`, async () => {
      current = scenario;
      Object.assign(said, { main: 0, 'sub-agent': 0, compaction: 0 });
      const { result, evidence } = await rollouts.roll({ task: 'generated:train/1/0', agent: scenario.agent });
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
      assert.deepEqual([result.agentVersion], Object.values(pinned.dependencies));
      assert.ok(result.trace !== null, evidence);
      const trace = await rollouts.gateway.traceOf(result.trace);
      assert.deepEqual(kindsOf(trace), scenario.branches, JSON.stringify([trace.branches, trace.counts]));
      assert.deepEqual([trace.maskedTurns, trace.faultyCalls, trace.counts?.unclear], [[], {}, 0]);
      const sampled = trace.turns.reduce((sum, { sampledIds }) => sum + sampledIds.length, 0);
      const trained = trace.segments.reduce(
        (sum, { mask }) => sum + mask.reduce<number>((ones, one) => ones + one, 0),
        0,
      );
      assert.equal(trained + (trace.counts?.droppedTokens ?? 0), sampled);
    });
  }

  it('gives a sub-agent of the options its prompt, and the tools of the options to both', async () => {
    const tools = ['Agent', 'Bash', 'Edit', 'Read'];
    const prompt = 'You review. Change nothing.';
    const agentOptions = {
      compaction: 'off',
      tools,
      subAgents: { reviewer: { description: 'Reviews a change', prompt } },
    };
    const review = { ...dispatch, arguments: { ...dispatch.arguments, subagent_type: 'reviewer' } };
    current = { name: 'own sub-agent', agent: 'claude-code', calls: [review, read, fix], branches: [] };
    Object.assign(said, { main: 0, 'sub-agent': 0, compaction: 0 });
    prompts = [];
    const { result, evidence } = await rollouts.roll({
      task: 'generated:train/1/0',
      agent: 'claude-code',
      agentOptions,
    });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    const promptsOf = (asking: Asking) => prompts.flatMap(([one, text]) => (one === asking ? [text] : []));
    assert.ok(promptsOf('sub-agent').length > 0, evidence);
    for (const text of promptsOf('sub-agent')) assert.ok(text.includes(prompt), text);
    const offered = (asking: Asking) => toolsIn(promptsOf(asking)[0] ?? '').filter((name) => name !== placeholder);
    assert.deepEqual(offered('main'), tools);
    const own = offered('sub-agent');
    assert.ok(own.length > 0 && own.every((name) => tools.includes(name)), String(own));
  });
});

/** Claude Code offers it beside the tools that it was given. */
const placeholder = 'DeferredToolPlaceholder';

/** Returns the names of the tools that a prompt offers. */
function toolsIn(prompt: string): readonly string[] {
  const [, offered = ''] = /<tools>(.*?)<\/tools>/s.exec(prompt) ?? [];
  return [...offered.matchAll(/"function": ?\{"name": ?"(\w+)"/g)].map(([, name = '']) => name).sort();
}

function kindsOf({ branches = [] }: Trace): Branch['kind'][] {
  const kinds = [...branches].sort((left, right) => left.lastTurn - right.lastTurn).map(({ kind }) => kind);
  const isBeside = (kind: Branch['kind']): boolean => kind === 'sub-agent';
  return [...kinds.filter(isBeside), ...kinds.filter((kind) => !isBeside(kind))];
}

function askingOf(prompt: string): Asking {
  const [opening = ''] = prompt.split('<|im_start|>assistant', 1);
  if (opening.includes(subTask)) return 'sub-agent';
  const last = prompt.slice(prompt.lastIndexOf('<|im_start|>user'));
  const isQuestion = !last.includes('<tool_response>') && prompt.includes('<tool_response>');
  return isQuestion && !opening.includes(summary) ? 'compaction' : 'main';
}
