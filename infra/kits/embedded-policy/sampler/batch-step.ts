import type { DecodingPass, RowGroup } from '../network/decoding-pass.ts';
import type { FinishReason, PauseMode } from '../sampler-core.ts';
import { chooseToken } from './choose-token.ts';
import { appendToken, notePromptLogprobs, type Sequence } from './sequence.ts';
import type { Slot, SlotTable } from './slots.ts';

export interface SamplerState {
  readonly pass: DecodingPass;
  readonly table: SlotTable;
  /** Sequences in order of arrival. */
  readonly waiting: Sequence[];
  /** Callbacks for when nothing runs any more. */
  readonly drained: (() => void)[];
  readonly counts: SamplerCounts;
  mode: PauseMode | 'running';
  /** Number of weight changes. */
  generation: number;
  version: string;
  checksum: string;
}

export interface SamplerCounts {
  generatedTokens: number;
  prefilledTokens: number;
  reusedTokens: number;
  steps: number;
  busySlots: number;
}

/** Prompt tokens computed in one step beside one row per decoding sequence. Limits the delay that a long prompt causes. */
export const prefillRowsPerStep = 256;

/** Makes one step of continuous batching: admits sequences, computes one batch of rows, samples, and retires finished ones. */
export function step(state: SamplerState): void {
  if (state.mode === 'running') admitWaiting(state);
  const groups = collectGroups(runningSlots(state));
  const firstRows = state.pass.run(groups.map(([, group]) => group));
  state.counts.steps += 1;
  state.counts.busySlots += groups.length;
  for (const [index, [slot, group]] of groups.entries()) advance(state, slot, group, firstRows[index] ?? 0);
}

export function runningSlots(state: SamplerState): Slot[] {
  return state.table.slots.filter((slot) => slot.sequence !== undefined);
}

export function finish(state: SamplerState, sequence: Sequence, reason: FinishReason): void {
  const slot = state.table.slots.find((candidate) => candidate.sequence === sequence);
  if (slot === undefined) state.waiting.splice(state.waiting.indexOf(sequence), 1);
  else slot.sequence = undefined;
  sequence.emit({ type: 'finish', reason });
  if (runningSlots(state).length === 0) for (const resolve of state.drained.splice(0)) resolve();
}

function admitWaiting(state: SamplerState): void {
  for (const sequence of [...state.waiting]) {
    const slot = state.table.admit(sequence, state.generation);
    if (slot === undefined) return;
    if (slot === 'later') continue;
    state.waiting.splice(state.waiting.indexOf(sequence), 1);
    state.counts.reusedTokens += slot.cached;
  }
}

function collectGroups(busy: readonly Slot[]): (readonly [Slot, RowGroup])[] {
  const groups: (readonly [Slot, RowGroup])[] = [];
  let budget = prefillRowsPerStep;
  for (const slot of busy) {
    const group = nextRows(slot, budget);
    if (group === undefined) continue;
    if (group.tokens.length > 1) budget -= group.tokens.length;
    groups.push([slot, group]);
  }
  return groups;
}

/** Returns the next rows of a sequence: one to decode, or a part of the tokens that are known but not cached. */
function nextRows({ index, sequence, cached }: Slot, budget: number): RowGroup | undefined {
  if (sequence === undefined) return undefined;
  const { tokens, length, request, promptLogprobs } = sequence;
  const wantsAll = promptLogprobs !== undefined;
  // Prompt logprobs are those of temperature 1, so the row that samples the first token is a group of its own.
  const known = wantsAll ? request.tokenIds.length - 1 - cached : length - cached;
  const take = known === 1 ? 1 : Math.min(known, budget);
  if (take === 0) return undefined;
  return {
    slot: index,
    firstPosition: cached,
    tokens: tokens.subarray(cached, cached + take),
    logits: wantsAll ? 'all' : take === known ? 'last' : 'none',
    temperature: wantsAll || request.temperature === 0 ? 1 : request.temperature,
  };
}

function advance(state: SamplerState, slot: Slot, group: RowGroup, firstRow: number): void {
  const { sequence } = slot;
  if (sequence === undefined) return;
  const { pass, counts } = state;
  const count = group.tokens.length;
  slot.cached += count;
  if (slot.cached <= sequence.request.tokenIds.length) counts.prefilledTokens += count;
  if (group.logits === 'all') {
    notePromptLogprobs(sequence, group.firstPosition, count, (i, token) => pass.logprob(firstRow + i, token));
  }
  if (group.logits !== 'last') return;
  const tokenId = chooseToken(pass.probabilities(firstRow), sequence.request, sequence.random);
  const logprob = pass.logprob(firstRow, tokenId);
  if (!Number.isFinite(logprob)) {
    throw new Error(
      `sampler: expected a finite logprob, got ${logprob}; weights ${state.checksum} overflow: load others`,
    );
  }
  counts.generatedTokens += 1;
  const reason = appendToken(sequence, tokenId, logprob, state.version);
  slot.length = sequence.length;
  if (reason !== undefined) finish(state, sequence, reason);
}
