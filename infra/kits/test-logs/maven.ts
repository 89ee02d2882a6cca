import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

/** The result of a class, or of a method where surefire prints those; the text before it may be anything. */
const ofClass =
  /^Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+), Time elapsed: [\d.,]+ \w+(?: *<<< (?:FAILURE|ERROR)!)?(?: --? in (\S.*))?$/s;
const elapsed = 'Time elapsed: ';
const time = /^Time elapsed: [\d.,]+ \w+(?: *<<< (FAILURE|ERROR)!)?$/;
const level = /^\[(?:INFO|WARNING|ERROR)\] /;
const running = /(?:^|\] )Running ([\w$.]+)$/;
const counts = 'Tests run: ';
const crash = 'The forked VM terminated without';

/**
 * Reads what Maven's surefire and failsafe print: the result of each class, whose name is its id. Methods are named only if they
 * fail, or with surefire's plain format; their ids are `com.x.FooTest.adds`. Old versions name a class before its result.
 */
export const maven: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let last: string | null = null;
    for (const line of linesOf(log)) {
      const text = line.replace(level, '');
      const [, run = '', failures = '', errors = '', skipped = '', named] =
        ofClass.exec(line.slice(Math.max(0, line.lastIndexOf(counts)))) ?? [];
      const id = named ?? last;
      if (run !== '' && id !== null)
        collector.record(id, statusOf(Number(run), Number(failures), Number(errors), Number(skipped)));
      const { method, how } = run === '' ? methodIn(text) : none;
      if (method !== '' && !method.startsWith(counts)) {
        const test = spelled(method);
        collector.record(test, statusBy(how));
        // A class is named before its result in old versions, and something may be printed in between.
        const owner = /^([\w.$]+)\.[^.]*$/.exec(test)?.[1];
        if (owner !== undefined && how !== undefined) collector.recordOutside(owner, statusBy(how));
      }
      const begun = running.exec(line)?.[1];
      // Tests may print such lines: a class has its package before it, or is the first that is named.
      if (run !== '') last = null;
      else if (begun !== undefined && (last === null || begun.includes('.'))) last = begun;
      if (text.startsWith('COMPILATION ERROR')) collector.recordProblem('collection-error', text);
      else if (text.includes(crash)) collector.recordProblem('crashed', text);
    }
    return collector.finish();
  },
};

interface MethodResult {
  /** The name of the method; empty if the line is no result of one. */
  readonly method: string;
  readonly how: string | undefined;
}

const none: MethodResult = { method: '', how: undefined };

/** Reads the result of a method: its name, perhaps a dash, and its time at the end of the line. */
function methodIn(text: string): MethodResult {
  const at = text.lastIndexOf(elapsed);
  const [found, how] = time.exec(text.slice(Math.max(0, at))) ?? [];
  if (found === undefined || text[at - 1] !== ' ' || /^\s/.test(text)) return none;
  const name = text.slice(0, at).trimEnd();
  return { method: name.endsWith(' --') ? name.slice(0, -2).trimEnd() : name, how };
}

function statusOf(run: number, failures: number, errors: number, skipped: number): TestStatus {
  if (failures > 0) return 'FAILED';
  if (errors > 0) return 'ERROR';
  return skipped === run ? 'SKIPPED' : 'PASSED';
}

function statusBy(how: string | undefined): TestStatus {
  if (how === undefined) return 'PASSED';
  return how === 'ERROR' ? 'ERROR' : 'FAILED';
}

/** Writes `adds(com.x.FooTest)` of old versions as newer ones do. */
const spelled = (method: string): string => method.replace(/^([^\s()]+)\(([\w.$]+)\)$/, '$2.$1');
