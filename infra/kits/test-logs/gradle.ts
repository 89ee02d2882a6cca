import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { PASSED: 'PASSED', FAILED: 'FAILED', SKIPPED: 'SKIPPED' };
/** The time that some loggers add. */
const time = / \(\d+(?:\.\d+)?s\)$/;
/** A status that another process wrote into: `PASSEDWARNING: …`. */
const interrupted = / (PASSED|FAILED|SKIPPED)(?=[^\sa-z])/;
/** A status alone, after the line on which the text of another process follows the test's name. */
const alone = /^ ?(PASSED|FAILED|SKIPPED)(?:$|[^\sa-z])/;
const names = / > \S/;
/** The text of another process after a test's name, such as a warning of the virtual machine. */
const warning = /(?:WARNING|OpenJDK|Picked up|SLF4J)\b.*$/s;
const notes = / (?:STARTED|STANDARD_OUT|STANDARD_ERROR)$/;
const task = /^> Task :(\S+)(?: (FAILED|SKIPPED|UP-TO-DATE|NO-SOURCE|FROM-CACHE))?$/;
const outcomes: Readonly<Record<string, TestStatus>> = {
  FAILED: 'FAILED',
  SKIPPED: 'SKIPPED',
  'NO-SOURCE': 'SKIPPED',
};

type Spelling = 'tests' | 'tasks-too' | 'any-line';

/** Reads the tests that Gradle logs (`testLogging { events … }`), with their class before them. */
export const gradle: LogParser = createParser('tests');

/** Reads Gradle's tests, and its tasks as if they were tests: `core:compileJava`. So does Multi-SWE-bench. */
export const gradleTasks: LogParser = createParser('tasks-too');

/**
 * Reads each line that ends with a status, whether it names a class or not, as SWE-bench and SWE-rebench-V2 do
 * (`parse_log_gradle_custom`).
 */
export const gradleLines: LogParser = createParser('any-line');

/**
 * Gradle writes a test's name, and then its status. Text that another process writes meanwhile stands between the two, or behind
 * the status on its line, since only Gradle's next line ends it.
 */
function createParser(spelling: Spelling): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      let waiting: string | null = null;
      for (const raw of linesOf(log)) {
        const line = raw.trim();
        const [name, status] = resultIn(line) ?? [];
        const isTest = name !== undefined && !name.startsWith('>') && (spelling === 'any-line' || names.test(name));
        const late = alone.exec(raw.trimEnd())?.[1];
        if (isTest) collector.record(name, status ?? 'FAILED');
        else if (late !== undefined && waiting !== null) collector.record(waiting, statuses[late] ?? 'FAILED');
        if (isTest || late !== undefined) waiting = null;
        else waiting = waitingIn(raw) ?? waiting;
        const [, path, outcome = ''] = task.exec(line) ?? [];
        if (path === undefined) continue;
        if (spelling === 'tasks-too') collector.record(path, outcomes[outcome] ?? 'PASSED');
        if (outcome === 'FAILED' && /(?:^|:)compile[A-Z]/.test(path)) collector.recordProblem('collection-error', path);
      }
      return collector.finish();
    },
  };
}

/** Reads a test and its status: `com.x.FooTest > adds() PASSED`, with more names between for nested classes. */
function resultIn(line: string): readonly [name: string, status: TestStatus | undefined] | null {
  const text = line.replace(time, '').trimEnd();
  const word = Object.keys(statuses).find((one) => text.endsWith(one)) ?? '';
  const before = text.slice(0, text.length - word.length);
  if (word !== '' && /\s$/.test(before.slice(-1))) return [before.trim(), statuses[word]];
  const found = interrupted.exec(line);
  const name = line.slice(0, found?.index ?? 0);
  return found !== null && names.test(name) ? [name, statuses[found[1] ?? '']] : null;
}

/** Returns the name of a test whose status was not written on its line. */
function waitingIn(line: string): string | null {
  if (!/^[^\s>]/.test(line) || !names.test(line) || notes.test(line.trimEnd())) return null;
  return line.replace(warning, '').trim();
}
