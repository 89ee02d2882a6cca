import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type LogParserName, logParsers } from '../../../../infra/kits/test-logs/index.ts';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

const runners = Object.keys(logParsers) as LogParserName[];

/** One passing and one failing test of each runner. */
const samples: Readonly<Partial<Record<LogParserName, string>>> = {
  automake: 'PASS: adds.sh\nFAIL: fails.sh\n# TOTAL: 2\n',
  bats: '1..2\nok 1 adds\nnot ok 2 fails\n',
  cargo: 'running 2 tests\ntest a ... ok\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n',
  ctest: '1/2 Test #1: adds ....   Passed    0.01 sec\n2/2 Test #2: fails ...***Failed    0.01 sec\n',
  'go-json': '{"Action":"pass","Package":"p","Test":"A"}\n{"Action":"fail","Package":"p","Test":"B"}\n',
  'go-text': '--- PASS: A (0.00s)\n--- FAIL: B (0.00s)\nFAIL\tp\t0.01s\n',
  googletest: '[       OK ] T.Adds (0 ms)\n[  FAILED  ] T.Fails (1 ms)\n',
  gradle: 'x.T > adds() PASSED\nx.T > fails() FAILED\n',
  jest: 'FAIL a.test.js\n  suite\n    ✓ adds (3 ms)\n    ✕ fails\n\n',
  junit:
    '<testsuite><testcase classname="c" name="a"/><testcase classname="c" name="b"><error/></testcase></testsuite>',
  maven:
    'Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in x.A\nTests run: 1, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 1 s <<< ERROR! - in x.B\n',
  mocha: '\n  suite\n    ✔ adds\n    1) fails\n\n  1 passing (1ms)\n',
  'mocha-json':
    '{\n  "stats": {\n  },\n  "pending": [],\n  "failures": [{"fullTitle": "s fails"}],\n  "passes": [{"fullTitle": "s adds"}]\n}',
  'node-spec': '▶ suite\n  ✔ adds (1ms)\n  ✖ fails (1ms)\n✖ suite (2ms)\n',
  phpunit: 'C (T\\C)\n ✔ Adds\n ✘ Fails\n',
  pytest: '== short test summary info ==\nPASSED t.py::a[x y]\nFAILED t.py::b - no\n== 1 failed, 1 passed in 0.1s ==\n',
  rspec: '\ns\n  adds\n  fails (FAILED - 1)\n\n2 examples, 1 failure\n',
  sympy: 'test_a ok\ntest_b F\n',
  tap: 'TAP version 13\nok 1 - adds\nnot ok 2 - fails\n1..2\n',
  unittest: 'test_a (m.T.test_a) ... ok\ntest_b (m.T.test_b) ... FAIL\n',
  vitest: ' ✓ a.ts > suite > adds 2ms\n × a.ts > suite > fails 5ms\n',
  'vitest-lines': ' ✓ a.ts (2 tests) 2ms\n × fails 5ms\n',
};

/** Text that resembles logs more often than random text would. */
const piece = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(...Object.values(samples).flatMap((log) => log.split('\n'))),
  fc.constantFrom('\n', '\r\n', '\u001b[31m', '[', ']', ' - ', '<testsuite>', '<![CDATA[', '---', '...', '__proto__'),
);
const anyLog = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
const someLines = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('\n'));

describe('the parsers of logs', () => {
  for (const runner of runners) {
    it(`${runner}: never throws`, () => {
      const reads = (log: string): boolean => logParsers[runner].parse(log).tests instanceof Map;
      fc.assert(fc.property(fc.oneof(anyLog, someLines), reads), { numRuns: 60 });
    });
  }

  for (const runner of runners) {
    const sample = samples[runner];
    if (sample === undefined) continue;
    const plain = testsIn(runner, sample);

    it(`${runner}: finds both tests, with either kind of line ends`, () => {
      const found = Object.values(plain).filter((status) => status !== 'SKIPPED');
      assert.equal(found.includes('PASSED') && found.some((status) => status !== 'PASSED'), true);
      assert.deepEqual(testsIn(runner, sample.replaceAll('\n', '\r\n')), plain);
    });

    // Reports in XML and JSON have no colours.
    if (runner === 'junit' || runner === 'mocha-json') continue;
    it(`${runner}: ignores colours`, () => {
      const insertions = fc.array(
        fc.tuple(fc.nat(sample.length), fc.constantFrom('\u001b[31m', '\u001b[0m', '\u001b[1;38;5;9m')),
      );
      fc.assert(
        fc.property(insertions, (colours) => {
          const sorted = [...colours].sort(([a], [b]) => b - a);
          const coloured = sorted.reduce((log, [at, code]) => log.slice(0, at) + code + log.slice(at), sample);
          assert.deepEqual(testsIn(runner, coloured), plain);
        }),
        { numRuns: 40 },
      );
    });
  }
});

describe('a log of results alone', () => {
  const shuffled: readonly { readonly runner: LogParserName; readonly head: string; readonly tail: string }[] = [
    { runner: 'go-json', head: '', tail: '' },
    { runner: 'vitest', head: '', tail: '' },
    { runner: 'tap', head: '', tail: '' },
    { runner: 'sympy', head: '', tail: '' },
    { runner: 'pytest', head: '== short test summary info ==', tail: '== 1 failed in 0.1s ==' },
  ];
  const lines: Partial<Record<LogParserName, readonly string[]>> = {
    'go-json': ['pass', 'fail', 'skip'].flatMap((action) =>
      ['A', 'B'].map((Test) => JSON.stringify({ Action: action, Test })),
    ),
    vitest: ['✓', '×', '↓'].flatMap((mark) => ['a', 'b'].map((title) => ` ${mark} f.ts > ${title}`)),
    tap: ['ok', 'not ok'].flatMap((word) => ['a', 'b # SKIP', 'c # TODO', 'b'].map((title) => `${word} 1 - ${title}`)),
    sympy: ['ok', 'F', 's'].flatMap((word) => ['test_a', 'test_b'].map((name) => `${name} ${word}`)),
    pytest: ['PASSED', 'FAILED', 'XFAIL'].flatMap((word) => ['t::a', 't::b[x y]'].map((id) => `${word} ${id}`)),
  };
  for (const { runner, head, tail } of shuffled) {
    it(`of ${runner} means the same in any order, and counts the worst of repeated results`, () => {
      const some = fc.array(fc.constantFrom(...(lines[runner] ?? [])), { minLength: 1, maxLength: 12 });
      const read = (chosen: readonly string[]) => testsIn(runner, [head, ...chosen, tail].join('\n'));
      fc.assert(
        fc.property(some, (chosen) => {
          const reversed = read([...chosen].reverse());
          assert.deepEqual(reversed, read(chosen));
          assert.deepEqual(reversed, read([...chosen, ...chosen]));
        }),
        { numRuns: 60 },
      );
    });
  }
});

describe('a hostile log', () => {
  const megabyte = 1024 * 1024;
  const shapes: Readonly<Record<string, string>> = {
    'one line of blanks': ' '.repeat(megabyte),
    'one line of rules': '='.repeat(megabyte),
    'rules and blanks': '= '.repeat(megabyte / 2),
    'open brackets': `== short test summary info ==\n${'FAILED t::a['.padEnd(60_000, '[ - ')}\n`.repeat(4),
    escapes: '\u001b['.repeat(megabyte / 2),
    'an unterminated escape': `\u001b]${';a'.repeat(megabyte / 2)}`,
    'unterminated commands': `${'\u001b]'.repeat(30_000)}\n`.repeat(20),
    'few unterminated commands': `${`\u001b]${'x'.repeat(1000)}`.repeat(60)}\n`.repeat(20),
    'foreign line ends': `✓ ${' > '.repeat(20_000)}\u2028\n`.repeat(20),
    'text that resembles skips': ` - ${' (skipped: '.repeat(5000)}\n`.repeat(20),
    'text that resembles failures': `FAIL a${' [ '.repeat(20_000)}\n`.repeat(20),
    'many marks': `${'test x ... '.repeat(5000)}\n`.repeat(4),
    'deep XML': '<testsuite name="a">'.repeat(20_000),
    'deep JSON': `{"a":${'['.repeat(50_000)}\n`,
    'text that resembles durations': `  ✓ ${' (1'.repeat(20_000)}\n`.repeat(4),
    'repeated notes': ` ✓ a > b${' (retry x1)'.repeat(5_000)}x\n`,
    'blanks after dots': `1/1 Test #1: a .${' '.repeat(60_000)}!\n`.repeat(5),
    'blanks within a title': `  ● s › a${' '.repeat(60_000)}b)\na${' '.repeat(60_000)}b\n`.repeat(4),
    'names of nested classes': `a${' > a'.repeat(15_000)}\n`.repeat(16),
    'deep indentation': Array.from({ length: 2000 }, (_, depth) => `${' '.repeat(depth)}✓ a > b`).join('\n'),
  };
  for (const [shape, log] of Object.entries(shapes)) {
    it(`of ${shape} is read by every parser within seconds`, () => {
      const seconds = userSeconds(() => {
        for (const runner of runners) logParsers[runner].parse(log);
      });
      // All twenty together take well below a second; a quadratic parser would take minutes.
      assert.ok(seconds < 20, `took ${seconds} s`);
    });
  }

  it('cannot fill the memory with titles', () => {
    const suites = Array.from({ length: 40 }, (_, depth) => `${'  '.repeat(depth + 1)}${'x'.repeat(500)}`).join('\n');
    const { tests } = logParsers.mocha.parse(`\n${suites}\n${'  '.repeat(41)}✔ a\n  ${'y'.repeat(9000)}\n    ✔ b\n`);
    assert.deepEqual(
      [...tests.keys()].filter((id) => id.length > 2048),
      [],
    );
  });

  it('cannot fill the memory with problems', () => {
    const many = 'Bail out! x\n'.repeat(1000);
    assert.equal(problemsIn('tap', many).length, 20);
  });

  it('may name tests like properties of JavaScript objects', () => {
    const { tests } = logParsers.tap.parse('ok 1 - __proto__\nnot ok 2 - constructor\n1..2\n');
    assert.deepEqual(
      [...tests],
      [
        ['__proto__', 'PASSED'],
        ['constructor', 'FAILED'],
      ],
    );
  });
});
