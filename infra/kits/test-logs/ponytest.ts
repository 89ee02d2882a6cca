import { googletest } from './googletest.ts';
import { linesOf } from './lines.ts';
import type { LogParser } from './log-parser.ts';
import { createResultCollector, mergeRuns } from './result-collector.ts';

const result = /^(?:---- (Passed)|\*\*\*\* FAILED): (\S+)$/;

/** Reads the tests of ponyc: those of its libraries by PonyTest, and those of the compiler by GoogleTest. */
export const ponytest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    for (const line of linesOf(log)) {
      const [, passed, name] = result.exec(line.trim()) ?? [];
      if (name !== undefined) collector.record(name, passed === undefined ? 'FAILED' : 'PASSED');
    }
    return mergeRuns([collector.finish(), googletest.parse(log)]);
  },
};
