import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { RequiredList, Resolution, Share, Shortfall } from '../../../workflows/contracts/resolution.ts';
import type { ParsedTests } from '../../kits/test-logs/index.ts';
import { createTestFinder } from './find-test.ts';

export interface RequiredTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /**
   * - `pass-and-fail`: a required test must be seen to be good
   * - `fail-only`: the runner names failures alone, so a test that it does not name is good, once the tests are known to
   *   have run (SWE-bench: repositories whose logs have no passing tests)
   */
  readonly rule: 'pass-and-fail' | 'fail-only';
}

/** How the command that ran the tests ended, seen from outside of it; null where it had to be killed. */
export interface CommandEnd {
  readonly exitCode: number | null;
}

/** A resolution goes into workflow history: a few names explain it, the log has the others. */
const namedShortfalls = 5;
const idCharacters = 160;

/**
 * Judges a patch as SWE-bench does (swebench/harness/grading.py): a test passed if it is PASSED or XFAIL; one of
 * PASS_TO_PASS may also be skipped, one of FAIL_TO_PASS may not; one that is missing did not pass. Stricter in two points:
 * skips count only where some required test passed, so that skipping everything solves nothing; and XPASS, which the harness
 * does not know, is no pass.
 *
 * A failing command of which the report shows no failure is not believed: something else than the runner wrote it, or the
 * runner did not get to its end. What failed elsewhere in the log counts against tests of its name, and explains no status.
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

/** What became of each required test, good or not: a shortfall is one that is not. */
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

/** For a log that can't be read at all, for example without its section. */
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
  if (exitCode === null) return 'the command that runs the tests did not end by itself';
  // XPASS does not count: most runners end well with it.
  const failed = [...tests.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  const unloaded = problems.some(({ kind }) => kind === 'collection-error');
  if (exitCode !== 0 && !failed && !unloaded) {
    const said = tests.size === 0 ? 'no test' : `${tests.size} tests and no failure among them`;
    return `the command that runs the tests ended with exit code ${exitCode}, but its log shows ${said}${problemIn(problems)}`;
  }
  const proven = tests.size > 0 || (exitCode === 0 && problems.length === 0);
  return rule === 'fail-only' && !proven ? `nothing shows that the tests ran${problemIn(problems)}` : null;
}

const passing: readonly Shortfall['status'][] = ['PASSED', 'XFAIL'];
const failing: readonly Shortfall['status'][] = ['FAILED', 'ERROR', 'XPASS', 'AMBIGUOUS'];

function showsRun(status: Shortfall['status'], rule: RequiredTests['rule']): boolean {
  return passing.includes(status) || (rule === 'fail-only' && status === 'MISSING');
}

/** `ran`: some required test passed. Skips alone show nothing. */
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
