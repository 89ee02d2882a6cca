import { z } from 'zod';
import { integer } from '../../../workflows/contracts/input.ts';
import { isRecord } from '../../is-record.ts';
import { runnerOf } from '../../kits/test-logs/index.ts';
import { maybeJson, optional, parseRow, required, rowFailure } from '../rows/row.ts';
import { rowFormat } from '../rows/row-format.ts';
import { sweFiles } from '../swe/swe-task.ts';

/** An object with test names as keys. Its values, the results, are not used. */
const tests = maybeJson(
  z.record(z.string(), z.unknown(), { error: 'expected an object of test names' }).nullish(),
).transform((value) => Object.keys(value ?? {}));

const issue = z.looseObject({ title: optional('a title'), body: optional('a text') });

const multiSweBenchRow = z.looseObject({
  org: required('the owner of a repository'),
  repo: required('the name of a repository'),
  number: integer(1, 1_000_000_000),
  /** Requests of one repository whose tests report in another way have a parser of their own, by one of these names. */
  number_interval: optional('a name such as fd_233_to_58'),
  tag: optional('a version'),
  base: maybeJson(z.looseObject({ sha: required('a commit') }, { error: 'expected an object with sha' })),
  resolved_issues: maybeJson(z.array(issue, { error: 'expected a list of issues' })),
  /** The names that the fix adds and the tests use. Older rows have none. */
  hints: optional('a text'),
  fix_patch: optional('a patch'),
  test_patch: required('a patch'),
  /** Tests that pass with the fix, and at the base commit fail (f2p), are skipped (s2p) or do not exist (n2p). */
  f2p_tests: tests,
  s2p_tests: tests,
  n2p_tests: tests,
  p2p_tests: tests,
});

/** The only test of some rows: all of them passed, by a text that only their own harness knows. */
const allTests = 'all tests';

/** The patches in the published images, which are deleted before the agent starts. */
const remove = ['/home/fix.patch', '/home/test.patch'];

/** Runners whose repositories have their dependencies in the home of root (`~/.m2`, `~/.gradle`), which only root may read. */
const inHomeOfRoot: readonly (string | null)[] = ['maven', 'gradle-tasks'];

/** Runs the images' script with another path for its patch: the account of the tests cannot write the original one. */
const testCommand =
  'sed "s#/home/test.patch#$TEMPER_TESTS/test.patch#g" /home/test-run.sh >"$TEMPER_TESTS/run.sh" && bash "$TEMPER_TESTS/run.sh"';

/**
 * Multi-SWE-bench and Multi-SWE-RL, with repositories in seven languages. The published images contain a script that applies
 * the test patch and runs the tests (`/home/test-run.sh`). Each repository has a log parser of its own.
 */
export const multiSweBench = rowFormat({
  isOffline: true,
  idOf: (value) =>
    isRecord(value) && typeof value.org === 'string' && typeof value.repo === 'string'
      ? `${value.org}__${value.repo}-${value.number}`
      : null,
  toFiles(row, { options }) {
    const fields = parseRow(multiSweBenchRow, row);
    const failToPass = [...new Set([...fields.f2p_tests, ...fields.s2p_tests, ...fields.n2p_tests])];
    if (failToPass.length === 0) {
      throw rowFailure('MalformedTask', row, 'f2p_tests: expected at least one test that the fix makes pass, got none');
    }
    if (failToPass.includes(allTests)) {
      const text = `f2p_tests: expected names of tests, got ${JSON.stringify(allTests)}, which no log has`;
      throw rowFailure('UnsupportedTask', row, text);
    }
    const { org, repo, number } = fields;
    const logParser = parserOf(fields);
    const issues = fields.resolved_issues.map(({ title, body }) => [title, body].filter(Boolean).join('\n\n'));
    return sweFiles({
      instruction: [...issues, fields.hints?.trim()].filter(Boolean).join('\n\n'),
      image: `mswebench/${org}_m_${repo}:pr-${number}`.toLowerCase(),
      workdir: `/home/${repo}`,
      user: options.user ?? (inHomeOfRoot.includes(runnerOf(logParser)) ? 'root' : undefined),
      workspace: null,
      testPatch: fields.test_patch,
      commandApplies: true,
      solution: fields.fix_patch === null ? null : { patch: fields.fix_patch },
      remove,
      setup: [],
      testCommand,
      evalScript: null,
      grading: {
        failToPass,
        passToPass: fields.p2p_tests,
        logParser,
        baseCommit: fields.base.sha,
      },
    });
  },
});

/** The name of a row's parser in the harness of Multi-SWE-bench (multi_swe_bench/harness/instance.py, `Instance.create`). */
function parserOf({ org, repo, number_interval: interval, tag }: z.output<typeof multiSweBenchRow>): string {
  if (interval) return `${org}/${interval}`;
  return tag ? `${org}/${repo}_${tag.replaceAll('.', '_')}` : `${org}/${repo}`;
}
