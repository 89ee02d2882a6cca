import { type Message, type Model, renderFull, renderSuffix } from '../../infra/kits/chat-tokens/index.ts';
import type { SamplerCore } from '../../infra/kits/embedded-policy/sampler-core.ts';
import type { Bug } from '../../infra/tasks/generated/bug.ts';
import { offeredTools, opening } from '../../infra/tasks/generated/demonstrations.ts';
import { openRepository } from './repository.ts';

/** A rollout without sandbox, gateway and workflow, with the same ids and the same reward for far less CPU. */
export interface SimulatedRollout {
  readonly tokens: readonly number[];
  readonly mask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  readonly reward: number;
}

export interface SimulationDependencies {
  readonly model: Model;
  readonly sampler: SamplerCore;
  readonly maxTurns: number;
  readonly maxTokensPerTurn: number;
  readonly contextLength: number;
  readonly topP: number;
}

export async function simulateRollout(
  { model, sampler, maxTurns, maxTokensPerTurn, contextLength, topP }: SimulationDependencies,
  bug: Bug,
  id: string,
  seed: number,
): Promise<SimulatedRollout> {
  const repository = openRepository(bug);
  const tokens = renderFull(model, { messages: opening(bug), tools: offeredTools });
  const mask: (0 | 1)[] = tokens.map(() => 0);
  const logprobs: number[] = tokens.map(() => 0);
  let before = false;
  for (let turn = 0; turn < maxTurns; turn += 1) {
    const tokensLeft = Math.min(maxTokensPerTurn, contextLength - tokens.length);
    if (tokensLeft < 1) break;
    const parser = model.family.createParser({ tokens: model.tokens, tools: offeredTools, promptIds: tokens });
    const request = {
      requestId: `${id}/${turn}`,
      tokenIds: [...tokens],
      maxTokens: tokensLeft,
      stopTokenIds: model.stopTokenIds,
    };
    const sampledIds: number[] = [];
    for await (const event of sampler.generate({ ...request, topP, seed: seed + turn })) {
      if (event.type !== 'token') continue;
      tokens.push(event.tokenId);
      mask.push(1);
      logprobs.push(event.logprob);
      if (!model.stopTokenIds.includes(event.tokenId)) sampledIds.push(event.tokenId);
    }
    const events = [...parser.push(sampledIds), ...parser.end()];
    const calls = events.flatMap((event) => (event.kind === 'call' ? [event.call] : []));
    const last = events.some(({ kind }) => kind === 'reasoning');
    // Mini would remind the model once; here a reply without a call ends the rollout.
    if (calls.length === 0) break;
    const answers: Message[] = [];
    for (const call of calls) {
      const text = repository.call({ ...call, id: 'call' });
      if (text === null) return { tokens, mask, logprobs, reward: repository.solved() ? 1 : 0 };
      answers.push({ role: 'tool', callId: 'call', name: call.name, text });
    }
    const suffix = renderSuffix(model, answers, { lastSampledId: tokens.at(-1), reasoned: { last, before } });
    before ||= last;
    if (suffix === null) throw new Error('the prompts of this chat template do not extend each other');
    if (tokens.length + suffix.length >= contextLength) break;
    for (const token of suffix) {
      tokens.push(token);
      mask.push(0);
      logprobs.push(0);
    }
  }
  return { tokens, mask, logprobs, reward: repository.solved() ? 1 : 0 };
}
