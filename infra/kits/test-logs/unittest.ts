import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const endings: Readonly<Record<string, TestStatus>> = {
  ok: 'PASSED',
  FAIL: 'FAILED',
  ERROR: 'ERROR',
  'expected failure': 'XFAIL',
  'unexpected success': 'XPASS',
};
const blocks: Readonly<Record<string, TestStatus>> = { FAIL: 'FAILED', ERROR: 'ERROR', 'UNEXPECTED SUCCESS': 'XPASS' };
/** A test, as in `test_a (module.Class.test_a)`. Text after it names a sub-test. Python before 3.11 omits the method. */
const method = /^(\S+) \(([^()\s]+)\)/;
const mark = ' ... ';

/** Reads ids as unittest accepts them on its command line: `module.Class.test_a`. */
export const unittest: LogParser = createParser((title, header) => dotted(header) ?? dotted(title) ?? title);

/**
 * Reads ids in SWE-bench's spelling for Django: the text before the mark, which is the first line of the docstring if the
 * test has one (swebench/harness/log_parsers/python.py, `parse_log_django`).
 */
export const django: LogParser = createParser((title) => method.exec(title)?.[0] ?? title);

/**
 * Reads unittest and Django with `-v`. A test's name is written before it runs, so its output may stand between the name
 * and the result. Failures are repeated in blocks below, with the first line of their docstrings.
 */
function createParser(idOf: (title: string, header: string) => string): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      const report = (title: string, header: string, status: TestStatus): void => {
        const [, name = '', owner] = method.exec(title) ?? [];
        if (owner?.startsWith('unittest.loader._FailedTest')) collector.recordProblem('collection-error', name);
        else collector.record(idOf(title, header), status);
      };
      let header = '';
      let running: readonly [title: string, header: string] | null = null;
      let ruled = false;
      let block: TestStatus | undefined;
      for (const raw of linesOf(log)) {
        const line = raw.trim();
        const [, word = '', title = ''] = /^([A-Z]+(?: [A-Z]+)?): (.+)$/s.exec(line) ?? [];
        const failure = blocks[word];
        if (block !== undefined && !method.test(line)) collector.recordOutside(idOf(line, ''), block);
        block = method.test(title) ? failure : undefined;
        const result = resultIn(line);
        const late = statusOf(line);
        if (failure !== undefined && !ruled) collector.recordOutside(idOf(title, ''), failure);
        else if (failure !== undefined) report(title, '', failure);
        else if (result !== null) report(result.title, header, result.status);
        else if (late !== null && running !== null) report(...running, late);
        if (result !== null) running = null;
        else if (line.includes(mark) || raw.endsWith(' ... ')) running = [line.split(' ...', 1)[0] ?? '', header];
        header = method.exec(line)?.[0] === line ? line : '';
        ruled = line.length >= 70 && /^=+$/.test(line);
      }
      return collector.finish();
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
  const [, name, owner] = method.exec(text) ?? [];
  if (name === undefined || owner === undefined) return null;
  return owner.endsWith(`.${name}`) ? owner : `${owner}.${name}`;
}
