import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';

const endings: Readonly<Record<string, TestStatus>> = {
  ok: 'PASSED',
  FAIL: 'FAILED',
  ERROR: 'ERROR',
  'expected failure': 'XFAIL',
  'unexpected success': 'XPASS',
};
const blocks: Readonly<Record<string, TestStatus>> = { FAIL: 'FAILED', ERROR: 'ERROR', 'UNEXPECTED SUCCESS': 'XPASS' };
/** `test_a (module.Class.test_a)`; what follows it names a sub-test. Python before 3.11 leaves the method out. */
const method = /^(\S+) \(([^()\s]+)\)/;
const mark = ' ... ';

/** `module.Class.test_a`, which is how unittest takes a test on its command line. */
export const unittest: LogParser = createParser((title, header) => dotted(header) ?? dotted(title) ?? title);

/**
 * SWE-bench's spelling for Django: what stands before the mark, which is the first line of the docstring where a test has
 * one (swebench/harness/log_parsers/python.py, `parse_log_django`).
 */
export const django: LogParser = createParser((title) => method.exec(title)?.[0] ?? title);

/**
 * unittest and Django with `-v`. A test's name is written before it runs, so what it prints may stand between the name and
 * its result. Failures are named again in blocks below, with the first line of their docstrings.
 */
function createParser(idOf: (title: string, header: string) => string): LogParser {
  return {
    parse: (log) => {
      const tally = createTally();
      const report = (title: string, header: string, status: TestStatus): void => {
        const [, name = '', place] = method.exec(title) ?? [];
        if (place?.startsWith('unittest.loader._FailedTest')) tally.problem('collection-error', name);
        else tally.record(idOf(title, header), status);
      };
      let header = '';
      let running: readonly [title: string, header: string] | null = null;
      let ruled = false;
      let block: TestStatus | undefined;
      for (const raw of linesOf(log)) {
        const line = raw.trim();
        const [, word = '', title = ''] = /^([A-Z]+(?: [A-Z]+)?): (.+)$/s.exec(line) ?? [];
        const failure = blocks[word];
        if (block !== undefined && !method.test(line)) tally.against(idOf(line, ''), block);
        block = method.test(title) ? failure : undefined;
        const result = resultIn(line);
        const late = statusOf(line);
        if (failure !== undefined && !ruled) tally.against(idOf(title, ''), failure);
        else if (failure !== undefined) report(title, '', failure);
        else if (result !== null) report(result.title, header, result.status);
        else if (late !== null && running !== null) report(...running, late);
        if (result !== null) running = null;
        else if (line.includes(mark) || raw.endsWith(' ... ')) running = [line.split(' ...', 1)[0] ?? '', header];
        header = method.exec(line)?.[0] === line ? line : '';
        ruled = line.length >= 70 && /^=+$/.test(line);
      }
      return tally.done();
    },
  };
}

function resultIn(line: string): { readonly title: string; readonly status: TestStatus } | null {
  const skipped = line.indexOf(`${mark}skipped`);
  const at = skipped === -1 ? line.lastIndexOf(mark) : skipped;
  if (at === -1) return null;
  const status = statusOf(line.slice(at + mark.length));
  return status && { title: line.slice(0, at), status };
}

function statusOf(text: string): TestStatus | null {
  if (text === 'skipped' || text.startsWith('skipped ')) return 'SKIPPED';
  return Object.hasOwn(endings, text) ? (endings[text] ?? null) : null;
}

function dotted(text: string): string | null {
  const [, name, place] = method.exec(text) ?? [];
  if (name === undefined || place === undefined) return null;
  return place.endsWith(`.${name}`) ? place : `${place}.${name}`;
}
