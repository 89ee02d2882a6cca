import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, it } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import { requestHeader } from '../../../../infra/agents/relay/protocol.ts';
import { buildSegments } from '../../../../infra/gateway/branches/segments.ts';
import { originOf } from '../../../../infra/gateway/http/request-origin.ts';
import type { JournalRecord } from '../../../../infra/gateway/sessions/journal.ts';
import { createSession, type Session } from '../../../../infra/gateway/sessions/session.ts';
import { createToolbox } from '../../../../infra/gateway/tools/toolbox.ts';
import { createUpstreams } from '../../../../infra/gateway/upstream/upstreams.ts';
import { endlessLease } from '../../../../infra/hosts/lease.ts';
import {
  type AssistantMessage,
  loadModel,
  type Message,
  type Model,
} from '../../../../infra/kits/chat-tokens/index.ts';
import { type BranchRule, trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import { createScriptedEngine, type ScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { system, tools, user } from '../../../helpers/gateway/conversation.ts';
import { openSession } from '../../../helpers/gateway/gateway.ts';
import { type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';

let dir: TinyModel;
let model: Model;
before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
});
after(() => dir[Symbol.asyncDispose]());

const said = fc.constantFrom(
  'Well. \n\nDone.<|im_end|>',
  'cut',
  '',
  'Look.\n<tool_call>\n{"name": "bash", "arguments": {"a": 1.0, "b": "x \\n"}}\n</tool_call><|im_end|>',
  '<tool_call>\n{"name": "bash", "arguments": {"a": \n</tool_call><|im_end|>',
);

/** The ways in which a client echoes a reply. Some of them prove the turn, some do not. */
const echoes = {
  exact: (reply: AssistantMessage) => reply,
  trimmed: (reply: AssistantMessage) => ({ ...reply, text: reply.text.trim(), reasoning: '' }),
  completed: (reply: AssistantMessage) => ({
    ...reply,
    toolCalls: reply.toolCalls.map((call) => ({ ...call, arguments: '{"b":"x","a":1,"all":false}' })),
  }),
  renamed: (reply: AssistantMessage) => ({
    ...reply,
    toolCalls: reply.toolCalls.map((call) => ({ ...call, id: `mine_${call.id}` })),
  }),
  rewritten: (reply: AssistantMessage) => ({ ...reply, text: `${reply.text} (edited)` }),
} as const;

const turn = fc.record({
  /** The number of replies that the client drops before it continues. */
  back: fc.constantFrom(0, 0, 0, 1, 2),
  echo: fc.constantFrom(...(['exact', 'trimmed', 'completed', 'renamed', 'rewritten'] as const)),
  asks: fc.constantFrom('Continue.', 'And?', 'é 🦊'),
  /** A client that asks twice at once, as after a lost connection. */
  twice: fc.boolean(),
});
const line = fc.record({
  start: fc.constantFrom('', 'You are an agent.', 'You help.'),
  offered: fc.constantFrom(tools, []),
  turns: fc.array(turn, { minLength: 1, maxLength: 6 }),
});
const world = fc.record({
  lines: fc.array(line, { minLength: 1, maxLength: 5 }),
  replies: fc.array(said, { minLength: 4, maxLength: 12 }),
  ticks: fc.array(fc.nat(5), { minLength: 1, maxLength: 7 }),
});
const limit = fc.option(fc.integer({ min: 1, max: 6 }));
const rule: fc.Arbitrary<BranchRule> = fc.record({
  train: fc.constantFrom('final', 'all'),
  maxSegments: limit,
  maxSegmentTokens: limit.map((hundreds) => hundreds && hundreds * 100),
});
type Line = typeof line extends fc.Arbitrary<infer One> ? One : never;

/** One of the conversations that an agent holds at once. */
async function converse(session: Session, { start, offered, turns }: Line): Promise<void> {
  const states: (readonly Message[])[] = [start === '' ? [] : [system(start)]];
  for (const { back, echo, asks, twice } of turns) {
    states.length = Math.max(1, states.length - back);
    const messages = [...(states.at(-1) ?? []), user(asks)];
    const request = {
      conversation: { messages, tools: offered },
      maxTokens: null,
      sampling: {},
      delivery: 'whole',
    } as const;
    const origin = originOf({ [requestHeader]: randomUUID() });
    const asked = Array.from({ length: twice ? 2 : 1 }, async () => (await session.ask(request, origin)).turn.result);
    const [first, second = first] = await Promise.all(asked);
    assert.equal(first, second, 'one turn, not two');
    if (first !== undefined) states.push([...messages, echoes[echo](first.reply)]);
  }
}

interface Told {
  readonly engine: ScriptedEngine;
  /** The tokens that the engine sampled in each call. */
  readonly sampled: (readonly number[])[];
  readonly journal: JournalRecord[];
}

function sessionOf({ engine, journal }: Told, records: readonly JournalRecord[]): Session {
  const contextLength = { wait: async () => 100_000, look: async () => 100_000 };
  const upstreams = createUpstreams('/nonexistent/upstreams.json', {});
  const policies = { of: async () => ({ engine, contextLength }), close: async () => {} };
  const deps = {
    policies,
    upstreams,
    model,
    lease: endlessLease,
    engineGraceMs: 1_000,
    onTurn: () => {},
    toolbox: createToolbox(),
    onHostToolFailure: () => {},
    onCutUnwritten: () => {},
    taskFiles: async () => new Map(),
  };
  const append = async (record: JournalRecord): Promise<void> => {
    await tick();
    journal.push(record);
  };
  return createSession(deps, { journal: { append, close: async () => {} }, opened: openSession('a.1'), records });
}

/** Each turn's branch has to be, to the last id, a prompt that the engine got with what it sampled for it. */
function assertExact(session: Session, { engine, sampled }: Told): void {
  const calls = engine.requests.map(({ tokenIds }, at) => [...tokenIds, ...(sampled[at] ?? [])].join());
  const left = new Map([...Map.groupBy(calls, (ids) => ids)].map(([ids, all]) => [ids, all.length]));
  for (const { index } of session.turns) {
    const ids: number[] = [];
    for (let at = session.turns[index]; at !== undefined; at = session.turns[at.parent ?? -1]) {
      ids.unshift(...at.promptIds, ...at.sampledIds);
    }
    const found = left.get(ids.join()) ?? 0;
    assert.ok(found > 0, `the engine has seen no such branch as turn ${index}'s`);
    left.set(ids.join(), found - 1);
  }
  assert.ok(
    [...left.values()].every((count) => count === 0),
    'each call of the engine is a turn',
  );
  const { segments, masked } = buildSegments(session.turns, trainAllBranches);
  for (const { tokens, mask, logprobs } of segments) {
    const whole = tokens.join();
    assert.ok(calls.includes(whole), 'a segment ends where a turn ends');
    assert.ok(mask.every((trains, at) => (trains === 1) === (logprobs[at] ?? 0) < 0));
  }
  for (const [index, reason] of masked) {
    assert.deepEqual([reason, session.turns[index]?.sampledIds], ['empty', []]);
  }
}

/** Asserts that each sampled token is trained once, or left out and counted, or masked, whatever the rule. */
function assertCounted({ turns }: Session, rule: BranchRule): void {
  const { segments, branches, masked, droppedTokens } = buildSegments(turns, rule);
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
  const trained = sum(segments.map(({ mask }) => sum(mask)));
  const sampled = turns.filter(({ index }) => !masked.has(index)).map(({ sampledIds }) => sampledIds.length);
  assert.equal(trained + droppedTokens, sum(sampled));
  assert.ok(segments.length <= (rule.maxSegments ?? Number.POSITIVE_INFINITY));
  assert.ok(rule.train === 'all' || segments.length <= 1);
  for (const { tokens, kind } of segments) {
    assert.ok(tokens.length <= (rule.maxSegmentTokens ?? Number.POSITIVE_INFINITY));
    assert.notEqual(kind, 'side');
  }
  const told = branches.flatMap(({ segment }) => segment ?? []);
  assert.deepEqual(told, [...segments.keys()]);
  assert.ok(branches.every(({ segment, dropped }) => segment !== null || dropped !== null));
}

it('random trees of simultaneous conversations become segments of exactly what the engine received and sampled', async () => {
  await fc.assert(
    fc.asyncProperty(world, rule, async ({ lines, replies, ticks }, trains) => {
      const sampled: (readonly number[])[] = [];
      const engine = createScriptedEngine({
        async script(_, index) {
          const ids = model.tokens.encode(replies[index % replies.length] ?? '');
          sampled[index] = ids;
          for (let left = ticks[index % ticks.length] ?? 0; left > 0; left -= 1) await tick();
          return { kind: 'say', ids };
        },
      });
      const told: Told = { engine, sampled, journal: [] };
      const session = sessionOf(told, []);
      await Promise.all(lines.map((one) => converse(session, one)));
      assertExact(session, told);
      assertCounted(session, trains);
      const again = sessionOf(told, told.journal);
      assert.deepEqual(
        buildSegments(again.turns).segments,
        buildSegments(session.turns).segments,
        'as the journal has it',
      );
    }),
    { numRuns: 60 },
  );
});
