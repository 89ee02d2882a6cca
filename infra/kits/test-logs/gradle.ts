import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { PASSED: 'PASSED', FAILED: 'FAILED', SKIPPED: 'SKIPPED' };
/** A test: `com.x.FooTest > adds() PASSED`, with more names between for nested classes. */
const result = /^(\S.*) (PASSED|FAILED|SKIPPED)$/s;
const names = / > \S/;
const task = /^> Task :(\S+)(?: (FAILED|SKIPPED|UP-TO-DATE|NO-SOURCE|FROM-CACHE))?$/;
const outcomes: Readonly<Record<string, TestStatus>> = {
  FAILED: 'FAILED',
  SKIPPED: 'SKIPPED',
  'NO-SOURCE': 'SKIPPED',
};

/** Reads the tests that Gradle logs (`testLogging { events … }`), with their class before them. */
export const gradle: LogParser = createParser(false);

/** Reads Gradle's tests, and its tasks as if they were tests: `core:compileJava`. So does Multi-SWE-bench. */
export const gradleTasks: LogParser = createParser(true);

function createParser(tasksToo: boolean): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      for (const raw of linesOf(log)) {
        const line = raw.trim();
        const [, name, word = ''] = result.exec(line) ?? [];
        if (name !== undefined && names.test(name) && !name.startsWith('>'))
          collector.record(name, statuses[word] ?? 'FAILED');
        const [, path, outcome = ''] = task.exec(line) ?? [];
        if (path === undefined) continue;
        if (tasksToo) collector.record(path, outcomes[outcome] ?? 'PASSED');
        if (outcome === 'FAILED' && /(?:^|:)compile[A-Z]/.test(path)) collector.recordProblem('collection-error', path);
      }
      return collector.finish();
    },
  };
}
