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
const total = /^Ran \d+ tests? in /;

/** Reads ids as unittest accepts them on its command line: `module.Class.test_a`. */
export const unittest: LogParser = createParser((title, header) => dotted(header) ?? dotted(title) ?? title);

/**
 * Reads ids in SWE-bench's spelling for Django: the text before the mark, which is the first line of the docstring if the
 * test has one (swebench/harness/log_parsers/python.py, `parse_log_django`).
 */
export const django: LogParser = createParser((title) => method.exec(title)?.[0] ?? title);

/**
 * Reads unittest and Django with `-v`. A test's name is written before it runs, so its output may stand between the name
 * and the result, also without a line end before the result. Failures are repeated in blocks below, with the first line of
 * their docstrings.
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
      let running: Running | null = null;
      let ruled = false;
      let counted = false;
      let block: TestStatus | undefined;
      for (const raw of linesOf(log)) {
        const line = raw.trim();
        const [, word = '', title = ''] = /^([A-Z]+(?: [A-Z]+)?): (.+)$/s.exec(line) ?? [];
        const failure = blocks[word];
        if (block !== undefined && !method.test(line) && !isRule(line, '-'))
          collector.recordOutside(idOf(line, ''), block);
        block = method.test(title) ? failure : undefined;
        const result = resultIn(line);
        const begun = result === null && (line.includes(mark) || raw.endsWith(' ... '));
        const name = ownName(line) ?? '';
        const isName = name !== '' && failure === undefined && line.endsWith(name);
        // Text with the same mark may have been printed by a test that is running.
        const isTest = header !== '' || ownName(result?.title ?? line) !== null;
        counted ||= total.test(line);
        if (isName || (isTest && (result !== null || begun)) || (ruled && failure !== undefined) || total.test(line))
          end(running);
        if (failure !== undefined && !ruled) collector.recordOutside(idOf(title, ''), failure);
        else if (failure !== undefined) report(title, '', failure);
        else if (result !== null) report(ownName(result.title) ?? result.title, header, result.status);
        else if (running !== null && !begun) goOn(running, line);
        if (result !== null && (isTest || running?.done !== false)) running = null;
        else if (begun && (isTest || running?.done !== false)) running = begunBy(line, header);
        header = isName ? name : '';
        ruled = isRule(line, '=');
      }
      if (running?.done === false && !counted) {
        report(...running.test, 'ERROR');
        collector.recordProblem('crashed', `the tests ended within ${running.test[0]}`);
      }
      return collector.finish();
      function end(test: Running | null): void {
        // Only the last text before the next test is known to end with the runner's word.
        if (test === null || test.done || test.open === null) return;
        report(...test.test, test.open);
        test.done = true;
      }
      function goOn(test: Running, line: string): void {
        const late = statusOf(line);
        if (late !== null) {
          report(...test.test, late);
          test.done = true;
        } else test.open = statusAtEnd(line) ?? test.open;
      }
    },
  };
}

/** A test whose name was written, and whose result was not on the same line. */
interface Running {
  readonly test: readonly [title: string, header: string];
  /** The status at the end of printed text, which may be a part of that text. */
  open: TestStatus | null;
  done: boolean;
}

function begunBy(line: string, header: string): Running {
  const title = line.split(' ...', 1)[0] ?? '';
  return { test: [ownName(title) ?? title, header], open: statusAtEnd(line.slice(title.length)), done: false };
}

const isRule = (line: string, character: '-' | '='): boolean =>
  line.length >= 70 && line === character.repeat(line.length);

/** More parentheses than a test's name has before its own. */
const mostParentheses = 16;

/**
 * Returns the name of a test, such as `test_a (module.Class.test_a)`, without text that was printed before it on its line. Only
 * the names of Python 3.11 and later, which end with the method's, show where that text ends.
 */
function ownName(text: string): string | null {
  let open = text.indexOf(' (');
  for (let count = 0; open !== -1 && count < mostParentheses; count += 1) {
    const close = text.indexOf(')', open);
    if (close === -1) break;
    const owner = text.slice(open + 2, close);
    const name = owner.slice(owner.lastIndexOf('.') + 1);
    if (/^[\w.<>]+\.\w+$/.test(owner) && text.slice(0, open).endsWith(name))
      return text.slice(open - name.length, close + 1);
    open = text.indexOf(' (', open + 1);
  }
  return method.exec(text)?.[0] ?? null;
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

/** Returns the status that stands at the end of printed text. */
function statusAtEnd(text: string): TestStatus | null {
  if (/['"]$/.test(text) && / ?skipped ['"]/.test(text)) return 'SKIPPED';
  const word = Object.keys(endings).find((one) => text.endsWith(one));
  return word === undefined ? null : (endings[word] ?? null);
}

function dotted(text: string): string | null {
  const [, name, owner] = method.exec(text) ?? [];
  if (name === undefined || owner === undefined) return null;
  return owner.endsWith(`.${name}`) ? owner : `${owner}.${name}`;
}
