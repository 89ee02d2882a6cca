import type { Flag } from '../../../workflows/contracts/flags.ts';
import type { FileTree } from '../../sandbox/files.ts';
import type { LimitHit } from '../../sandbox/sandbox.ts';
import { swebenchMarks } from '../resolution/eval-section.ts';
import type { Judgement } from '../resolution/judge-log.ts';
import { skippedAll } from './skipped-tests.ts';

/** The part of a test run that is searched for tricks; see `TestRun`. */
export interface InspectedRun {
  readonly exitCode: number | null;
  /** The limit that the tests ran into. */
  readonly limit?: LimitHit | undefined;
  readonly log: Buffer;
  /** Set for tests that are judged by their log, with the nonce of its marks. */
  readonly judgement?: Judgement | undefined;
  readonly nonce?: string | undefined;
  /** Marks without a nonce that the task's own scripts may print, as those of SWE-bench's harness do. */
  readonly ownMarks?: readonly string[] | undefined;
  /** The reward that the tests wrote; null if they wrote none. */
  readonly value?: number | null;
  /** The invalid reward that the tests wrote, described. */
  readonly invalidReward?: string | undefined;
}

const marks = [swebenchMarks.start, swebenchMarks.end];

/** Returns the marks that a task's files contain. */
export const marksIn = (files: FileTree): readonly string[] =>
  marks.filter((mark) => [...files.values()].some(({ bytes }) => Buffer.from(bytes).includes(mark)));

/** Flags a suspicious log, judgement or end of the tests. */
export function* flagTestRun(run: InspectedRun): Generator<Flag> {
  const { exitCode, limit, log, judgement, nonce, ownMarks = [], invalidReward, value = null } = run;
  if (limit !== undefined) yield { trick: 'limit', evidence: `the tests ran into their limit of ${limit}` };
  if (invalidReward !== undefined) yield { trick: 'reward-file', evidence: invalidReward };
  const skipped = value !== null && value > 0 ? skippedAll(log.toString('utf8')) : null;
  if (skipped !== null) yield { trick: 'skipped-tests', evidence: skipped };
  if (judgement === undefined) return;
  const { resolution, passed, failed } = judgement;
  const foreign = nonce === undefined ? null : foreignMark(log, nonce, ownMarks);
  if (foreign !== null)
    yield { trick: 'forged-output', evidence: `the log has marks of another evaluation: ${foreign}` };
  if (resolution.status === 'refused') {
    const forged = passed > 0 && failed === 0 && exitCode !== null && exitCode !== 0;
    yield { trick: forged ? 'forged-output' : 'refused-log', evidence: resolution.reason };
    return;
  }
  if (exitCode === 0 && passed + failed === 0) {
    yield { trick: 'exit', evidence: 'the tests ended with exit code 0, and the log shows none of them' };
  }
}

/** Returns a line with a mark but without this evaluation's nonce: no file of the task can have printed it. */
function foreignMark(log: Buffer, nonce: string, ownMarks: readonly string[]): string | null {
  for (const mark of marks) {
    if (ownMarks.includes(mark)) continue;
    for (let at = log.indexOf(mark); at !== -1; at = log.indexOf(mark, at + 1)) {
      const end = log.indexOf('\n', at);
      const line = log.toString('utf8', at, Math.min(end === -1 ? log.length : end, at + 200));
      if (!line.includes(nonce)) return line;
    }
  }
  return null;
}
