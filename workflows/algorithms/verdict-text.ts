import type { Verdict } from '../contracts/verdict.ts';

/** Formats a verdict in one line: the results of the tests and, for tests that are judged by their log, which of them decided. */
export function verdictText(verdict: Verdict): string {
  return `${resultText(verdict)}${verdict.cached === true ? ' (cached)' : ''}`;
}

function resultText({ kind, value, passed, failed, resolution }: Verdict): string {
  const counts = passed + failed === 0 ? '' : `, ${passed} passed, ${failed} failed`;
  if (resolution === undefined) return `${kind}${value === null ? '' : `, the tests wrote ${value}`}${counts}`;
  const { status, failToPass, passToPass, reason } = resolution;
  const shares =
    status === 'refused'
      ? ''
      : `, FAIL_TO_PASS ${failToPass.good} of ${failToPass.total}, PASS_TO_PASS ${passToPass.good} of ${passToPass.total}`;
  const named = kind === 'graded' || kind === 'refused' ? status : kind;
  return `${named}${shares}${counts}: ${reason}`;
}
