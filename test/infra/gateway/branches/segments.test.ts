import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Built, buildSegments } from '../../../../infra/gateway/branches/segments.ts';
import { checkTurns } from '../../../../infra/gateway/branches/token-check.ts';
import { createTokenLedger, type TokenLedger } from '../../../../infra/gateway/branches/token-ledger.ts';
import type { TurnRecord } from '../../../../infra/gateway/branches/turn-record.ts';
import { loadModel, type Model } from '../../../../infra/kits/chat-tokens/index.ts';
import { type BranchRule, trainAllBranches } from '../../../../workflows/contracts/trace.ts';
import {
  call,
  createConversation,
  finishTurn,
  reply,
  result,
  system,
  user,
} from '../../../helpers/gateway/conversation.ts';
import { type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';

let dir: TinyModel;
let model: Model;
before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
});
after(() => dir[Symbol.asyncDispose]());

describe('segments', () => {
  /** Two turns of the main line, of which the second says nothing, a title, and the main line's end. */
  const session = (): TokenLedger => {
    const ledger = createTokenLedger(model);
    const first = [user('x')];
    finishTurn(ledger, ledger.plan({ messages: first, tools: [] }), reply('a'), [65, 258]);
    const second = [...first, reply('a'), user('y')];
    finishTurn(ledger, ledger.plan({ messages: second, tools: [] }), reply(''), []);
    const title = [system('Title.'), user('x')];
    finishTurn(ledger, ledger.plan({ messages: title, tools: [] }), reply('t'), [66, 258]);
    const third = [...second, reply(''), user('z')];
    finishTurn(ledger, ledger.plan({ messages: third, tools: [] }), reply('c'), [67]);
    return ledger;
  };

  it('leave side calls out, and mask a turn that sampled nothing', () => {
    const { segments, branches, droppedTokens } = buildSegments(session().turns);
    assert.deepEqual(
      branches.map(({ kind, segment, dropped }) => [kind, segment, dropped]),
      [
        ['side', null, 'rule'],
        ['main', 0, null],
      ],
    );
    assert.equal(droppedTokens, 2);
    assert.deepEqual(segments[0]?.maskedTurns, [{ turn: 1, reason: 'empty' }]);
    for (const { tokens, mask, logprobs, versions } of segments) {
      assert.deepEqual([mask.length, logprobs.length, versions.length], [tokens.length, tokens.length, tokens.length]);
      assert.ok(
        mask.every((trains, at) => (trains === 1 ? versions[at] === 1 && logprobs[at] === -1 : versions[at] === -1)),
      );
    }
  });

  const broken: readonly (readonly [string, string, Partial<TurnRecord>])[] = [
    ['whose prompt has another id', 'prompt-mismatch', { promptChecksum: 1 }],
    ['whose prompt has another length', 'prompt-mismatch', { promptLength: 1 }],
    ['that was aborted', 'aborted', { finishReason: 'abort' }],
    ['that lacks a logprob', 'incomplete-sampling', { logprobs: [] }],
    ['with a logprob that is not a number', 'incomplete-sampling', { logprobs: [Number.NaN] }],
    ['with tokens of an unknown version', 'incomplete-sampling', { versions: [] }],
  ];
  for (const [what, reason, change] of broken) {
    it(`mask only the turn ${what}, and train the others`, () => {
      const turns = session().turns.map((turn) => (turn.index === 3 ? { ...turn, ...change } : turn));
      const masked = [
        { turn: 1, reason: 'empty' },
        { turn: 3, reason },
      ];
      assert.deepEqual(
        [...checkTurns(turns).masked],
        [
          [1, 'empty'],
          [3, reason],
        ],
      );
      const main = buildSegments(turns).segments.find(({ kind }) => kind === 'main');
      // A turn that the end of the agent cut is the last one, and the segment ends before it.
      assert.deepEqual(main?.maskedTurns, reason === 'aborted' ? masked.slice(0, 1) : masked);
      assert.deepEqual(
        main?.tokens.filter((_, at) => main.mask[at] === 1),
        [65, 258],
      );
    });
  }
});

it('a segment has the finish reason of its last turn', () => {
  const ledger = createTokenLedger(model);
  const send = createConversation(ledger);
  const said = send([user('x')], reply('a'));
  send([...said, user('y')], reply('b'));
  const endOf = (cut: number) => {
    const change: Partial<TurnRecord> = { finishReason: 'length' };
    const turns = ledger.turns.map((turn) => (turn.index === cut ? { ...turn, ...change } : turn));
    const { segments, branches } = buildSegments(turns);
    return [...segments, ...branches].map(({ finishReason }) => finishReason);
  };
  assert.deepEqual(endOf(0), ['stop', 'stop']);
  assert.deepEqual(endOf(1), ['length', 'length']);
});

it('branches that waited for tool results when the session ended are marked open', () => {
  const ledger = createTokenLedger(model);
  const send = createConversation(ledger);
  const dispatched = send(
    [system('You are an agent.'), user('Fix it.')],
    reply('', call('d1', 'task', { prompt: 'Count.' })),
  );
  const counting = send([system('You help.'), user('Count.')], reply('', call('b1', 'bash', {})));
  const ends = () => buildSegments(ledger.turns).branches.map(({ kind, open = false }) => [kind, open]);
  assert.deepEqual(ends(), [
    ['main', true],
    ['sub-agent', true],
  ]);
  send([...counting, result('b1', '3')], reply('Three.'));
  send([...dispatched, result('d1', 'Three.')], reply('Done.'));
  assert.deepEqual(ends(), [
    ['sub-agent', false],
    ['main', false],
  ]);
});

describe('the branch rule', () => {
  /** A main conversation that delegates to a sub-agent, is rewritten and ends, with a title call. Each turn samples two tokens. */
  const session = (): readonly TurnRecord[] => {
    const ledger = createTokenLedger(model);
    const send = createConversation(ledger);
    const start = [system('You are an agent.'), user('Fix it.')];
    const dispatched = send(start, reply('', call('d1', 'task', { prompt: 'Count.' })));
    send([system('You help.'), user('Count.')], reply('Three.'));
    send([system('Title.'), user('Fix it.')], reply('Fix'), []);
    send([...dispatched, result('d1', 'Three.')], reply('Hm.'));
    send([...start, reply('Rewritten.'), user('Continue.')], reply('Done.'));
    return ledger.turns;
  };
  const built = (rule: Partial<BranchRule>): Built => buildSegments(session(), { ...trainAllBranches, ...rule });
  const fates = ({ branches }: Built): string[] =>
    branches.map(({ kind, segment, dropped }) => `${kind} ${segment ?? '-'} ${dropped ?? ''}`.trim());
  const trainedIds = ({ segments }: Built): (readonly number[])[] =>
    segments.map(({ tokens, mask }) => tokens.filter((_, at) => mask[at] === 1));

  it('trains every branch except side calls (all)', () => {
    const all = built({});
    assert.deepEqual(fates(all), ['sub-agent 0', 'side - rule', 'main 1', 'fork 2']);
    assert.deepEqual(trainedIds(all), [
      [1, 258],
      [0, 258, 3, 258],
      [4, 258],
    ]);
    assert.equal(all.droppedTokens, 2);
  });

  it('trains the branch on which the main conversation ended (final)', () => {
    const final = built({ train: 'final' });
    assert.deepEqual(fates(final), ['sub-agent - rule', 'side - rule', 'main - rule', 'fork 0']);
    assert.deepEqual([trainedIds(final), final.droppedTokens], [[[4, 258]], 8]);
  });

  it('keeps the last branch of the main conversation first when segments are limited', () => {
    const two = built({ maxSegments: 2 });
    assert.deepEqual(fates(two), ['sub-agent 0', 'side - rule', 'main - segment-limit', 'fork 1']);
    assert.equal(two.droppedTokens, 6);
  });

  it('keeps the last branch of the main conversation first when a trace has too many tokens', () => {
    const all = built({});
    const lengths = all.segments.map(({ tokens }) => tokens.length);
    const [ofSubAgent = 0, , ofFork = 0] = lengths;
    const limited = (most: number): string[] => fates(buildSegments(session(), trainAllBranches, most));
    assert.deepEqual(limited(lengths.reduce((sum, length) => sum + length, 0)), fates(all));
    assert.deepEqual(limited(ofFork + ofSubAgent), ['sub-agent 0', 'side - rule', 'main - segment-limit', 'fork 1']);
  });

  it('cuts a branch that is too long after its last turn that fits', () => {
    const whole = built({}).segments[1];
    const length = whole?.tokens.length ?? 0;
    const cut = built({ maxSegmentTokens: length - 1 });
    const segment = cut.segments[1];
    assert.ok(segment !== undefined && segment.tokens.length < length);
    assert.deepEqual(segment.tokens, whole?.tokens.slice(0, segment.tokens.length));
    assert.deepEqual(trainedIds(cut)[1], [0, 258]);
    assert.equal(fates(cut)[2], 'main 1 token-limit');
    assert.deepEqual(fates(built({ maxSegmentTokens: 1 })).slice(2), ['main - token-limit', 'fork - token-limit']);
  });
});
