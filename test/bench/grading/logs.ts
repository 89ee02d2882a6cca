import type { LogParserName } from '../../../infra/kits/test-logs/index.ts';

/** The parts of a runner's log of passing tests. */
interface LogForm {
  head(tests: number): string;
  test(index: number): string;
  tail(tests: number): string;
}

export interface SampleLog {
  readonly text: string;
  readonly tests: number;
}

const nothing = (): string => '';
const printed = (index: number): string => `collecting item ${index} of the fixture at /srv/data/items/${index}.json\n`;
/** Adds a printed line to every fourth test, since many lines of a real log name no test. */
const noisy = (index: number, line: string): string => (index % 4 === 0 ? `${printed(index)}${line}` : line);
const name = (index: number): string => `handles_case_${index}_of_the_table`;
const group = (index: number): string => `group_${Math.floor(index / 20)}`;

/** Adds a heading before the first test of each group. */
const grouped = (index: number, heading: string, line: string): string =>
  `${index % 20 === 0 ? heading : ''}${noisy(index, line)}`;

const lines = (test: (index: number) => string): LogForm => ({ head: nothing, test, tail: nothing });

const tap: LogForm = {
  head: () => 'TAP version 13\n',
  test: (index) =>
    `# Subtest: ${name(index)}\n${noisy(index, `ok ${index + 1} - ${name(index)}\n`)}  ---\n  duration_ms: 0.52\n  type: 'test'\n  ...\n`,
  tail: (tests) => `1..${tests}\n`,
};

const pytest: LogForm = {
  head: (tests) =>
    `============================= test session starts ==============================\n${Array.from({ length: tests / 4 }, (_, index) => printed(index)).join('')}=========================== short test summary info ============================\n`,
  test: (index) => `PASSED tests/test_${group(index)}.py::TestTable::test_${name(index)}[${index}-a b]\n`,
  tail: (tests) => `============================== ${tests} passed in 9.87s ===============================\n`,
};

const goText = lines((index) =>
  grouped(
    index,
    index === 0 ? '' : `ok  \texample.com/${group(index - 1)}\t0.01s\n`,
    `=== RUN   Test_${name(index)}\n--- PASS: Test_${name(index)} (0.00s)\n`,
  ),
);
const goJson = lines((index) =>
  ['run', 'output', 'pass']
    .map((action) => {
      const output = action === 'output' ? { Output: printed(index) } : {};
      const event = { Time: '2025-01-01T00:00:00Z', Action: action, Package: `example.com/${group(index)}` };
      return `${JSON.stringify({ ...event, Test: `Test_${name(index)}`, ...output })}\n`;
    })
    .join(''),
);
/** A log of jest, in which printed text stands before the tree of a file. */
const jest = lines((index) => {
  const tree = `${[1, 2, 3, 4, 5].map(printed).join('')}\nPASS src/${group(index)}.test.js\n  ${group(index)}\n`;
  return `${index % 20 === 0 ? tree : ''}    ✓ ${name(index)} (3 ms)\n`;
});
const unittest = lines((index) => {
  const path = `tests.test_${group(index)}.Table.test_${name(index)}`;
  return noisy(index, `test_${name(index)} (${path}) ... ok\n`);
});

const gradle = lines((index) => noisy(index, `com.x.${group(index)} > ${name(index)}() PASSED\n`));

const ctest = lines((index) =>
  noisy(index, `${index}/9 Test #${index}: ${name(index)} ........   Passed    0.01 sec\n`),
);
const mocha = lines((index) => grouped(index, `  ${group(index)}\n`, `    ✔ ${name(index)}\n`));

const vitest = lines((index) =>
  noisy(index, ` ✓ src/${group(index)}.test.ts > ${group(index)} > ${name(index)} 2ms\n`),
);

const redis = lines((index) => noisy(index, `[ok]: ${name(index)} (1 ms)\n`));
const mochaJson: LogForm = {
  head: () => '{\n  "stats": {\n  },\n  "pending": [],\n  "failures": [],\n  "passes": [\n',
  test: (index) =>
    `${index === 0 ? '' : ',\n'}    {\n      "fullTitle": "${group(index)} ${name(index)}",\n      "err": {}\n    }`,
  tail: () => '\n  ]\n}\n',
};

const forms: Readonly<Record<LogParserName, LogForm>> = {
  automake: lines((index) => noisy(index, `PASS: ${name(index)}.sh\n`)),
  bats: { ...tap, head: nothing, test: (index) => noisy(index, `ok ${index + 1} ${name(index)} in 3ms\n`) },
  cargo: {
    head: (tests) => `running ${tests} tests\n`,
    test: (index) => noisy(index, `test ${group(index)}::${name(index)} ... ok\n`),
    tail: (tests) => `\ntest result: ok. ${tests} passed; 0 failed; 0 ignored\n`,
  },
  catch2: lines((index) => noisy(index, `0.000 s: ${name(index)}\n`)),
  ctest,
  'ctest-lower': ctest,
  django: unittest,
  'go-json': goJson,
  'go-json-names': goJson,
  'go-names': goText,
  'go-parents': goText,
  'go-text': goText,
  googletest: lines((index) => noisy(index, `[       OK ] ${group(index)}.${name(index)} (0 ms)\n`)),
  gradle,
  'gradle-lines': gradle,
  'gradle-tasks': gradle,
  jest,
  'jest-files': jest,
  'jest-plain-files': jest,
  'jest-titles': jest,
  junit: {
    head: (tests) => `<?xml version="1.0"?>\n<testsuites><testsuite name="s" tests="${tests}">\n`,
    test: (index) =>
      `<testcase classname="${group(index)}" name="${name(index)}" time="0.01">${index % 4 === 0 ? `<system-out>${printed(index)}</system-out>` : ''}</testcase>\n`,
    tail: () => '</testsuite></testsuites>\n',
  },
  maven: lines((index) =>
    noisy(
      index,
      `[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in x.${name(index)}\n`,
    ),
  ),
  'maven-builds': lines((index) =>
    noisy(index, `+ mvn test -Dtest=x.${group(index)}#${name(index)}\n[INFO] BUILD SUCCESS\n`),
  ),
  mocha,
  'mocha-json': mochaJson,
  'mocha-json-files': mochaJson,
  'mocha-titles': mocha,
  'node-spec': lines((index) => noisy(index, `✔ ${name(index)} (0.52ms)\n`)),
  phpunit: lines((index) => grouped(index, `Group ${group(index)} (Tests\\${group(index)})\n`, ` ✔ ${name(index)}\n`)),
  ponytest: lines((index) => noisy(index, `---- Passed: ${group(index)}/${name(index)}\n`)),
  pytest,
  'pytest-matplotlib': pytest,
  'pytest-options': pytest,
  redis,
  'redis-plain-titles': redis,
  rspec: lines((index) => grouped(index, `\nGroup ${group(index)}\n`, `  ${name(index)}\n`)),
  sympy: lines((index) => noisy(index, `test_${name(index)} ok\n`)),
  tap,
  'tap-lines': tap,
  unittest,
  vitest,
  'vitest-lines': vitest,
  'vitest-titles': vitest,
  'workspace-titles': lines((index) => noisy(index, ` ✓ src/${name(index)}.test.ts (3 tests) 2ms\n`)),
};

/** Returns a log of about this size in which every test passed. */
export function sampleLog(parser: LogParserName, bytes: number): SampleLog {
  const { head, test, tail } = forms[parser];
  const some = Array.from({ length: 400 }, (_, index) => test(index)).join('');
  const tests = Math.max(400, Math.round((400 * bytes) / Buffer.byteLength(some + head(400))));
  return { text: head(tests) + Array.from({ length: tests }, (_, index) => test(index)).join('') + tail(tests), tests };
}
