import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { describeIssue, oneOf } from '../../workflows/contracts/input.ts';
import { findLogParser, logParserNames } from '../kits/test-logs/index.ts';

/** The path of the file in a task's bundle. It is next to `tests/`, so that it never enters a sandbox. */
export const gradingFile = 'grading.json';

const names = z.array(z.string());

const grading = z.object({
  /** Tests that fail at the base commit and must pass. */
  failToPass: names.min(1),
  /** Tests that pass at the base commit and must still pass. */
  passToPass: names.default([]),
  /** The parser of the output of `tests/test.sh`: temper's name or the data set's, for example `parse_log_pytest`. */
  logParser: z.string().min(1),
  /** Whether the output names passing tests. With `fail-only` it names failures alone, and a test that it omits has passed. */
  rule: oneOf(['pass-and-fail', 'fail-only']).default('pass-and-fail'),
  /** The commit that the data set names, for information. The base commit of a rollout is temper's own. */
  baseCommit: z.string().nullable().default(null),
});

/**
 * The grading of a task whose tests write no reward. It is judged outside the sandbox, test by test, from the output and exit
 * status of `tests/test.sh`. The same shell first runs `tests/prepare.sh`, if it exists; `$TEMPER_TESTS` is the directory of
 * both. Data sets of the SWE-bench family are graded this way.
 */
export type Grading = z.output<typeof grading>;
/** The content of the file, in which fields with a default may be omitted. */
export type GradingFile = z.input<typeof grading>;

/** Parses the file. Throws TemperFailure MalformedTask that names the field, and UnsupportedTask for an unknown parser. */
export function parseGrading(text: string): Grading {
  const value = parseJson(text);
  const parsed = grading.safeParse(value);
  if (parsed.success) {
    requireParser(parsed.data.logParser);
    return parsed.data;
  }
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, value));
  throw new TemperFailure('MalformedTask', `${gradingFile}: ${problems.join('; ')}`);
}

/** Rejects an unknown parser before the rollout, whose work would otherwise be lost at its end. */
function requireParser(name: string): void {
  if (findLogParser(name) !== null) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `${gradingFile}: logParser: expected a parser that temper has, got ${JSON.stringify(name)}; it has ${logParserNames.join(', ')}`,
  );
}

function parseJson(text: string): unknown {
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
