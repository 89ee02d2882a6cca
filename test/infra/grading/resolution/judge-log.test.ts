import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeInThread } from '../../../../infra/grading/resolution/judge-in-thread.ts';
import { judgeLog, type LogCase } from '../../../../infra/grading/resolution/judge-log.ts';
import { findLogParser, logParserNames } from '../../../../infra/kits/test-logs/index.ts';

const by: LogCase = {
  failToPass: ['a.py::new'],
  passToPass: ['a.py::old'],
  rule: 'pass-and-fail',
  logParser: 'parse_log_pytest',
  nonce: 'n1',
  exitCode: 0,
};
const summary = '=== short test summary info ===\nPASSED a.py::new\nPASSED a.py::old\nPASSED b.py::other\n';
const start = '>>>>> Start Test Output n1';
const wrapped = (output: string, status = 0): string =>
  `set-up\n${start}\n${output}\n>>>>> End Test Output n1 ${status}\n`;

describe('the judgement of a log', () => {
  it('counts the tests between the marks of this evaluation', () => {
    const { resolution, passed, failed, results } = judgeLog(wrapped(summary), by);
    assert.deepEqual([resolution.status, passed, failed], ['resolved', 3, 0]);
    assert.deepEqual(JSON.parse(results ?? ''), {
      required: [
        { list: 'FAIL_TO_PASS', id: 'a.py::new', status: 'PASSED' },
        { list: 'PASS_TO_PASS', id: 'a.py::old', status: 'PASSED' },
      ],
      others: { 'b.py::other': 'PASSED' },
      problems: [],
    });
    assert.equal(judgeLog(`${summary}${wrapped('')}`, by).resolution.status, 'unresolved');
  });

  it('adds up the passes of several commands, each from its own report', () => {
    const reportOf = (...lines: readonly string[]): string =>
      ['== short test summary info ==', ...lines, ''].join('\n');
    const next = '>>>>> Next Test Output n1\n';
    const two = `${reportOf('PASSED a.py::new')}${next}${reportOf('PASSED a.py::old')}`;
    assert.equal(judgeLog(wrapped(two), by).resolution.status, 'resolved');
    const printed = two.replace('n1', 'n2');
    assert.equal(judgeLog(wrapped(printed), by).resolution.status, 'unresolved');
    const forged = `${reportOf('FAILED a.py::new')}${next}${reportOf('PASSED a.py::new', 'PASSED a.py::old')}`;
    assert.deepEqual(judgeLog(wrapped(forged), by).resolution.decidedBy, [
      { list: 'FAIL_TO_PASS', id: 'a.py::new', status: 'FAILED' },
    ]);
  });

  it('is refused if a mark occurs twice, or belongs to another evaluation', () => {
    for (const log of [
      `${start}\n${wrapped(summary)}`,
      wrapped(`${summary}>>>>> End Test Output n1 0`),
      wrapped(summary).replaceAll('n1', 'n2'),
    ]) {
      const { resolution, results } = judgeLog(log, by);
      assert.deepEqual([resolution.status, results], ['refused', null], log);
    }
  });

  it('is refused if the end mark names another exit status than the process had', () => {
    assert.equal(judgeLog(wrapped(summary, 1), by).resolution.status, 'refused');
    assert.equal(judgeLog(wrapped(summary), { ...by, exitCode: 1 }).resolution.status, 'refused');
  });

  it('is refused, with a reason, if the command failed and no test did', () => {
    const { resolution, results } = judgeLog(wrapped(summary, 1), { ...by, exitCode: 1 });
    assert.equal(resolution.status, 'refused');
    assert.match(resolution.reason, /exit code 1, but its log shows 3 tests and no failure/);
    assert.notEqual(results, null);
  });

  it('counts a missing test as good only if the runner names failures alone', () => {
    const quiet = wrapped('FAILED a.py::third\n');
    assert.equal(judgeLog(quiet, by).resolution.status, 'unresolved');
    assert.equal(judgeLog(wrapped(''), { ...by, rule: 'fail-only' }).resolution.status, 'resolved');
  });

  it('is the same in a thread, where a long log does not block the process', async () => {
    const noise = `${'x'.repeat(99)}\n`.repeat(20_000);
    const log = Buffer.from(wrapped(`${noise}${summary}`));
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 1);
    const judged = await judgeInThread(log, by);
    clearInterval(timer);
    // In this thread the judgement would block every timer.
    assert.ok(turns > 0);
    assert.deepEqual(judged, judgeLog(log.toString(), by));
    assert.equal(judged.resolution.status, 'resolved');
  });

  it('keeps every required test, and some additional ones', () => {
    const others = Array.from({ length: 1000 }, (_, index) => `PASSED b.py::${index}${'x'.repeat(5000)}\n`);
    const { results, passed } = judgeLog(wrapped(`${summary}${others.join('')}`), by);
    assert.equal(passed, 1003);
    assert.ok(results !== null && results.length < 2 ** 21, `${results?.length} characters`);
    assert.equal(JSON.parse(results).required.length, 2);
  });

  it('stays small enough for a workflow history, whatever the names of the tests', () => {
    const failToPass = Array.from({ length: 3000 }, (_, index) => `a.py::${index}${'é"'.repeat(400)}`);
    const { resolution } = judgeLog(wrapped('ERROR '.padEnd(5000, 'é')), { ...by, failToPass });
    assert.ok(Buffer.byteLength(JSON.stringify(resolution)) < 4096);
  });
});

describe('the names of log parsers', () => {
  it('are those of the runners and those of the data sets', () => {
    for (const name of logParserNames) assert.ok(findLogParser(name), name);
    assert.ok(logParserNames.includes('parse_log_django') && logParserNames.includes('tap'));
    for (const name of ['parse_log_doctest', '', 'constructor', 'toString']) assert.equal(findLogParser(name), null);
  });
});
