import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { it } from 'node:test';
import { createDataSetFixture, failure, packed, textIn } from '../../../helpers/tasks/data-set-fixture.ts';

const terminalBench: Readonly<Record<string, string>> = {
  'task.yaml':
    'instruction: |-\n  Write "hello".\nauthor_email: a@b.c\ndifficulty: easy\ntags:\n  - files\nparser_name: pytest\nmax_agent_timeout_sec: 180.0\nmax_test_timeout_sec: 40.0\n',
  'run-tests.sh': '#!/bin/bash\n[ "$TEST_DIR" = /tests ]\n',
  'solution.sh': '#!/bin/bash\necho hello\n',
  'tests/test_outputs.py': 'def test(): pass\n',
  Dockerfile: 'FROM debian:bookworm\nWORKDIR /srv\n',
  'docker-compose.yaml': 'services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: $NAME\n',
};

const client = (line: string): string => `services:\n  client:\n    ${line}\n`;

it('reads the parts of a terminal-bench task', async () => {
  await using fixture = await createDataSetFixture();
  for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`tb/hello/${path}`, text);
  await fixture.write('tb/hello/tests/data.tar.gz', 'a file of the task, not an archive of tasks');
  const { task, tests, solution, instruction } = await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#hello`);
  assert.deepEqual(
    [task.image, task.workdir, task.agentTimeoutSec, task.evaluationTimeoutSec],
    ['debian:bookworm', '/srv', 180, 40],
  );
  assert.equal(instruction, 'Write "hello".\n');
  assert.ok(solution.has('solve.sh') && tests.has('test_outputs.py'));
});

const heading = '=========================== short test summary info ============================';
/** Commands of a `run-tests.sh`, and the reward that they lead to. */
const verdicts: readonly (readonly [string, string, string])[] = [
  ['passing tests', `echo '${heading}'; echo 'PASSED tests/test_outputs.py::test_one'`, '1\n'],
  [
    'passing tests and expected failures, in colour',
    `printf '\\e[36m%s\\e[0m\\n' '${heading}' 'PASSED a.py::one' 'XFAIL a.py::two' 'SKIPPED [1] a.py:7: no'`,
    '1\n',
  ],
  [
    'a failing test before a successful command',
    `echo '${heading}'; echo 'PASSED a.py::one'; echo 'FAILED a.py::two - assert 1 == 2'; echo 'Pytest end.'`,
    '0\n',
  ],
  [
    'a failing test in the first of two runs',
    `echo '${heading}'; echo 'FAILED a.py::two'; echo '${heading}'; echo 'PASSED b.py::one'`,
    '0\n',
  ],
  ['an error outside a test', `echo '${heading}'; echo 'ERROR a.py - ImportError'; echo 'PASSED b.py::one'`, '0\n'],
  ['only skipped tests', `echo '${heading}'; echo 'SKIPPED [1] a.py:7: no'`, '0\n'],
  ['no summary', "echo 'PASSED a.py::one'", '0\n'],
  ['passing tests and a failing exit code', `echo '${heading}'; echo 'PASSED a.py::one'; exit 3`, '0\n'],
  [
    'a background process that keeps the output open',
    `sleep 30 & echo $! >"$LEFT"; echo '${heading}'; echo 'PASSED a.py::one'`,
    '1\n',
  ],
];
for (const [what, commands, expected] of verdicts) {
  it(`gives terminal-bench tests with ${what} a reward of ${expected.trim()}`, async () => {
    await using fixture = await createDataSetFixture();
    for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`tb/hello/${path}`, text);
    await fixture.write('tb/hello/run-tests.sh', `[ "$TEST_DIR" = /tests ] || exit 9\n${commands}\n`);
    const { tests } = await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#hello`);
    const runTests = await fixture.write('run-tests.sh', textIn(tests, 'run-tests.sh'));
    const left = await fixture.write('left', '');
    const script = textIn(tests, 'test.sh')
      .replaceAll('/logs/verifier', `${fixture.root}/logs`)
      .replaceAll('/tests/run-tests.sh', runTests);
    const said = await open(`${fixture.root}/said`, 'w');
    execFileSync('bash', ['-c', script], {
      stdio: ['ignore', said.fd, 'inherit'],
      env: { ...process.env, LEFT: left },
    });
    await said.close();
    assert.equal(await readFile(`${fixture.root}/logs/reward.txt`, 'utf8'), expected);
    assert.match(await readFile(`${fixture.root}/said`, 'utf8'), /a\.py|test_outputs/);
    const pid = Number(await readFile(left, 'utf8'));
    if (pid > 0) process.kill(pid);
  });
}

/** The compose file of most published tasks, and a Dockerfile that needs a build. */
const published: Readonly<Record<string, string>> = {
  'docker-compose.yaml': `version: '3'
services:
  client:
    build:
      context: .
      dockerfile: \${T_BENCH_TASK_DOCKER_FILE_PATH:-images/Dockerfile}
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    working_dir: /work
    environment:
      - TEST_DIR=\${T_BENCH_TEST_DIR}
      - PRICE=$$5=\${PRICE:-five}
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_AGENT_LOGS_PATH}:\${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
`,
  'images/Dockerfile': 'FROM debian:bookworm\nWORKDIR /app\nCOPY data ./data\nRUN sort data/in >sorted\n',
  'data/in': 'b\na\n',
};

it('builds the image of a terminal-bench task from its directory without tests and solution', async () => {
  await using fixture = await createDataSetFixture();
  for (const [path, text] of Object.entries({ ...terminalBench, ...published }))
    await fixture.write(`tb/built/${path}`, text);
  const { task, build, env, workspace } = await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#built`);
  assert.match(task.image, /^temper-built:[0-9a-f]{40}$/);
  assert.deepEqual([task.imageFrom, task.workdir, workspace.size], ['dockerfile', '/work', 0]);
  assert.deepEqual([...(build?.files.keys() ?? [])].sort(), ['Dockerfile', 'data/in', 'images/Dockerfile']);
  assert.equal(textIn(build?.files ?? new Map(), 'Dockerfile'), published['images/Dockerfile']);
  assert.deepEqual(env, { TEST_DIR: '/tests', PRICE: '$5=five' });
  await fixture.write('tb/built/tests/test_outputs.py', 'def test(): assert False\n');
  const otherTests = await fixture.tasks.resolve(`terminal-bench:${fixture.root}/tb#built`);
  assert.equal(otherTests.image, task.image);
  assert.notEqual(otherTests.bundle.digest, task.bundle.digest);
  const named = await fixture.tasks.resolve(`terminal-bench:${fixture.root}/tb?image=built:1#built`);
  assert.equal(named.image, 'built:1');
});

it('ignores the image name of a compose file that builds the image', async () => {
  await using fixture = await createDataSetFixture();
  const image = async (name: string, compose: string): Promise<string> => {
    const files = { ...terminalBench, Dockerfile: 'FROM debian\nRUN true\n', 'docker-compose.yaml': compose };
    for (const [path, text] of Object.entries(files)) await fixture.write(`${name}/task/${path}`, text);
    return (await fixture.tasks.resolve(`terminal-bench:${fixture.root}/${name}#task`)).image;
  };
  assert.equal(await image('named', client('image: published:1')), 'published:1');
  assert.match(await image('built', client('{build: ., image: "published:1"}')), /^temper-built:/);
});

const refused: readonly (readonly [string, Readonly<Record<string, string>>, string, RegExp])[] = [
  [
    'broken YAML',
    { 'task.yaml': 'instruction: "a\n' },
    'MalformedTask',
    /bad\/task\.yaml: expected YAML, got: Missing closing/,
  ],
  [
    'no instruction',
    { 'task.yaml': 'difficulty: easy\n' },
    'MalformedTask',
    /task\.yaml: instruction: expected the text of the task, got nothing/,
  ],
  [
    'an invalid timeout',
    { 'task.yaml': 'instruction: a\nmax_agent_timeout_sec: soon\n' },
    'MalformedTask',
    /max_agent_timeout_sec: expected a number from 1 to 1000000 seconds, got "soon"/,
  ],
  [
    'several services',
    { 'docker-compose.yaml': 'services:\n  client: {}\n  db: {}\n' },
    'UnsupportedTask',
    /docker-compose\.yaml: services: expected one service, got client, db/,
  ],
  [
    'tests in the agent’s shell',
    { 'task.yaml': 'instruction: a\nrun_tests_in_same_shell: true\n' },
    'UnsupportedTask',
    /task\.yaml: expected run_tests_in_same_shell: false/,
  ],
  [
    "another parser than pytest's",
    { 'task.yaml': 'instruction: a\nparser_name: swebench\n' },
    'UnsupportedTask',
    /task\.yaml: expected parser_name: pytest, .*, got parser_name: swebench/,
  ],
  [
    'neither image nor Dockerfile',
    { Dockerfile: '', 'docker-compose.yaml': client('build: {dockerfile: None}') },
    'UnsupportedTask',
    /bad\/None: expected a Dockerfile, or an image given with \?image=, got neither/,
  ],
  ...(
    [
      ['privileged: true', 'privileged: expected a key that a sandbox supports, got true'],
      ['cap_add: [NET_ADMIN]', 'cap_add: expected .*, got \\["NET_ADMIN"\\]'],
      ['network_mode: host', 'network_mode: expected .*, got "host"'],
      ['depends_on: [db]', 'depends_on: expected'],
      ['entrypoint: /start.sh', 'entrypoint: expected .*, got "/start.sh"'],
      ['command: /start.sh', 'command: expected a command that only waits, got /start.sh'],
      ['command: [sh, -c, "nginx && sleep infinity"]', 'command: expected a command that only waits, got sh -c nginx'],
      ['volumes: ["./data:/data"]', 'volumes: expected only the log volumes of the harness, got "./data:/data"'],
      ['volumes: ["/:/logs"]', 'volumes: expected only'],
      ['environment: [TOKEN]', 'environment.TOKEN: expected a value, got a variable of the host'],
      ['environment: {A: $OTHER}', 'environment.A: expected only variables of the harness, got \\$OTHER'],
      ['build: {context: ./client}', "build.context: expected the task's directory, got ./client"],
      ['build: {context: ., args: {A: b}}', 'build.args: expected only context and dockerfile'],
      ['build: {context: ., target: final}', 'build.target: expected only context and dockerfile'],
    ] as const
  ).map(
    ([line, message]) =>
      [
        line,
        { 'docker-compose.yaml': client(line) },
        'UnsupportedTask',
        new RegExp(`services\\.client\\.${message}`),
      ] as const,
  ),
  [
    'networks',
    { 'docker-compose.yaml': `${client('build: .')}networks:\n  default: {internal: true}\n` },
    'UnsupportedTask',
    /docker-compose\.yaml: networks: expected only the keys version, name, services, got networks/,
  ],
  [
    'a Dockerfile that makes the daemon download a file',
    { Dockerfile: 'FROM debian\nADD https://example.com/x /x\n' },
    'UnsupportedTask',
    /expected ADD of plain paths in the context.*or \?image= of a data set/,
  ],
];
for (const [what, files, type, message] of refused) {
  it(`rejects a terminal-bench task with ${what} as ${type}`, async () => {
    await using fixture = await createDataSetFixture();
    for (const [path, text] of Object.entries({ ...terminalBench, ...files }))
      await fixture.write(`tb/bad/${path}`, text);
    await assert.rejects(fixture.tasks.resolve(`terminal-bench:${fixture.root}/tb#bad`), failure(type, message));
  });
}
