import sax, { type Tag } from 'sax';
import { type FailedCase, failedCases } from './junit-failures.ts';
import type { LogParser, ParsedTests, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

interface OpenCase {
  readonly id: string;
  status: TestStatus;
}

const root = 'reports';

/**
 * Reads JUnit's XML, as Maven, Gradle, pytest, jest and others write it: one report, or several in a row, possibly with other
 * text before the first. Ids are `classname.name`. A flaky test that finally passed contains no failure.
 *
 * A failure inside a comment or printed text counts too. A report that is not valid XML yields no tests at all, since its
 * end is unknown.
 */
export const junit: LogParser = {
  parse: (log) => {
    const start = log.search(/<\?xml |<testsuites?[\s>]/);
    const broken = createResultCollector();
    if (start === -1) return broken.finish();
    try {
      const text = log.slice(start, log.lastIndexOf('>') + 1);
      return read(`<${root}>${text}</${root}>`, failedCases(text));
    } catch (error) {
      broken.recordProblem('malformed', error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
      return broken.finish();
    }
  },
};

/** Throws on invalid XML, and on a document type: no report has one, and its entities could expand without limit. */
function read(xml: string, failed: Iterable<FailedCase>): ParsedTests {
  const collector = createResultCollector();
  const reader = sax.parser(true);
  // Failure messages may be longer than the parser's limit of 64 KB for an attribute.
  Object.assign(reader, { bufferCheckPosition: Number.POSITIVE_INFINITY });
  const suites: string[] = [];
  let open: OpenCase | null = null;
  reader.onerror = (error) => {
    throw error;
  };
  reader.onopentag = (tag) => {
    if (tag.name === 'testsuite') suites.push(attribute(tag, 'name'));
    if (tag.name === 'testcase') open = { id: idOf(tag, suites.at(-1) ?? ''), status: 'PASSED' };
    else if (open !== null) open.status = statusOf(tag) ?? open.status;
  };
  reader.onclosetag = (name) => {
    if (name === 'testsuite') suites.pop();
    if (name !== 'testcase' || open === null) return;
    collector.record(open.id, open.status);
    open = null;
  };
  reader.write(xml).close();
  for (const { kind, suite, attributes } of failed) {
    const tag = { name: kind, attributes: Object.fromEntries(attributes) };
    collector.recordOutside(idOf(tag, suite), statusOf(tag) ?? 'FAILED');
  }
  return collector.finish();
}

function idOf(tag: Parameters<typeof attribute>[0], suite: string): string {
  const owner = attribute(tag, 'classname') || suite;
  const name = attribute(tag, 'name');
  return owner === '' ? name : `${owner}.${name}`;
}

/** Returns the status that an element inside a test case gives it. pytest writes an expected failure as a kind of skip. */
function statusOf(tag: Parameters<typeof attribute>[0]): TestStatus | null {
  if (tag.name === 'failure') return 'FAILED';
  if (tag.name === 'error') return 'ERROR';
  if (tag.name === 'skipped') return attribute(tag, 'type') === 'pytest.xfail' ? 'XFAIL' : 'SKIPPED';
  return null;
}

function attribute(tag: Pick<Tag, 'name'> & { readonly attributes: Readonly<Record<string, unknown>> }, name: string) {
  const value = Object.hasOwn(tag.attributes, name) ? tag.attributes[name] : '';
  return typeof value === 'string' ? value : '';
}
