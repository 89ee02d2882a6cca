import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { logParsers } from '../../../../infra/kits/test-logs/index.ts';
import { knownLogs } from '../../../helpers/tasks/known-logs.ts';

const folder = join(import.meta.dirname, '../../../fixtures/logs/known');

/** The place in a line at which the output of a test, or of another process, may stand: after the first group. */
interface Place {
  readonly at: RegExp;
  readonly texts: readonly string[];
}

const lines = ['a line\n', 'a book\n', `${'-'.repeat(70)}\n`, '12 items, é ok\n', 'Loading ... done\n'];
const open = ['no line end', 'x', 'a book', 'careful: '];
const printed = [...lines, ...open, ...lines.map((line) => `${line}no line end`)];
const warning = ['WARNING: careful\n', 'WARNING: a\nWARNING: b\n'];

const places: Readonly<Record<string, Place>> = {
  'pytest-8-open': {
    at: /^(test_known\.py::(?!test_(?:flaky|parts|good|skip|errors))\S+ (?:b\] )?)(?=\S+$)/,
    texts: printed,
  },
  'pytest-9-open': {
    at: /^(test_known\.py::(?!test_(?:flaky|parts|good|skip|errors))\S+ (?:b\] )?)(?=\S+$)/,
    texts: printed,
  },
  unittest: { at: /^(test_(?:adds|fails|errors|skipped|one) .* \.\.\. )(?=\S)/, texts: printed },
  'jest-old': { at: /^()(?=PASS |FAIL )/, texts: printed },
  jest: { at: /^()(?=PASS |FAIL )/, texts: printed },
  mocha: { at: /^()(?= {4,}(?:✔|\d\)) )/, texts: printed },
  vitest: { at: /^()(?= [✓×↓] known)/, texts: printed },
  'node-tap-alone': { at: /^()(?=(?: {4})*(?:# Subtest|(?:not )?ok \d))/, texts: printed },
  'node-spec': { at: /^()(?= *[✔✖﹣▶] .*(?:ms\)|known|parts))/, texts: printed },
  'go-text': { at: /^()(?==== RUN|--- )/, texts: printed },
  'cargo-open': { at: /^(test \S+ \.\.\. )(?=ok)/, texts: printed },
  googletest: { at: /^()(?=\[ RUN |\[ {7}OK|\[ {2}FAILED.* ms)/, texts: printed },
  'maven-2.12.4': { at: /^()(?=Tests run: .*sec)/, texts: printed },
  'maven-3.5.2': { at: /^()(?=\[\w+\] Tests run: .* in )/, texts: printed },
  gradle: { at: /^(\S+ > \S+ )(?=(?:PASSED|FAILED|SKIPPED)$)/, texts: warning },
  'gradle-streams': { at: /^(\S+ > \S+ (?:PASSED|FAILED|SKIPPED))$/, texts: warning },
  phpunit: { at: /^()(?= [✔✘↩∅☢])/, texts: printed },
  rspec: { at: /^()(?= +(?:adds|fails|errors|prints|case|last))/, texts: printed },
};

/** The end of the part of a log that the tests write into. */
const reportStart =
  /^(?:={10,} |⎯+ Failed|✖ failing tests| {2}\d+ passing|failures:|Time: |Pending: |Failures:|\[=+\] 14)/m;

describe('text that is printed between the lines of a runner', () => {
  for (const [name, { at, texts }] of Object.entries(places)) {
    const known = knownLogs.find(({ logs }) => logs.includes(name));
    assert.ok(known, name);
    const log = readFileSync(join(folder, `${name}.log`), 'utf8');
    const start = log.indexOf('collected 13 items');
    const end = log.slice(Math.max(0, start)).search(reportStart);
    const length = end === -1 ? log.length : Math.max(0, start) + end;
    const tests = log.slice(0, length).split('\n');
    const marked = tests.flatMap((line, index) => (at.test(line) ? [index] : []));

    it(`changes no status in the log ${name}`, () => {
      assert.ok(marked.length > 0);
      const chosen = fc.array(fc.option(fc.constantFrom(...texts)), {
        minLength: marked.length,
        maxLength: marked.length,
      });
      fc.assert(
        fc.property(chosen, (inserted) => {
          const disturbed = tests.map((line, index) => {
            const text = inserted[marked.indexOf(index)] ?? '';
            return marked.includes(index) ? line.replace(at, (before) => `${before}${text}`) : line;
          });
          const found = logParsers[known.parser].parse(disturbed.join('\n') + log.slice(length)).tests;
          for (const [id, status] of Object.entries(known.tests))
            assert.equal(found.get(id), status, `${id}\n${disturbed.join('\n')}`);
        }),
        { numRuns: 100, seed: 20261130 },
      );
    });
  }
});
