import { linesOf } from './lines.ts';
import type { LogParser } from './log-parser.ts';
import { maven } from './maven.ts';
import { createResultCollector } from './result-collector.ts';

/** A command with one test, such as in the trace that a shell writes, and the end of its build. */
const command = /^.*-Dtest=(\S+)/s;
const build = /BUILD (SUCCESS|FAILURE)$/;

/** The id of a build whose command the log does not show. */
const unnamed = '---NO TEST NAME FOUND YET---';

/**
 * Reads several runs of Maven in one log, each of one test, under `set -x`: the id is what `-Dtest` names, and its status is
 * that of the build (SWE-bench's `parse_log_maven`, with its id for a build without such a command). The code under test can print such lines, so a failure that Maven
 * itself names counts against each spelling of that test.
 */
export const mavenBuilds: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let test = unnamed;
    for (const line of linesOf(log)) {
      test = command.exec(line)?.[1]?.replace(/^(['"])(.*)\1$/s, '$2') ?? test;
      const end = build.exec(line.trimEnd())?.[1];
      if (end !== undefined) collector.record(test, end === 'SUCCESS' ? 'PASSED' : 'FAILED');
    }
    const named = maven.parse(log);
    for (const [id, status] of [...named.tests, ...named.failedElsewhere]) {
      for (const spelled of spellingsOf(id)) collector.recordOutside(spelled, status);
    }
    for (const { kind, detail } of named.problems) collector.recordProblem(kind, detail);
    return collector.finish();
  },
};

/** The ways in which `-Dtest` names a method or class of a report: `com.x.FooTest#adds`, `FooTest#adds`, `FooTest`. */
function spellingsOf(id: string): readonly string[] {
  const parts = id.split('.');
  const isMethod = /^[a-z]/.test(parts.at(-1) ?? '');
  const method = isMethod ? parts.pop() : undefined;
  const full = parts.join('.');
  const short = parts.at(-1) ?? '';
  return method === undefined ? [full, short] : [`${full}#${method}`, `${short}#${method}`, full, short];
}
