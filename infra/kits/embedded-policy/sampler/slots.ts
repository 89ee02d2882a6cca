import type { DecodingPass } from '../network/decoding-pass.ts';
import type { Sequence } from './sequence.ts';

export interface Slot {
  readonly index: number;
  /** Number of tokens whose cache is complete: a prefix of `tokens`. */
  cached: number;
  tokens: Int32Array;
  /** Number of known tokens: prompt and sampled ones. */
  length: number;
  /** Weights that the whole cache was computed under; undefined when mixed. */
  generation: number | undefined;
  sequence: Sequence | undefined;
  lastUsed: number;
}

/** The shortest shared prefix for which a sequence waits until another one's prompt is computed. */
const sharedTokensWorthWaiting = 16;

/**
 * The key-value caches, one per slot. A cache stays when its sequence ends, so that the next turn of the same conversation, or
 * another sample of the same prompt, starts from it: computed under the same weights, its bits are the same.
 */
export interface SlotTable {
  readonly slots: readonly Slot[];
  /** Returns a slot ready to run the sequence; 'later' while a shared prefix is being computed; undefined when all are taken. */
  admit(sequence: Sequence, generation: number): Slot | 'later' | undefined;
}

export function createSlotTable(count: number, pass: DecodingPass): SlotTable {
  const slots = Array.from({ length: count }, (_, index): Slot => emptySlot(index));
  let clock = 0;
  return {
    slots,
    admit(sequence, generation) {
      const free = slots.filter((slot) => slot.sequence === undefined);
      if (free.length === 0) return undefined;
      const { donor, reusable, soon } = findPrefix(slots, sequence, generation);
      if (soon - reusable >= sharedTokensWorthWaiting) return 'later';
      const extendsDonor = donor?.sequence === undefined && donor?.cached === reusable;
      const slot = donor !== undefined && extendsDonor ? donor : oldest(free, donor);
      if (donor !== undefined && donor !== slot) pass.copyCache(donor.index, slot.index, reusable);
      clock += 1;
      const { tokens, length } = sequence;
      return Object.assign(slot, { cached: reusable, tokens, length, generation, sequence, lastUsed: clock });
    },
  };
}

function emptySlot(index: number): Slot {
  const tokens = new Int32Array(0);
  return { index, cached: 0, tokens, length: 0, generation: undefined, sequence: undefined, lastUsed: 0 };
}

interface Prefix {
  readonly donor: Slot | undefined;
  /** Number of tokens that can be reused now. */
  readonly reusable: number;
  /** Number of tokens that can be reused once the running slots have computed their known tokens. */
  readonly soon: number;
}

function findPrefix(slots: readonly Slot[], sequence: Sequence, generation: number): Prefix {
  // The last prompt token must be computed for its logits, and all of them if their logprobs are requested.
  const most = sequence.request.promptLogprobs ? 0 : sequence.length - 1;
  let best: Prefix = { donor: undefined, reusable: 0, soon: 0 };
  for (const slot of slots) {
    if (slot.generation !== generation) continue;
    const common = commonPrefix(slot, sequence, most);
    const reusable = Math.min(common, slot.cached);
    const soon = Math.max(best.soon, slot.sequence === undefined ? reusable : common);
    best = reusable > best.reusable ? { donor: slot, reusable, soon } : { ...best, soon };
  }
  return best;
}

function commonPrefix(slot: Slot, sequence: Sequence, most: number): number {
  const end = Math.min(slot.length, most);
  let i = 0;
  while (i < end && slot.tokens[i] === sequence.tokens[i]) i++;
  return i;
}

/** Returns the least recently used slot; the donor itself only if there is no other. */
function oldest(free: readonly Slot[], donor: Slot | undefined): Slot {
  const others = free.filter((slot) => slot !== donor);
  return (others.length > 0 ? others : free).reduce((a, b) => (b.lastUsed < a.lastUsed ? b : a));
}
