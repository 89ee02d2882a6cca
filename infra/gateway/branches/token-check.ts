import { crc32 } from 'node:zlib';
import type { TurnRecord } from './turn-record.ts';

/** The reason why a turn is not trained. */
export type MaskReason = 'prompt-mismatch' | 'incomplete-sampling' | 'aborted' | 'empty' | 'upstream';

export interface CheckedTurns {
  /** The turns that are not trained, with the reason. */
  readonly masked: ReadonlyMap<number, MaskReason>;
  /** The totals of each turn's branch, up to the turn's last sampled token. */
  readonly ends: readonly BranchEnd[];
}

export interface BranchEnd {
  readonly turns: number;
  readonly length: number;
  readonly checksum: number;
  readonly aborts: number;
}

const start: BranchEnd = { turns: 0, length: 0, checksum: 0, aborts: 0 };

/**
 * Checks that tokens went in and out unchanged: the prompt that the engine received must be the branch's ids so far plus the
 * turn's new ones, and each sampled token must have its logprob and its policy version. A turn that fails is masked alone, and so
 * is one that was cut, unless `trainsCut` says otherwise.
 */
export function checkTurns(turns: readonly TurnRecord[], trainsCut = false): CheckedTurns {
  const masked = new Map<number, MaskReason>();
  const ends: BranchEnd[] = [];
  for (const turn of turns) {
    const before = ends[turn.parent ?? -1] ?? start;
    if (turn.upstream !== undefined) {
      masked.set(turn.index, 'upstream');
      const length = turn.promptLength + turn.upstream.sampledTokens;
      ends.push({ turns: before.turns + 1, aborts: before.aborts, length, checksum: 0 });
      continue;
    }
    const length = before.length + turn.promptIds.length;
    const checksum = extendChecksum(before, turn.promptIds);
    const reason =
      length !== turn.promptLength || checksum !== turn.promptChecksum ? 'prompt-mismatch' : faultOf(turn, trainsCut);
    if (reason !== null) masked.set(turn.index, reason);
    ends.push({
      turns: before.turns + 1,
      aborts: before.aborts + (turn.aborts ?? 0),
      length: length + turn.sampledIds.length,
      checksum: extendChecksum({ length, checksum }, turn.sampledIds),
    });
  }
  return { masked, ends };
}

/** Adds ids to the checksum of the text that was sent to the engine. The time depends on the new ids only. */
function extendChecksum({ length, checksum }: Pick<BranchEnd, 'length' | 'checksum'>, ids: readonly number[]): number {
  if (ids.length === 0) return checksum;
  const text = ids.join(',');
  return crc32(length === 0 ? text : `,${text}`, checksum);
}

function faultOf({ sampledIds, logprobs, versions, finishReason }: TurnRecord, trainsCut: boolean): MaskReason | null {
  if (sampledIds.length === 0) return 'empty';
  if (finishReason === 'abort' && !trainsCut) return 'aborted';
  let covered = 0;
  for (const { start, end } of versions) {
    if (start !== covered) return 'incomplete-sampling';
    covered = end;
  }
  const whole = covered === sampledIds.length && logprobs.length === sampledIds.length;
  return whole && logprobs.every(Number.isFinite) ? null : 'incomplete-sampling';
}
