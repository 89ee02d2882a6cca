import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { RequiredList, Resolution, Share, Shortfall } from '../../../workflows/contracts/resolution.ts';
import type { ParsedTests } from '../../kits/test-logs/index.ts';
import { createTestFinder } from './find-test.ts';

export interface RequiredTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /**
   * - `pass-and-fail`: the log must show that a required test is good
   * - `fail-only`: the runner names failures alone, so a test that it does not name is good if the tests are known to have
   *   run (SWE-bench: repositories whose logs have no passing tests)
   */
  readonly rule: 'pass-and-fail' | 'fail-only';
}

/** The end of the command that ran the tests, as observed from outside it. */
export interface CommandEnd {
  /** Null if the command had to be killed. */
  readonly exitCode: number | null;
}

/** Limits of the names in a resolution, which becomes part of the workflow's history; the log has the others. */
const namedShortfalls = 5;
const idCharacters = 160;

/**
 * Judges a patch as SWE-bench does (swebench/harness/grading.py): a test is good if it is PASSED or XFAIL; one of
 * PASS_TO_PASS may also be skipped, one of FAIL_TO_PASS must not; a missing test is not good. This is stricter in two points:
 * skips count only if some required test passed, so that skipping everything solves nothing; and XPASS, which the harness
 * does not know, is not a pass.
 *
 * A failing command whose report shows no failure is refused: something other than the runner wrote the report, or the
 * runner did not finish. A failure outside the report counts against the test of its name, and does not explain the exit code.
 */
export function resolve(required: RequiredTests, parsed: ParsedTests, { exitCode }: CommandEnd): Resolution {
  const total = required.failToPass.length + required.passToPass.length;
  if (total === 0)
    throw new TemperFailure(
      'MalformedTask',
      'expected FAIL_TO_PASS or PASS_TO_PASS to name a test, got none: add those that a solution must pass',
    );
  const refusal = refusalOf(required, parsed, exitCode);
  if (refusal !== null) return refused(required, refusal);
  const found = findRequired(required, parsed);
  const ran = found.some(({ status }) => showsRun(status, required.rule));
  const shortfalls = found.filter((one) => !isGood(one, required.rule, ran));
  const shareOf = (list: RequiredList, ids: readonly string[]): Share => ({
    good: ids.length - shortfalls.filter((one) => one.list === list).length,
    total: ids.length,
  });
  const failToPass = shareOf('FAIL_TO_PASS', required.failToPass);
  const passToPass = shareOf('PASS_TO_PASS', required.passToPass);
  return {
    status: statusOf(failToPass, passToPass),
    failToPass,
    passToPass,
    decidedBy: shortfalls.slice(0, namedShortfalls).map((one) => ({ ...one, id: one.id.slice(0, idCharacters) })),
    reason: explain(shortfalls, parsed),
  };
}

/** Returns the status of each required test, good or not. */
export function findRequired(
  required: RequiredTests,
  { tests, failedElsewhere }: Pick<ParsedTests, 'tests' | 'failedElsewhere'>,
): readonly Shortfall[] {
  const find = createTestFinder(new Map([...failedElsewhere, ...tests]));
  return [
    ...required.failToPass.map((id) => ({ list: 'FAIL_TO_PASS' as const, id, status: find(id) })),
    ...required.passToPass.map((id) => ({ list: 'PASS_TO_PASS' as const, id, status: find(id) })),
  ];
}

/** Returns the resolution of a log that cannot be read at all, for example because a mark is missing. */
export function refused({ failToPass, passToPass }: RequiredTests, reason: string): Resolution {
  return {
    status: 'refused',
    failToPass: { good: 0, total: failToPass.length },
    passToPass: { good: 0, total: passToPass.length },
    decidedBy: [],
    reason,
  };
}

function refusalOf({ rule }: RequiredTests, { tests, problems }: ParsedTests, exitCode: number | null): string | null {
  if (exitCode === null) return 'the command that runs the tests had to be killed';
  // XPASS explains no exit code: most runners exit with 0 despite one.
  const failed = [...tests.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  const unloaded = problems.some(({ kind }) => kind === 'collection-error');
  if (exitCode !== 0 && !failed && !unloaded) {
    const shown = tests.size === 0 ? 'no test' : `${tests.size} tests and no failure among them`;
    return `the command that runs the tests ended with exit code ${exitCode}, but its log shows ${shown}${problemIn(problems)}`;
  }
  const proven = tests.size > 0 || (exitCode === 0 && problems.length === 0);
  return rule === 'fail-only' && !proven ? `nothing shows that the tests ran${problemIn(problems)}` : null;
}

const passing: readonly Shortfall['status'][] = ['PASSED', 'XFAIL'];
const failing: readonly Shortfall['status'][] = ['FAILED', 'ERROR', 'XPASS', 'AMBIGUOUS'];

function showsRun(status: Shortfall['status'], rule: RequiredTests['rule']): boolean {
  return passing.includes(status) || (rule === 'fail-only' && status === 'MISSING');
}

/** Whether a required test is as it should be. `ran`: some required test passed; skips alone do not show that tests ran. */
function isGood({ list, status }: Shortfall, rule: RequiredTests['rule'], ran: boolean): boolean {
  if (status === 'SKIPPED') return ran && (list === 'PASS_TO_PASS' || rule === 'fail-only');
  return rule === 'fail-only' ? !failing.includes(status) : passing.includes(status);
}

function statusOf(failToPass: Share, passToPass: Share): Resolution['status'] {
  if (passToPass.good < passToPass.total) return 'unresolved';
  if (failToPass.good === failToPass.total) return 'resolved';
  return failToPass.good > 0 ? 'partial' : 'unresolved';
}

function explain(shortfalls: readonly Shortfall[], { problems }: ParsedTests): string {
  const [first] = shortfalls;
  if (first === undefined) return 'every required test is as it should be';
  const others = shortfalls.length === 1 ? '' : `, and ${shortfalls.length - 1} more`;
  return `${first.id.slice(0, idCharacters)} of ${first.list} is ${first.status}${others}${problemIn(problems)}`;
}

function problemIn([first]: ParsedTests['problems']): string {
  return first === undefined ? '' : ` (${first.kind}: ${first.detail})`;
}
