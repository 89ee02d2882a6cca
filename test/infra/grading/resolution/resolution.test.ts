import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { evalSection, marksWith, swebenchMarks } from '../../../../infra/grading/resolution/eval-section.ts';
import { type RequiredTests, refused, resolve } from '../../../../infra/grading/resolution/resolve.ts';
import { type LogProblem, logParsers, type ParsedTests, testStatuses } from '../../../../infra/kits/test-logs/index.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { TestStatus } from '../../../../workflows/contracts/resolution.ts';

const parsed = (tests: Record<string, TestStatus>, problems: readonly LogProblem[] = []): ParsedTests => ({
  tests: new Map(Object.entries(tests)),
  failedElsewhere: new Map(),
  problems,
});
const required = (failToPass: readonly string[], passToPass: readonly string[] = []): RequiredTests => ({
  failToPass,
  passToPass,
  rule: 'pass-and-fail',
});
const ended = (exitCode: number | null) => ({ exitCode });

describe('a resolution', () => {
  it('counts PASSED and XFAIL as passed, and names the test that decided', () => {
    const tests = parsed({ a: 'PASSED', b: 'XFAIL', c: 'FAILED', d: 'PASSED' });
    assert.equal(resolve(required(['a', 'b'], ['d']), tests, ended(1)).status, 'resolved');
    assert.deepEqual(resolve(required(['a', 'c'], ['d']), tests, ended(1)), {
      status: 'partial',
      failToPass: { good: 1, total: 2 },
      passToPass: { good: 1, total: 1 },
      decidedBy: [{ list: 'FAIL_TO_PASS', id: 'c', status: 'FAILED' }],
      reason: 'c of FAIL_TO_PASS is FAILED',
    });
    const broken = resolve(required(['a', 'gone'], ['c', 'd']), tests, ended(1));
    assert.equal(broken.status, 'unresolved');
    assert.equal(broken.reason, 'gone of FAIL_TO_PASS is MISSING, and 1 more');
  });

  it('takes each status as SWE-bench does', () => {
    const expected: Record<TestStatus | 'MISSING', readonly [string, string]> = {
      PASSED: ['resolved', 'resolved'],
      XFAIL: ['resolved', 'resolved'],
      SKIPPED: ['unresolved', 'resolved'],
      XPASS: ['unresolved', 'unresolved'],
      FAILED: ['unresolved', 'unresolved'],
      ERROR: ['unresolved', 'unresolved'],
      MISSING: ['unresolved', 'unresolved'],
    };
    for (const status of [...testStatuses, 'MISSING' as const]) {
      const tests = parsed({ ...(status !== 'MISSING' && { a: status }), good: 'PASSED' });
      const asFail = resolve(required(['a'], ['good']), tests, ended(0)).status;
      const asPass = resolve(required(['good'], ['a']), tests, ended(0)).status;
      assert.deepEqual([asFail, asPass], expected[status], status);
    }
  });

  it('counts no skips if no required test passed', () => {
    const skipped = resolve(required([], ['a', 'b']), parsed({ a: 'SKIPPED', b: 'SKIPPED' }), ended(0));
    assert.deepEqual([skipped.status, skipped.passToPass.good], ['unresolved', 0]);
    const elsewhere = resolve(required([], ['a']), parsed({ a: 'SKIPPED', other: 'PASSED' }), ended(0));
    assert.equal(elsewhere.status, 'unresolved');
  });

  it('is refused if the command failed and its log shows no failure', () => {
    const forged = resolve(required(['a']), parsed({ a: 'PASSED' }), ended(1));
    assert.equal(forged.status, 'refused');
    assert.match(forged.reason, /exit code 1, but its log shows 1 tests and no failure among them/);
    assert.equal(resolve(required(['a']), parsed({ a: 'PASSED', z: 'XPASS' }), ended(1)).status, 'refused');
    assert.equal(resolve(required(['a']), parsed({ a: 'PASSED', z: 'FAILED' }), ended(1)).status, 'resolved');
    const uncollected = parsed({ a: 'PASSED' }, [{ kind: 'collection-error', detail: 'other.py' }]);
    assert.equal(resolve(required(['a']), uncollected, ended(2)).status, 'resolved');
  });

  it('is refused if the command had to be killed', () => {
    assert.equal(resolve(required(['a']), parsed({ a: 'PASSED' }), ended(null)).status, 'refused');
  });

  it('explains a missing test by a problem in the log', () => {
    const crashed = parsed({ z: 'ERROR' }, [{ kind: 'collection-error', detail: 'test_a.py - no module' }]);
    const { reason } = resolve(required(['test_a.py::a']), crashed, ended(2));
    assert.equal(reason, 'test_a.py::a of FAIL_TO_PASS is MISSING (collection-error: test_a.py - no module)');
  });

  it('stays small, however long the lists are', () => {
    const ids = Array.from({ length: 3000 }, (_, index) => `${'\u0001'.repeat(5000)}${index}`);
    assert.ok(Buffer.byteLength(JSON.stringify(resolve(required(ids, ids), parsed({}), ended(0)))) < 8192);
  });

  it('fails for a task that names no test', () => {
    const none = (): unknown => resolve(required([]), parsed({ a: 'PASSED' }), ended(0));
    assert.throws(none, (error) => error instanceof TemperFailure && error.type === 'MalformedTask');
  });

  it('never improves by a worse status, a missing test or a failing command', () => {
    const ids = ['a', 'b', 'c', 'd'];
    const status = fc.constantFrom<TestStatus>('PASSED', 'XFAIL', 'FAILED', 'ERROR');
    const value = { resolved: 3, partial: 2, unresolved: 1, refused: 0 };
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...ids), status), fc.constantFrom(...ids), (tests, victim) => {
        const lists = required(['a', 'b'], ['c', 'd']);
        const before = value[resolve(lists, parsed(tests), ended(0)).status];
        const worse = value[resolve(lists, parsed({ ...tests, [victim]: 'FAILED' }), ended(0)).status];
        const without = Object.fromEntries(Object.entries(tests).filter(([id]) => id !== victim));
        const missing = value[resolve(lists, parsed(without), ended(0)).status];
        const failing = value[resolve(lists, parsed(tests), ended(1)).status];
        return worse <= before && missing <= before && failing <= before;
      }),
    );
  });
});

describe('an id that is cut off in its parameters', () => {
  const cut = 't.py::a[x';

  it('stands for all tests that begin with it, if they count alike', () => {
    const alike = parsed({ 't.py::a[x y]': 'PASSED', 't.py::a[x z]': 'XFAIL', 't.py::a[w]': 'FAILED' });
    assert.equal(resolve(required([cut]), alike, ended(1)).status, 'resolved');
  });

  it('is ambiguous if they do not, in any order of the log', () => {
    const entries: readonly [string, TestStatus][] = [
      ['t.py::a[x y]', 'SKIPPED'],
      ['t.py::a[x z]', 'FAILED'],
    ];
    for (const order of [entries, [...entries].reverse()]) {
      const tests = parsed({ good: 'PASSED', ...Object.fromEntries(order) });
      const { status, decidedBy } = resolve(required(['good'], [cut]), tests, ended(1));
      assert.deepEqual([status, decidedBy], ['unresolved', [{ list: 'PASS_TO_PASS', id: cut, status: 'AMBIGUOUS' }]]);
    }
  });

  it('is first matched as a whole, and a complete id never by its beginning', () => {
    const tests = parsed({ 't.py::a[x': 'PASSED', 't.py::a[x y]': 'FAILED', 't.py::abc': 'PASSED' });
    assert.equal(resolve(required([cut]), tests, ended(1)).status, 'resolved');
    assert.equal(resolve(required(['t.py::a']), tests, ended(1)).decidedBy[0]?.status, 'MISSING');
  });

  it('is found among ids of any characters', () => {
    const id = fc.string({ unit: 'binary', maxLength: 6 }).map((text) => `t::a[${text}`);
    fc.assert(
      fc.property(fc.array(id, { maxLength: 20 }), id, (others, wanted) => {
        const trimmed = wanted.trim();
        const tests = Object.fromEntries(others.map((one) => [one.trim(), 'PASSED' as const]));
        const expected = Object.keys(tests).some((one) =>
          trimmed.split('[').length > trimmed.split(']').length ? one.startsWith(trimmed) : one === trimmed,
        );
        const { status } = resolve(required([wanted]), parsed(tests), ended(0));
        return (status === 'resolved') === expected;
      }),
    );
  });
});

describe('a runner that names failures alone', () => {
  const lists: RequiredTests = { failToPass: ['a'], passToPass: ['b'], rule: 'fail-only' };

  it('passes tests that it does not name, if its tests are known to have run', () => {
    assert.equal(resolve(lists, parsed({}), ended(0)).status, 'resolved');
    assert.equal(resolve(lists, parsed({ z: 'FAILED' }), ended(1)).status, 'resolved');
    assert.equal(resolve(lists, parsed({ b: 'FAILED' }), ended(1)).status, 'unresolved');
    assert.equal(resolve(lists, parsed({}), ended(1)).status, 'refused');
    assert.equal(resolve(lists, parsed({}, [{ kind: 'crashed', detail: 'x' }]), ended(0)).status, 'refused');
  });
});

describe('the section of a log', () => {
  const marks = marksWith('6f1c', 1);
  const log = `set up\n+ : '${marks.start}'\nok 1 - a\n${swebenchMarks.end}\nnot ok 1 - a\n+ : '${marks.end}'\ntear down\n`;

  it('is the text between the marks, which tests do not know in advance', () => {
    const section = evalSection(log, marks);
    assert.ok(section.found);
    assert.deepEqual(
      section.logs.flatMap((one) => [...logParsers.tap.parse(one).tests]),
      [['a', 'FAILED']],
    );
  });

  it('is refused if a mark is missing, repeated or out of order', () => {
    const { start, end } = swebenchMarks;
    for (const bad of [
      '',
      `${start}\n`,
      `${end}\n${start}\n`,
      `${start}\n${end}\n${end}\n`,
      `${start}\n${start}\n${end}\n`,
    ]) {
      assert.equal(evalSection(bad, swebenchMarks).found, false, bad);
    }
  });

  it('is refused if the harness reports nothing to test, but not if a test prints that', () => {
    const { start, end } = swebenchMarks;
    const failed = evalSection(`>>>>> Patch Apply Failed\n${start}\n${end}\n`, swebenchMarks);
    assert.deepEqual(failed, { found: false, reason: 'the log says ">>>>> Patch Apply Failed"' });
    assert.equal(evalSection(`${start}\n>>>>> Patch Apply Failed\n${end}\n`, swebenchMarks).found, true);
  });

  it('leads to a refused resolution if it is refused', () => {
    const { status, failToPass } = refused(required(['a', 'b']), 'no section');
    assert.deepEqual([status, failToPass], ['refused', { good: 0, total: 2 }]);
  });
});
