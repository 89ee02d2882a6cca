import { bareId, createGoResults, type GoId, qualifiedId } from './go-results.ts';
import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { PASS: 'PASSED', FAIL: 'FAILED', SKIP: 'SKIPPED' };
const startMark = '=== RUN ';
const started = /^=== RUN +(\S+)$/;
const ended = /^ *--- (PASS|FAIL|SKIP): (\S+) \(\d/;
const failure = '--- FAIL: ';
/** Results that a test cannot have before it began. */
const others = ['--- PASS: ', '--- SKIP: '];
const packageLine = /^(ok {2}|FAIL|---)\t(\S+)(?:\t| \[| *$)/;
/** A package whose tests could not be built, which therefore have no results. */
export const unbuilt = /^FAIL\t(\S+) \[(?:build|setup) failed\]/;

/** Reads ids with their package: `example.com/pkg.TestA/case`. */
export const goText: LogParser = createParser(qualifiedId);

/** Reads ids in SWE-bench's spelling, the test's name alone: the worst of all tests of that name counts. */
export const goTextNames: LogParser = createParser(bareId);

/**
 * Reads ids as Multi-SWE-bench does for some repositories: a result is that of the test around it, `TestA/case` is `TestA`. A
 * skipped sub-test changes nothing.
 */
export const goTextParents: LogParser = {
  parse: (log) => {
    const { tests, failedElsewhere, problems } = goTextNames.parse(log);
    const collector = createResultCollector();
    const parentOf = (id: string): string => (id.includes('/') ? id.slice(0, id.lastIndexOf('/')) : id);
    for (const [id, status] of tests)
      if (status !== 'SKIPPED' || !id.includes('/')) collector.record(parentOf(id), status);
    for (const [id, status] of failedElsewhere) collector.recordOutside(parentOf(id), status);
    return { ...collector.finish(), problems };
  },
};

/**
 * Reads `go test -v`. The tests of a package come before the line that names the package. Output without a line end stands
 * before the test's result on the same line: a failure counts there, and a pass of a test that has begun.
 */
function createParser(idOf: GoId): LogParser {
  return {
    parse: (log) => {
      const results = createGoResults(idOf);
      let waiting: (readonly [test: string, status: TestStatus | null])[] = [];
      let begunTests = new Set<string>();
      const flush = (packagePath: string | null): void => {
        for (const [test, status] of waiting) {
          if (status === null) results.started(packagePath, test);
          else results.ended(packagePath, test, status, { suite: packagePath ?? '', title: test });
        }
        waiting = [];
        begunTests = new Set();
      };
      const inText = (line: string): RegExpExecArray | null => {
        const at = Math.max(...others.map((one) => line.lastIndexOf(one)));
        const found = at === -1 ? null : ended.exec(line.slice(at));
        return begunTests.has(found?.[2] ?? '') ? found : null;
      };
      for (const line of linesOf(log)) {
        const begun = started.exec(line.slice(Math.max(0, line.lastIndexOf(startMark))))?.[1];
        const [, word = '', test] =
          ended.exec(line) ?? ended.exec(line.slice(Math.max(0, line.lastIndexOf(failure)))) ?? inText(line) ?? [];
        const status = statuses[word];
        if (begun !== undefined) {
          waiting.push([begun, null]);
          begunTests.add(begun);
        }
        if (begun === undefined && test !== undefined && status !== undefined) waiting.push([test, status]);
        else if (line.startsWith('panic: ')) results.crashed(line);
        const broken = unbuilt.exec(line)?.[1];
        const [, how, packagePath] = packageLine.exec(line) ?? [];
        if (broken !== undefined) results.broken(broken);
        else if (packagePath !== undefined) {
          results.package(packagePath, how === 'FAIL' ? 'FAILED' : 'PASSED');
          flush(packagePath);
        }
      }
      flush(null);
      return results.finish();
    },
  };
}
