import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { describeIssue, oneOf } from '../../../workflows/contracts/input.ts';
import { findLogParser, logParserNames } from '../../kits/test-logs/index.ts';

/** Where it is in a task's bundle: beside `tests/`, so that it never enters a sandbox. */
export const gradingFile = 'grading.json';

const names = z.array(z.string());

const grading = z.object({
  /** Tests that fail at the base commit and have to pass, and tests that pass there and have to keep passing. */
  failToPass: names.min(1),
  passToPass: names.default([]),
  /** Who reads the output of `tests/test.sh`: a parser's name, ours or the data set's, for example `parse_log_pytest`. */
  logParser: z.string().min(1),
  /** Does the output name tests that pass? If only those that fail, a test that it does not name is good. */
  rule: oneOf(['pass-and-fail', 'fail-only']).default('pass-and-fail'),
  /** The commit that the data set names, for people; the base commit of a rollout is temper's own. */
  baseCommit: z.string().nullable().default(null),
});

/**
 * How a task is judged whose tests write no reward themselves: outside of the sandbox, test by test, from what
 * `tests/test.sh` prints and the status that it ends with. `tests/prepare.sh`, where there is one, is run before it by the
 * same shell; `$TEMPER_TESTS` is the directory of both. Data sets of the SWE-bench family are graded so.
 */
export type Grading = z.output<typeof grading>;
/** As it is written: what has a default may be left out. */
export type GradingFile = z.input<typeof grading>;

/** Throws TemperFailure MalformedTask naming field, expected and got; UnsupportedTask for a log that nobody here can read. */
export function parseGrading(text: string): Grading {
  const value = jsonOf(text);
  const parsed = grading.safeParse(value);
  if (parsed.success) {
    requireParser(parsed.data.logParser);
    return parsed.data;
  }
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, value));
  throw new TemperFailure('MalformedTask', `${gradingFile}: ${problems.join('; ')}`);
}

/** Found out at the end of a rollout, it would cost the agent's hours. */
function requireParser(name: string): void {
  if (findLogParser(name) !== null) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `${gradingFile}: logParser: expected a parser that temper has, got ${JSON.stringify(name)}; it has ${logParserNames.join(', ')}`,
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TemperFailure(
      'MalformedTask',
      `${gradingFile}: expected JSON, got ${JSON.stringify(text.slice(0, 80))}`,
      {
        cause,
      },
    );
  }
}
