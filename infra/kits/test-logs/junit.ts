import sax, { type Tag } from 'sax';
import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { type FailedCase, failedCases } from './junit-failures.ts';
import { createTally, type LogParser, type ParsedTests } from './parsed-tests.ts';

interface OpenCase {
  readonly id: string;
  status: TestStatus;
}

const root = 'reports';

/**
 * JUnit's XML, as Maven, Gradle, pytest, jest and others write it: one report, or several one after another, with at most
 * other text before the first. Ids are `classname.name`. A flaky test that passed in the end has no failure in it.
 *
 * What is said to have failed inside of a comment or of printed text failed too. A report that is no XML gives no tests at all, since where a broken one ends is anybody's guess.
 */
export const junit: LogParser = {
  parse: (log) => {
    const start = log.search(/<\?xml |<testsuites?[\s>]/);
    const broken = createTally();
    if (start === -1) return broken.done();
    try {
      const text = log.slice(start, log.lastIndexOf('>') + 1);
      return read(`<${root}>${text}</${root}>`, failedCases(text));
    } catch (error) {
      broken.problem('malformed', error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
      return broken.done();
    }
  },
};

/** Throws on what is no XML, and on a document type: a report has none, and its entities could grow without end. */
function read(xml: string, failed: Iterable<FailedCase>): ParsedTests {
  const tally = createTally();
  const reader = sax.parser(true);
  // The parser's limit of 64 KB for an attribute is below what failure messages have.
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
    tally.record(open.id, open.status);
    open = null;
  };
  reader.write(xml).close();
  for (const { kind, suite, attributes } of failed) {
    const tag = { name: kind, attributes: Object.fromEntries(attributes) };
    tally.against(idOf(tag, suite), statusOf(tag) ?? 'FAILED');
  }
  return tally.done();
}

function idOf(tag: Parameters<typeof attribute>[0], suite: string): string {
  const owner = attribute(tag, 'classname') || suite;
  const name = attribute(tag, 'name');
  return owner === '' ? name : `${owner}.${name}`;
}

/** What an element inside of a test case says of it; pytest writes an expected failure as a kind of skip. */
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
